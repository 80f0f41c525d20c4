package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"karui/internal/command"
	"karui/watchdog/settings"
)

// commandLine runs a command line in this process and gives its exit code and what
// it wrote.
func commandLine(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot()
	root.SetIn(strings.NewReader(stdin))
	code = command.Run(context.Background(), root, args, &out, &errs)
	return code, out.String(), errs.String()
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "watchdog.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const example = "../../watchdog/settings/testdata/watchdog.yaml"

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"frobnicate"},
		{"--frobnicate"},
		{"run", "extra"},
		{"check", "--frobnicate"},
		{"status", "shop", "extra"},
		{"degrade"},
		{"restore", "a", "b"},
		{"rehearse"},
		{"rehearse", "shop", "--swap", "--no-write"},
		{"version", "extra"},
		{"config", "chekc"},
		{"completion", "tcsh"},
		{"help", "nosuch"},
		{"help", "config", "nosuch"},
		{"config", "check", "--config"},
		{"check", "--config", ""},
	} {
		code, stdout, stderr := commandLine(t, "", args...)
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "karui-watchdog: ") || !strings.Contains(stderr, "--help'.\n") {
			t.Errorf("%q: %d %q %q", args, code, stdout, stderr)
		}
	}
}

func TestBadConfigurationIsWrongUsage(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.yaml")
	bad := file(t, "intervall: 5m\nsites: [{id: shop}]\n")
	for _, args := range [][]string{{"run"}, {"check"}, {"status"}, {"degrade", "shop", "--yes"}, {"rehearse", "shop"}, {"config", "check"}, {"config", "print"}} {
		if code, stdout, stderr := commandLine(t, "", append(args, "-c", missing)...); code != 2 || stdout != "" || !strings.Contains(stderr, "no such file") {
			t.Errorf("%q: %d %q %q", args, code, stdout, stderr)
		}
		code, _, stderr := commandLine(t, "", append(args, "-c", bad)...)
		if code != 2 || !strings.Contains(stderr, "intervall is not a known key; did you mean interval?") || !strings.Contains(stderr, "sites[0].ping_url is missing") {
			t.Errorf("%q: %d %q", args, code, stderr)
		}
	}
}

