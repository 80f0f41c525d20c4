package deploy

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"karui/cache"
	"karui/internal/server"
	"karui/watchdog/settings"
)

// service is what is looked at of one.
type service struct {
	Image       string
	Build       struct{ Context, Target string }
	User        string
	Restart     string
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	CapAdd      []string `yaml:"cap_add"`
	SecurityOpt []string `yaml:"security_opt"`
	Privileged  bool
	NetworkMode string `yaml:"network_mode"`
	Pid         string
	Ports       []string
	Volumes     []string
	Secrets     []string
	Profiles    []string
	Environment []string
	Grace       string `yaml:"stop_grace_period"`
	MemLimit    string `yaml:"mem_limit"`
	PidsLimit   int    `yaml:"pids_limit"`
	Ulimits     struct{ Nofile struct{ Soft, Hard int } }
	Healthcheck struct {
		Test                       []string
		Interval, Timeout, Disable string
		StartPeriod                string `yaml:"start_period"`
		Retries                    int
	}
}

type composition struct {
	Services map[string]service
	Volumes  map[string]any
	Secrets  map[string]struct{ File string }
}

// expected is what the images say of themselves.
type expected struct {
	target, folder, config string
	ending                 time.Duration
	health                 []string
}

func images(t *testing.T) map[string]expected {
	t.Helper()
	c := server.DefaultConfig()
	return map[string]expected{
		"karui":          {"karui", cache.DefaultVolume().Path, server.DefaultFile, c.Drain + 10*time.Second, []string{"CMD", "/usr/local/bin/karui", "healthcheck"}},
		"karui-watchdog": {"watchdog", settings.Default().StateDir, settings.DefaultFile, time.Minute, nil},
	}
}

// users gives the USER of each stage of the Dockerfile.
func users(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	found, stage := map[string]string{}, ""
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 4 && words[0] == "FROM":
			stage = words[3]
		case len(words) == 2 && words[0] == "USER":
			found[stage] = words[1]
		}
	}
	return found
}

// literal is a secret that stands in the file itself.
var literal = regexp.MustCompile(`(?i)(secret|token|passw|key)[a-z_]*=.`)

// composeProblems lists what a compose file does that ours must not do.
func composeProblems(t *testing.T, text string) []string {
	t.Helper()
	var c composition
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return []string{err.Error()}
	}
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	names := images(t)
	user := users(t)
	if len(c.Services) != len(names) {
		say("%d services", len(c.Services))
	}
	for name, want := range names {
		s, there := c.Services[name]
		if !there {
			say("no service %s", name)
			continue
		}
		say := func(format string, args ...any) { say(name+": "+format, args...) }
		checkConfined(s, user[want.target], say)
		if s.Build.Target != want.target || !strings.HasPrefix(s.Image, name+":") {
			say("image %s of the target %q", s.Image, s.Build.Target)
		}
		grace, err := time.ParseDuration(s.Grace)
		if err != nil || grace <= want.ending {
			say("stop_grace_period is %q, but ending takes up to %s", s.Grace, want.ending)
		}
		if s.MemLimit == "" || s.PidsLimit == 0 {
			say("no bound on memory or processes")
		}
		if !slices.Equal(s.Healthcheck.Test, want.health) {
			say("health is asked by %q", s.Healthcheck.Test)
		}
		checkMounts(s, want, c, say)
	}
	if ports := c.Services["karui"].Ports; !slices.Equal(ports, []string{"8080:8080"}) {
		say("karui: ports %q: only the edge's is to be reached from outside", ports)
	}
	if c.Services["karui"].Ulimits.Nofile.Hard < 4*server.DefaultConfig().Limits.Connections {
		say("karui: too few open files")
	}
	if dog := c.Services["karui-watchdog"]; len(dog.Ports) > 0 || len(dog.Profiles) != 1 {
		say("karui-watchdog: started with the proxy, or reached from outside")
	}
	return found
}

