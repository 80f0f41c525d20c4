package deb

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"karui/internal/cloudfront"
	"karui/internal/sample"
)

const (
	originAddress = "127.0.0.1:18080"
	secret        = "only-the-edge-knows"
	edited        = `# edited by an operator
edge: { secrets: ["file:/etc/karui/secrets/edge"] }
sites:
  - id: shop
    hosts: [www.example.com]
    default: true
    origins: [{ name: here, urls: ["http://` + originAddress + `"] }]
`
	policyID = "b2884449-e4de-46a7-ac36-70bc7f1ddd6d"
	role     = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"cloudfront:*","Resource":"*"}]}`
)

// built is where both packages lie, in two versions; those of 2.0 bring another
// configuration file.
type built struct{ dir string }

func (b built) file(t *testing.T, name, version string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(b.dir, name+"_"+version+"_*.deb"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s %s: %q %v", name, version, found, err)
	}
	return found[0]
}

// build makes the packages as make deb does.
func build(ctx context.Context, dir string) error {
	run := func(env []string, name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %q: %w\n%s", name, args, err, tail(string(out)))
		}
		return nil
	}
	if err := run(nil, "go", "build", "-o", filepath.Join(dir, "karui"), "./cmd/karui"); err != nil {
		return err
	}
	if err := run([]string{"CGO_ENABLED=0"}, "go", "build", "-o", filepath.Join(dir, "karui-watchdog"), "./cmd/karui-watchdog"); err != nil {
		return err
	}
	if err := run([]string{"VERSION=v1.0.0", "SOURCE_DATE_EPOCH=1767225600"}, "scripts/deb", dir); err != nil {
		return err
	}
	for _, name := range []string{"karui", "karui-watchdog"} {
		// A later version, with a configuration file that was changed.
		script := `set -e