func TestNoConfigurationAtAllNamesTheFile(t *testing.T) {
	if _, err := os.Stat(settings.DefaultFile); err == nil {
		t.Skip("this machine has a configuration")
	}
	code, _, stderr := commandLine(t, "", "status")
	if code != 2 || !strings.Contains(stderr, settings.DefaultFile+" does not exist") || !strings.Contains(stderr, "--config") {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestConfigCheckAndPrint(t *testing.T) {
	code, stdout, stderr := commandLine(t, "", "config", "check", "-c", example)
	if code != 0 || !strings.HasPrefix(stdout, "ok\n") || !strings.Contains(stdout, "1 site, a round every 5m0s") || !strings.Contains(stderr, "warning: heartbeat_url is empty") {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
	t.Setenv("KARUI_WATCHDOG_PING_COUNT", "3")
	code, stdout, _ = commandLine(t, "", "config", "print", "-c", example)
	if code != 0 || !strings.Contains(stdout, "count: 3 # KARUI_WATCHDOG_PING_COUNT") {
		t.Errorf("%d %q", code, stdout)
	}
}

func TestNobodyIsSwappedWithoutBeingAsked(t *testing.T) {
	l := newLab(t)
	code, _, stderr := l.run("degrade", "shop")
	if code != 2 || !strings.Contains(stderr, "add --yes") || l.updates() != 0 {
		t.Errorf("%d %s", code, stderr)
	}
	if code, _, stderr = l.run("degrade", "shpo", "--yes"); code != 2 || !strings.Contains(stderr, `no site has the id "shpo"; the configuration has shop`) {
		t.Errorf("%d %s", code, stderr)
	}
}

// A mail that cannot be sent waits, and goes out once.
func TestMailWaits(t *testing.T) {
	l := newLab(t)
	l.proxy.stop()
	l.Fail("SendEmail", 1000, 503, "ServiceUnavailable", "later")
	code, _, stderr := l.run("check")
	if code != 1 || !strings.Contains(stderr, "mail: ") || !l.direct() || len(l.Messages()) != 0 {
		t.Fatalf("%d %s", code, stderr)
	}
	if code, stdout, _ := l.run("status"); code != 0 || !strings.Contains(stdout, "mails waiting: 1") || !strings.Contains(stdout, "DOWN and degraded") {
		t.Errorf("%d %s", code, stdout)
	}
	l.Calm()
	for range 2 {
		l.run("check")
	}
	if got := l.subjects(); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// Up is not well when the watchdog could not act.
func TestCheckSaysThatItCouldNotAct(t *testing.T) {
	l := newLab(t)
	for i, v := range l.env {
		if strings.HasPrefix(v, "AWS_ACCESS_KEY_ID=") || strings.HasPrefix(v, "AWS_SECRET_ACCESS_KEY=") {
			l.env[i] = v[:strings.Index(v, "=")+1]
		}
		if strings.HasPrefix(v, "AWS_EC2_METADATA_DISABLED=") {
			// Nobody answers there, of which the SDK would log a line of its own.
			l.env[i] = "AWS_EC2_METADATA_SERVICE_ENDPOINT=" + l.control.url("/")
		}
	}
	code, stdout, stderr := l.run("check")
	if code != 1 || !strings.Contains(stdout, "shop  up") || !strings.Contains(stdout, "shop: the order could not be read, so that nothing could be done") ||
		!strings.Contains(stdout, "\n  -> give the watchdog AWS credentials of its own") {
		t.Errorf("%d %s", code, stdout)
	}
	if strings.Contains(stderr, "SDK ") {
		t.Errorf("%s", stderr)
	}
}

// Who asks how things are leaves no trace, and needs no right to write.
func TestStatusWritesNothing(t *testing.T) {
	l := newLab(t)
	code, stdout, stderr := l.run("status")
	if code != 0 || !strings.Contains(stdout, "not looked at yet") || stderr != "" {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(l.dir, "state")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it made state_dir: %v", err)
	}
}

// A state directory that cannot be made keeps nobody from degrading, and says what
// to do to those who cannot go on.
func TestWithoutAStateDirectory(t *testing.T) {
	l := newLab(t)
	l.top["state_dir"] = filepath.Join(file(t, ""), "state")
	code, stdout, stderr := l.run("degrade", "shop", "--yes")
	if code != 0 || !l.direct() || !strings.Contains(stdout, "true origin first now") || !strings.Contains(stderr, "going on without a state directory") || !strings.Contains(stderr, "warning: state_dir does not tell of this") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	if got := l.subjects(); len(got) != 1 || !strings.Contains(got[0], "DEGRADED") {
		t.Errorf("%q", got)
	}
	for _, args := range [][]string{{"restore", "shop", "--yes"}, {"rehearse", "shop"}} {
		if code, _, stderr := l.run(args...); code != 1 || !strings.Contains(stderr, "let it belong to the watchdog's user") || !l.direct() {
			t.Errorf("%q: %d %s", args, code, stderr)
		}
	}
	p := l.begin("run")
	l.eventually("mail of what it finds", func() bool { return len(l.subjects()) == 2 })
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 || !strings.Contains(p.stderr.String(), "going on without a state directory") {
		t.Errorf("%d %s", code, &p.stderr)
	}
}

// The watchdog shares nothing with the proxy, not even a library, and needs no C.
func TestSharesNothingWithTheProxy(t *testing.T) {
	list := exec.Command("go", "list", "-deps", ".")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for pkg := range strings.Lines(string(out)) {
		for _, foreign := range []string{"karui/proxy", "karui/convert", "karui/cache", "karui/internal/server", "karui/internal/cloudfront", "github.com/davidbyttow/govips", "runtime/cgo"} {
			if name := strings.TrimSpace(pkg); name == foreign || strings.HasPrefix(name, foreign+"/") {
				t.Errorf("imports %s", name)
			}
		}
	}
}
