package systemd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"karui/cache"
	"karui/internal/server"
	"karui/proxy"
	"karui/watchdog/settings"
)

// unit is a unit file: the values of each setting of a section, in their order.
type unit map[string][]string

func (u unit) all(key string) []string { return u[key] }

// last gives the value that counts, of a setting that takes one.
func (u unit) last(key string) string {
	if v := u[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// parse reads a unit file, with keys such as Service.User.
func parse(text string) (unit, error) {
	u, section := unit{}, ""
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "", strings.HasPrefix(line, "#"), strings.HasPrefix(line, ";"):
			continue
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if !found || section == "" || strings.HasSuffix(value, `\`) {
			return nil, fmt.Errorf("line %d: %q is not understood", n+1, line)
		}
		u[section+"."+key] = append(u[section+"."+key], value)
	}
	return u, nil
}

// hardened is what both units say, each with the reason why a weaker one will not do.
var hardened = map[string]string{
	"Service.Type":                    "notify",
	"Service.NoNewPrivileges":         "yes",
	"Service.ProtectSystem":           "strict",
	"Service.ProtectHome":             "yes",
	"Service.PrivateTmp":              "yes",
	"Service.PrivateDevices":          "yes",
	"Service.PrivateUsers":            "yes",
	"Service.ProtectClock":            "yes",
	"Service.ProtectControlGroups":    "yes",
	"Service.ProtectHostname":         "yes",
	"Service.ProtectKernelLogs":       "yes",
	"Service.ProtectKernelModules":    "yes",
	"Service.ProtectKernelTunables":   "yes",
	"Service.ProtectProc":             "invisible",
	"Service.CapabilityBoundingSet":   "",
	"Service.AmbientCapabilities":     "",
	"Service.LockPersonality":         "yes",
	"Service.RestrictNamespaces":      "yes",
	"Service.RestrictRealtime":        "yes",
	"Service.RestrictSUIDSGID":        "yes",
	"Service.SystemCallArchitectures": "native",
	"Service.UMask":                   "0077",
	"Service.Restart":                 "always",
	// A wrong configuration does not mend itself.
	"Service.RestartPreventExitStatus": "2",
	"Unit.After":                       "network-online.target",
	"Unit.Wants":                       "network-online.target",
	"Install.WantedBy":                 "multi-user.target",
}

// program is what a unit runs, as far as rules depend on it.
type program struct {
	name, command string
	// folder is the one that it writes to, of a kind such as CacheDirectory.
	kind, folder string
	// ending bounds how long it takes to end after SIGTERM.
	ending time.Duration
	// files is how many it may have open.
	files int
}

func proxyProgram() program {
	c := server.DefaultConfig()
	return program{"karui", "serve", "CacheDirectory", cache.DefaultVolume().Path, c.Drain + 10*time.Second, 2 * proxy.DefaultLimits().Connections}
}

func watchdogProgram() program {
	// It finishes a change of the distribution and sends its mail, each of which has a
	// limit of its own.
	return program{"karui-watchdog", "run", "StateDirectory", settings.Default().StateDir, time.Minute, 1024}
}

// problems lists what a unit says that ours must not say.
func problems(text string, p program) []string {
	u, err := parse(text)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for key, want := range hardened {
		if got, there := u[key]; !there || u.last(key) != want {
			say("%s is %q, want %q", key, got, want)
		}
	}
	if user, group := u.last("Service.User"), u.last("Service.Group"); user != p.name || group != p.name {
		say("runs as %s:%s, want a user of its own, %s", user, group, p.name)
	}
	if got, want := u.all("Service.ExecStart"), "/usr/bin/"+p.name+" "+p.command; !slices.Equal(got, []string{want}) {
		say("ExecStart is %q, want %q: no shell and no other command", got, want)
	}
	root := map[string]string{"CacheDirectory": "/var/cache/", "StateDirectory": "/var/lib/"}[p.kind]
	if got := root + u.last("Service."+p.kind); got != p.folder {
		say("%s makes %s, the program writes to %s", p.kind, got, p.folder)
	}
	if mode := u.last("Service." + p.kind + "Mode"); mode != "0700" {
		say("%sMode is %q: others could look into it", p.kind, mode)
	}
	for _, more := range []string{"ReadWritePaths", "StateDirectory", "CacheDirectory", "LogsDirectory", "RuntimeDirectory"} {
		if more != p.kind && len(u["Service."+more]) > 0 {
			say("%s lets it write to more than %s", more, p.folder)
		}
	}
	stop, err := strconv.Atoi(u.last("Service.TimeoutStopSec"))
	if err != nil || time.Duration(stop)*time.Second <= p.ending {
		say("TimeoutStopSec is %q, but ending takes up to %s", u.last("Service.TimeoutStopSec"), p.ending)
	}
	pause, err := strconv.Atoi(u.last("Service.RestartSec"))
	if err != nil || pause < 1 || pause > 30 || u.last("Unit.StartLimitIntervalSec") != "0" {
		say("RestartSec=%s with StartLimitIntervalSec=%s: it must be tried for ever, and not more than once a second", u.last("Service.RestartSec"), u.last("Unit.StartLimitIntervalSec"))
	}
	if files, err := strconv.Atoi(u.last("Service.LimitNOFILE")); err != nil || files < 2*p.files {
		say("LimitNOFILE is %q, want at least %d", u.last("Service.LimitNOFILE"), 2*p.files)
	}
	if score, err := strconv.Atoi(u.last("Service.OOMScoreAdjust")); err != nil || score >= 0 || score <= -1000 {
		say("OOMScoreAdjust is %q: others are to go first, but it is not to live at any price", u.last("Service.OOMScoreAdjust"))
	}
	if len(u["Service.Nice"])+len(u["Service.IOSchedulingClass"])+len(u["Service.CPUSchedulingPolicy"]) > 0 {
		say("a priority: workers set their own")
	}
	families := strings.Fields(u.last("Service.RestrictAddressFamilies"))
	slices.Sort(families)
	if !slices.Equal(families, []string{"AF_INET", "AF_INET6", "AF_NETLINK", "AF_UNIX"}) {
		say("RestrictAddressFamilies is %q", families)
	}
	calls := u.all("Service.SystemCallFilter")
	if len(calls) == 0 || calls[0] != "@system-service" {
		say("SystemCallFilter is %q: it must begin with the calls that are allowed, @system-service", calls)
	}
	if p.kind == "CacheDirectory" {
		checkWorkers(u, say)
	}
	return found
}

// checkWorkers is about what the worker processes of karui need.
func checkWorkers(u unit, say func(string, ...any)) {
	if u.last("Service.KillMode") != "mixed" {
		say("KillMode is %q: workers would be told to end while answers under way need them", u.last("Service.KillMode"))
	}
	if u.last("Service.OOMPolicy") != "continue" {
		say("OOMPolicy is %q: the death of one worker would end the service", u.last("Service.OOMPolicy"))
	}
	calls := strings.Join(u.all("Service.SystemCallFilter"), " ")
	for _, call := range []string{"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp"} {
		if !strings.Contains(calls, call) {
			say("SystemCallFilter lacks %s, by which workers confine themselves", call)
		}
	}
	if regexp.MustCompile(`~.*@resources`).MatchString(calls) {
		say("SystemCallFilter takes @resources away, by which workers lower their priority and limits")
	}
	if u.last("Service.MemoryDenyWriteExecute") == "yes" {
		say("MemoryDenyWriteExecute: the image libraries write code for the processor at hand")
	}
	if u.last("Service.ProcSubset") == "pid" {
		say("ProcSubset hides /proc/sys, where the length of the queue for connections stands")
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestUnitsKeepTheRules(t *testing.T) {
	for _, p := range []program{proxyProgram(), watchdogProgram()} {
		for _, problem := range problems(read(t, p.name+".service"), p) {
			t.Errorf("%s: %s", p.name, problem)
		}
	}
}

// Each rule is one that a unit can break: the same file with one change.
func TestTheRulesBite(t *testing.T) {
	p := proxyProgram()
	good := read(t, "karui.service")
	for key, value := range hardened {
		_, name, _ := strings.Cut(key, ".")
		bad := strings.Replace(good, "\n"+name+"="+value+"\n", "\n"+name+"=other\n", 1)
		if found := problems(bad, p); bad == good || len(found) != 1 || !strings.HasPrefix(found[0], key+" is ") {
			t.Errorf("%s: %q", key, found)
		}
	}
	for _, c := range []struct{ old, new, want string }{
		{"User=karui", "User=root", "runs as root"},
		{"Group=karui", "", "runs as karui:"},
		{"/usr/bin/karui serve", "/bin/sh -c 'karui serve'", "ExecStart"},
		{"CacheDirectory=karui", "CacheDirectory=images", "writes to /var/cache/karui"},
		{"CacheDirectoryMode=0700", "CacheDirectoryMode=0755", "others"},
		{"UMask=0077", "UMask=0077\nReadWritePaths=/srv", "ReadWritePaths"},
		{"UMask=0077", "UMask=0077\nStateDirectory=karui", "StateDirectory"},
		{"TimeoutStopSec=50", "TimeoutStopSec=40", "ending takes"},
		{"TimeoutStopSec=50", "", "ending takes"},
		{"RestartSec=5", "RestartSec=0", "RestartSec"},
		{"StartLimitIntervalSec=0", "StartLimitIntervalSec=60", "for ever"},
		{"LimitNOFILE=65536", "LimitNOFILE=10000", "LimitNOFILE"},
		{"OOMScoreAdjust=-100", "OOMScoreAdjust=-1000", "OOMScoreAdjust"},
		{"OOMScoreAdjust=-100", "", "OOMScoreAdjust"},
		{"UMask=0077", "UMask=0077\nNice=-5", "priority"},
		{"AF_INET AF_INET6 AF_UNIX AF_NETLINK", "AF_INET AF_INET6 AF_UNIX AF_NETLINK AF_PACKET", "AddressFamilies"},
		{"SystemCallFilter=@system-service", "SystemCallFilter=~@mount", "must begin"},
		{"KillMode=mixed", "KillMode=control-group", "KillMode"},
		{"OOMPolicy=continue", "OOMPolicy=stop", "OOMPolicy"},
		{"landlock_restrict_self ", "", "landlock_restrict_self"},
		{"~@keyring", "~@keyring @resources", "@resources"},
		{"UMask=0077", "UMask=0077\nMemoryDenyWriteExecute=yes", "MemoryDenyWriteExecute"},
		{"UMask=0077", "UMask=0077\nProcSubset=pid", "ProcSubset"},
		{"User=karui", "User", "not understood"},
	} {
		bad := strings.ReplaceAll(good, c.old, c.new)
		found := problems(bad, p)
		if bad == good || !slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, c.want) }) {
			t.Errorf("%q for %q: found %q, want one about %q", c.new, c.old, found, c.want)
		}
	}
}

// The machines of the terraform modules run the same units, with a longer time to end
// where drain is longer.
func TestUnitsAreTheOnesThatTerraformExpects(t *testing.T) {
	for module, want := range map[string][]string{
		"proxy":    {"/etc/systemd/system/karui.service.d", "systemctl enable karui.service", "chown karui:karui /var/cache/karui", ">/etc/karui/karui.yaml", "chown -R root:karui /etc/karui/secrets"},
		"watchdog": {"/etc/systemd/system/karui-watchdog.service.d", "systemctl enable karui-watchdog.service", "chown -R karui-watchdog:karui-watchdog /var/lib/karui-watchdog", ">/etc/karui/watchdog.yaml", "chown -R root:karui-watchdog /etc/karui/secrets"},
	} {
		text := read(t, filepath.Join("../../terraform/modules", module, "user-data.sh.tftpl"))
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q is not in it any more: do the packages still fit?", module, w)
			}
		}
	}
}

// What systemd itself thinks of the units, where there is one.
func TestSystemdTakesTheUnits(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	for _, name := range []string{"karui", "karui-watchdog"} {
		file := name + ".service"
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=15", file).CombinedOutput()
		if err != nil {
			t.Errorf("%s: exposure over 1.5: %v\n%s", file, err, out)
		}
		// verify wants the programs to be there, which they are not; everything else counts.
		out, _ = exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", "./"+file).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, file) && !strings.Contains(line, "/usr/bin/"+name+" is not executable") {
				t.Error(line)
			}
		}
	}
}