old=$(echo ` + name + `_1.0.0_*.deb); dpkg-deb -R $old next-` + name + `
sed -i 's/^Version: .*/Version: 2.0.0/' next-` + name + `/DEBIAN/control
for f in next-` + name + `/etc/karui/*.yaml; do echo '# new in this version' >>$f; done
sed -i '/ etc\/karui/d' next-` + name + `/DEBIAN/md5sums
dpkg-deb -Zgzip -z1 -b next-` + name + ` $(echo $old | sed s/1.0.0/2.0.0/)`
		if err := run(nil, "sh", "-c", "cd "+dir+" && "+script); err != nil {
			return err
		}
	}
	return nil
}

// Both packages on a fresh machine, from the first installation to the last trace.
func TestPackages(t *testing.T) {
	required(t)
	p := built{t.TempDir()}
	var building errgroup.Group
	building.Go(func() error { return build(t.Context(), p.dir) })
	t.Cleanup(func() { _ = building.Wait() }) // also where the machine cannot be made
	m := newMachine(t)
	if err := building.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"karui", "karui-watchdog"} {
		for _, version := range []string{"1.0.0", "2.0.0"} {
			m.here("cp", p.file(t, name, version), m.path("/root/"+name+"_"+version+".deb"))
		}
	}

	// The machines of the terraform modules have the folder of secrets before the group.
	m.in("install", "-d", "-m", "0750", "/etc/karui/secrets")
	// A chroot, as images are built in: no systemd runs, and nothing is started.
	m.install("/root/karui_1.0.0.deb", "/root/karui-watchdog_1.0.0.deb")
	installed(m)
	m.boot()
	first(m)
	cloud := configured(m)
	watched(m, cloud)
	upgraded(m)
	refused(m)
	removed(m)
}

// installed looks at what lies there before anything was started.
func installed(m *machine) {
	for file, want := range map[string]string{
		"/var/cache/karui":         "drwx------ karui karui",
		"/var/lib/karui-watchdog":  "drwx------ karui-watchdog karui-watchdog",
		"/etc/karui/karui.yaml":    "-rw-r----- root karui",
		"/etc/karui/watchdog.yaml": "-rw-r----- root karui-watchdog",
		"/usr/bin/karui":           "-rwxr-xr-x root root",
		"/usr/bin/karui-watchdog":  "-rwxr-xr-x root root",
		"/usr/share/doc/karui":     "drwxr-xr-x root root",
		"/etc/systemd/system/multi-user.target.wants/karui.service": "lrwxrwxrwx root root",
		"/usr/share/bash-completion/completions/karui":              "-rw-r--r-- root root",
		"/usr/share/zsh/vendor-completions/_karui-watchdog":         "-rw-r--r-- root root",
		"/usr/share/fish/vendor_completions.d/karui.fish":           "-rw-r--r-- root root",
	} {
		if got := strings.TrimSpace(m.in("stat", "-c", "%A %U %G", file)); got != want {
			m.t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
	// Both on one machine: each may pass through to its own secrets, nobody may list them.
	for _, user := range []string{"karui", "karui-watchdog"} {
		m.in("runuser", "-u", user, "--", "test", "-x", "/etc/karui/secrets")
	}
	if out, code := m.try("runuser", "-u", "nobody", "--", "ls", "/etc/karui/secrets"); code == 0 {
		m.t.Errorf("anybody may list the secrets: %s", out)
	}
	if shell := m.in("getent", "passwd", "karui"); !strings.HasSuffix(shell, ":/nonexistent:/usr/sbin/nologin\n") {
		m.t.Error(shell)
	}
	if out := m.in("karui", "version"); !strings.HasPrefix(out, "karui ") {
		m.t.Error(out)
	}
	if out := m.in("apt-get", "-s", "check"); strings.Contains(out, "unmet") {
		m.t.Error(out)
	}
}

// first is the boot with the configuration files that came with the packages: there
// is nothing to serve, which is said once and not tried again and again.
func first(m *machine) {
	for _, unit := range []string{"karui", "karui-watchdog"} {
		m.eventually(unit+" says that its configuration is empty", func() bool {
			return m.property(unit, "ActiveState") == "failed"
		})
		if status, n := m.property(unit, "ExecMainStatus"), m.property(unit, "NRestarts"); status != "2" || n != "0" {
			m.t.Errorf("%s: ended with %s after %s restarts", unit, status, n)
		}
		// What systemd does not know of a unit it only says in its log.
		if log, _ := m.try("journalctl", "-b", "--no-pager", "-o", "cat", "_PID=1"); strings.Contains(log, unit+".service:") && strings.Contains(log, "ignoring") {
			m.t.Error(log)
		}
	}
}

func (m *machine) property(unit, name string) string {
	m.t.Helper()
	return strings.TrimSpace(m.in("systemctl", "show", "--value", "--property", name, unit))
}

// ask requests a path of karui as the edge does.
func (m *machine) ask(path string) (*http.Response, []byte) {
	m.t.Helper()
	req, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, "http://127.0.0.1:8080"+path, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	req.Host = "www.example.com"
	if path == "/ping.jpg" {
		req.Host = "127.0.0.1:8080"
	}
	req.Header.Set("Accept", "image/webp")
	req.Header.Set("X-Karui-Key", secret)
	resp, err := m.client().Do(req)
	if err != nil {
		return nil, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 10<<20))
	if err != nil {
		return nil, nil
	}
	return resp, body
}

func (m *machine) answers() {
	m.t.Helper()
	m.eventually("the ping is answered", func() bool {
		resp, body := m.ask("/ping.jpg")
		return resp != nil && resp.StatusCode == http.StatusOK && strings.HasPrefix(string(body), "\xff\xd8\xff")
	})
	m.eventually("a photo comes as WebP", func() bool {
		resp, body := m.ask(sample.PhotoPath)
		return resp != nil && resp.Header.Get("Content-Type") == "image/webp" && len(body) > 12 && string(body[8:12]) == "WEBP"
	})
}

// configured does what an operator does, and asks for images.
func configured(m *machine) *cloudfront.Double {
	m.serve(originAddress, sample.New())
	m.write("/etc/karui/karui.yaml", edited, 0o640)
	m.write("/etc/karui/secrets/edge", secret+"\n", 0o640)
	m.in("chgrp", "karui", "/etc/karui/secrets/edge")
	m.in("runuser", "-u", "karui", "--", "karui", "config", "check")
	m.in("systemctl", "restart", "karui")
	m.in("runuser", "-u", "karui", "--", "karui", "healthcheck") // a restart ends when it is ready
	m.answers()

	// The unit's restrictions hold, and the workers have put theirs on top.
	pid := m.property("karui", "MainPID")
	status := m.in("cat", "/proc/"+pid+"/status")
	for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"} {
		if !strings.Contains(status, want) {
			m.t.Errorf("the front process lacks %s:\n%s", want, status)
		}
	}
	if out, code := m.try("nsenter", "--target", pid, "--mount", "--", "touch", "/etc/karui/x"); code == 0 {
		m.t.Errorf("the unit's file system can be written to: %s", out)
	}
	workers := strings.Fields(m.in("sh", "-c", "cat /proc/"+pid+"/task/*/children"))
	if len(workers) == 0 {
		m.t.Error("no workers")
	}
	for _, worker := range workers {
		limits := m.in("cat", "/proc/"+worker+"/status", "/proc/"+worker+"/limits")
		if !strings.Contains(limits, "Seccomp:\t2") || !strings.Contains(limits, "Max core file size        0 ") {
			m.t.Errorf("worker %s is not confined:\n%s", worker, limits)
		}
	}
	if log, _ := m.try("journalctl", "-u", "karui", "--no-pager", "-o", "cat"); strings.Contains(log, "seccomp: ") || strings.Contains(log, "nice: ") {
		m.t.Errorf("the unit keeps workers from confining themselves:\n%s", tail(log))
	}

	m.write("/etc/karui/karui.yaml", edited+"drain: 5s\n", 0o640)
	m.in("systemctl", "reload", "karui")
	if again := m.property("karui", "MainPID"); again != pid {
		m.t.Errorf("a reload restarts it: %s, was %s", again, pid)
	}
	return aws(m)
}