func checkConfined(s service, user string, say func(string, ...any)) {
	if s.User != user || user == "" {
		say("user %q, the image's is %q", s.User, user)
	}
	if !s.ReadOnly {
		say("its file system can be written to")
	}
	if !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 {
		say("capabilities are left: %q less %q", s.CapAdd, s.CapDrop)
	}
	if !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || len(s.SecurityOpt) > 1 {
		say("security_opt is %q", s.SecurityOpt)
	}
	if s.Privileged || s.NetworkMode != "" || s.Pid != "" {
		say("shares what is the machine's")
	}
	if s.Restart != "unless-stopped" {
		say("restart is %q", s.Restart)
	}
	for _, e := range s.Environment {
		if literal.MatchString(e) {
			say("a secret stands in the file: %s", e)
		}
	}
}

func checkMounts(s service, want expected, c composition, say func(string, ...any)) {
	var written []string
	configured := false
	for _, v := range s.Volumes {
		parts := strings.Split(v, ":")
		from := parts[0]
		to := ""
		if len(parts) > 1 {
			to = parts[1]
		}
		if len(parts) == 3 && parts[2] == "ro" {
			configured = configured || to == want.config
			continue
		}
		written = append(written, to)
		if _, declared := c.Volumes[from]; !declared {
			say("volume %s is not declared", from)
		}
	}
	if !slices.Equal(written, []string{want.folder}) {
		say("writes to %q, want %s alone", written, want.folder)
	}
	if !configured {
		say("%s is not mounted, or can be written to", want.config)
	}
	for _, secret := range s.Secrets {
		if f := c.Secrets[secret].File; f != "./secrets/"+secret {
			say("secret %s is in %q", secret, f)
		}
	}
	if len(s.Secrets) == 0 {
		say("no secret comes as a file")
	}
}

func TestComposeKeepsTheRules(t *testing.T) {
	b, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	good := string(b)
	for _, p := range composeProblems(t, good) {
		t.Error(p)
	}
	for _, c := range []struct{ old, new, want string }{
		{"read_only: true", "read_only: false", "written to"},
		{"cap_drop: [ALL]", "cap_drop: []", "capabilities"},
		{"cap_drop: [ALL]", "cap_drop: [ALL]\n  cap_add: [NET_ADMIN]", "capabilities"},
		{`"no-new-privileges:true"`, "", "security_opt"},
		{"restart: unless-stopped", "privileged: true", "shares"},
		{"restart: unless-stopped", "restart: \"no\"", "restart"},
		{"restart: unless-stopped", "restart: unless-stopped\n  network_mode: host", "shares"},
		{`user: "10001:10001"`, `user: root`, "user"},
		{`"8080:8080"`, `"8080:8080", "9090:9090"`, "only the edge's"},
		{"stop_grace_period: 50s", "stop_grace_period: 10s", "ending takes"},
		{"mem_limit: 4g", "", "bound"},
		{"cache:/var/cache/karui", "/:/var/cache/karui", "not declared"},
		{"cache:/var/cache/karui", "cache:/data", "alone"},
		{"karui.yaml:ro", "karui.yaml", "alone"},
		{"profiles: [watchdog]", "", "started with the proxy"},
		{"AWS_REGION]", "AWS_SECRET_ACCESS_KEY=abc]", "stands in the file"},
		{"secrets: [edge]", "secrets: []", "no secret"},
		{"/usr/local/bin/karui, healthcheck]", "curl, localhost]", "health"},
		{"hard: 65536", "hard: 1024", "open files"},
		{"target: watchdog", "target: karui", "target"},
	} {
		bad := strings.ReplaceAll(good, c.old, c.new)
		found := composeProblems(t, bad)
		if bad == good || !slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, c.want) }) {
			t.Errorf("%q for %q: found %q, want one about %q", c.new, c.old, found, c.want)
		}
	}
}