// aws is the double of AWS in the machine's network.
func aws(m *machine) *cloudfront.Double {
	must := func(err error) {
		m.t.Helper()
		if err != nil {
			m.t.Fatal(err)
		}
	}
	d := cloudfront.New(cloudfront.Options{})
	shop, err := os.ReadFile("../../internal/cloudfront/testdata/shop.xml")
	must(err)
	must(d.PutCachePolicy(cloudfront.CachePolicy{ID: policyID, Name: "images", DefaultTTL: time.Hour, MaxTTL: 24 * time.Hour, Headers: []string{"Accept"}}))
	must(d.PutDistribution("ESHOP", shop))
	user, err := d.AddUser("watchdog", cloudfront.AllowAll)
	must(err)
	_, err = d.PutRole(cloudfront.Role{Name: "karui-watchdog", ExternalID: "external-17", Policy: role})
	must(err)
	var url string
	must(m.within(func() error {
		server, err := d.Start("127.0.0.1:18090")
		if err != nil {
			return err
		}
		url = server.URL
		m.t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = server.Close(ctx)
		})
		return nil
	}))
	m.write("/etc/default/karui-watchdog", fmt.Sprintf(`AWS_ENDPOINT_URL_CLOUDFRONT=%[1]s
AWS_ENDPOINT_URL_STS=%[1]s
AWS_ENDPOINT_URL_SESV2=%[1]s
AWS_ACCESS_KEY_ID=%[2]s
AWS_SECRET_ACCESS_KEY=%[3]s
AWS_REGION=eu-west-1
AWS_EC2_METADATA_DISABLED=true
`, url, user.AccessKeyID, user.SecretAccessKey), 0o600)
	m.write("/etc/karui/watchdog.yaml", `# edited by an operator
ping: { count: 2, spacing: 100ms, timeout: 800ms }
interval: 3s
control_urls: [`+url+`]
mail: { from: karui@example.com, to: [ops@example.com], ses: { region: eu-west-1 } }
sites:
  - id: shop
    ping_url: http://127.0.0.1:8080/ping.jpg
    origin_url: http://`+originAddress+`/
    distribution_id: ESHOP
    origin_group_id: images
    proxy_origin_id: karui
    direct_origin_id: origin
    role_arn: arn:aws:iam::111122223333:role/karui-watchdog
    external_id: external-17
`, 0o640)
	return d
}

// watched lets the watchdog look, by hand and as a service, and takes karui away.
func watched(m *machine, cloud *cloudfront.Double) {
	check := m.in("sh", "-c", "set -a; . /etc/default/karui-watchdog; exec runuser -u karui-watchdog -- karui-watchdog check")
	if !strings.Contains(check, "shop  up") || !strings.Contains(check, "proxy first") {
		m.t.Errorf("check: %s", check)
	}
	m.in("systemctl", "restart", "karui-watchdog")
	m.in("systemctl", "stop", "karui")
	m.eventually("the watchdog degrades and tells of it", func() bool { return len(cloud.Messages()) == 1 })
	m.in("systemctl", "start", "karui")
	m.answers()
	m.eventually("the watchdog restores and tells of it", func() bool { return len(cloud.Messages()) == 2 })
	if out := m.in("runuser", "-u", "karui-watchdog", "--", "karui-watchdog", "status"); !strings.Contains(out, "shop") {
		m.t.Error(out)
	}
}

// upgraded brings the next version: the configuration stays, and what runs is new.
func upgraded(m *machine) {
	config := m.read("/etc/karui/karui.yaml")
	dog := m.read("/etc/karui/watchdog.yaml")
	before := []string{m.property("karui", "MainPID"), m.property("karui-watchdog", "MainPID")}
	m.install("/root/karui_2.0.0.deb", "/root/karui-watchdog_2.0.0.deb")
	if m.read("/etc/karui/karui.yaml") != config || m.read("/etc/karui/watchdog.yaml") != dog {
		m.t.Error("the upgrade has changed the configuration")
	}
	if !strings.HasSuffix(m.read("/etc/karui/karui.yaml.dpkg-dist"), "# new in this version\n") {
		m.t.Error("the new configuration does not lie beside the old one")
	}
	after := []string{m.property("karui", "MainPID"), m.property("karui-watchdog", "MainPID")}
	if after[0] == before[0] || after[1] == before[1] || slices.Contains(after, "0") {
		m.t.Errorf("not restarted: %q, were %q", after, before)
	}
	m.answers()
	if resp, _ := m.ask(sample.PhotoPath); resp == nil || resp.Header.Get("X-Karui") != "hit" {
		m.t.Error("the cache did not live through the upgrade")
	}
	// Stopped by a person: not started by an upgrade.
	m.in("systemctl", "stop", "karui-watchdog")
	m.install("--reinstall", "/root/karui-watchdog_2.0.0.deb")
	if state := m.property("karui-watchdog", "ActiveState"); state != "inactive" {
		m.t.Errorf("an upgrade starts what somebody has stopped: %s", state)
	}
}

// refused is an upgrade with a configuration that the new version does not take: the
// old one goes on.
func refused(m *machine) {
	m.write("/etc/karui/karui.yaml", edited+"speed: high\n", 0o640)
	before := m.property("karui", "MainPID")
	out := m.install("--reinstall", "/root/karui_2.0.0.deb")
	if !strings.Contains(out, "speed is not a known key") || !strings.Contains(out, "goes on running") {
		m.t.Error(tail(out))
	}
	if after := m.property("karui", "MainPID"); after != before {
		m.t.Errorf("restarted: %s, was %s", after, before)
	}
	// Its workers are of its own version still: a picture that it has not seen yet.
	m.eventually("the old version goes on converting", func() bool {
		resp, _ := m.ask(sample.PhotoPath + "?another=1")
		return resp != nil && resp.Header.Get("Content-Type") == "image/webp"
	})
	m.write("/etc/karui/karui.yaml", edited, 0o640)
}

// removed takes both away, step by step.
func removed(m *machine) {
	remove := func(action string, packages ...string) string {
		return m.in(append([]string{"apt-get", action, "-qy"}, packages...)...)
	}
	remove("remove", "karui", "karui-watchdog")
	if m.property("karui", "ActiveState") == "active" || !m.exists("/etc/karui/karui.yaml") || !m.exists("/var/cache/karui/entries") || m.exists("/usr/bin/karui") {
		m.t.Error("remove does not stop it, or takes what only purge takes")
	}

	// A file of somebody else keeps the folder, and the number of the user with it.
	m.in("mkdir", "/var/cache/karui/entries/theirs")
	m.write("/var/cache/karui/entries/theirs/mine.txt", "not karui's", 0o600)
	if out := remove("purge", "karui"); !strings.Contains(out, "/var/cache/karui is kept") || m.read("/var/cache/karui/entries/theirs/mine.txt") != "not karui's" || m.exists("/var/cache/karui/format") {
		m.t.Errorf("purge beside a foreign file: %s", out)
	}
	if !m.exists("/etc/karui/watchdog.yaml") {
		m.t.Error("purging karui takes what is the watchdog's")
	}
	m.in("getent", "passwd", "karui")

	m.install("/root/karui_1.0.0.deb")
	m.in("rm", "-r", "/var/cache/karui/entries/theirs")
	m.in("rm", "/etc/default/karui-watchdog") // the test's own
	remove("purge", "karui", "karui-watchdog")
	for _, name := range []string{"karui", "karui-watchdog"} {
		if out, code := m.try("getent", "passwd", name); code == 0 {
			m.t.Errorf("left: %s", out)
		}
		if out, code := m.try("getent", "group", name); code == 0 {
			m.t.Errorf("left: %s", out)
		}
	}
	var left []string
	for path := range strings.Lines(m.in("find", "/", "-xdev", "-iname", "*karui*", "-not", "-path", "/root/*", "-not", "-path", "/proc/*")) {
		left = append(left, strings.TrimSpace(path))
	}
	if len(left) > 0 {
		m.t.Errorf("left: %q", left)
	}
}
