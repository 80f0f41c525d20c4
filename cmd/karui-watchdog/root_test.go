package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"karui/watchdog/settings"
)

// command runs a command line in this process and gives its exit code and what
// it wrote.
func command(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot()
	root.SetIn(strings.NewReader(stdin))
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	cmd, err := root.ExecuteContextC(context.Background())
	code = report(&errs, cmd, err)
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
		{"status", "extra"},
		{"degrade"},
		{"restore", "a", "b"},
		{"rehearse"},
		{"rehearse", "shop", "--swap", "--no-write"},
		{"version", "extra"},
		{"config", "chekc"},
		{"config", "check", "--config"},
		{"check", "--config", ""},
	} {
		code, stdout, stderr := command(t, "", args...)
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "karui-watchdog: ") || !strings.Contains(stderr, "--help'.\n") {
			t.Errorf("%q: %d %q %q", args, code, stdout, stderr)
		}
	}
}

func TestBadConfigurationIsWrongUsage(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.yaml")
	bad := file(t, "intervall: 5m\nsites: [{id: shop}]\n")
	for _, args := range [][]string{{"run"}, {"check"}, {"status"}, {"degrade", "shop", "--yes"}, {"rehearse", "shop"}, {"config", "check"}, {"config", "print"}} {
		if code, stdout, stderr := command(t, "", append(args, "-c", missing)...); code != 2 || stdout != "" || !strings.Contains(stderr, "no such file") {
			t.Errorf("%q: %d %q %q", args, code, stdout, stderr)
		}
		code, _, stderr := command(t, "", append(args, "-c", bad)...)
		if code != 2 || !strings.Contains(stderr, "intervall is not a known key; did you mean interval?") || !strings.Contains(stderr, "sites[0].ping_url is missing") {
			t.Errorf("%q: %d %q", args, code, stderr)
		}
	}
}

func TestNoConfigurationAtAllNamesTheFile(t *testing.T) {
	if _, err := os.Stat(settings.DefaultFile); err == nil {
		t.Skip("this machine has a configuration")
	}
	code, _, stderr := command(t, "", "status")
	if code != 2 || !strings.Contains(stderr, settings.DefaultFile+" does not exist") || !strings.Contains(stderr, "--config") {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestConfigCheckAndPrint(t *testing.T) {
	code, stdout, stderr := command(t, "", "config", "check", "-c", example)
	if code != 0 || !strings.HasPrefix(stdout, "ok\n") || !strings.Contains(stdout, "1 site, a round every 5m0s") || !strings.Contains(stderr, "warning: heartbeat_url is empty") {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
	t.Setenv("KARUI_WATCHDOG_PING_COUNT", "3")
	code, stdout, _ = command(t, "", "config", "print", "-c", example)
	if code != 0 || !strings.Contains(stdout, "count: 3 # KARUI_WATCHDOG_PING_COUNT") {
		t.Errorf("%d %q", code, stdout)
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if cmd.Name() == "help" || strings.Contains(cmd.CommandPath(), "completion") {
			return
		}
		code, stdout, stderr := command(t, "", append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, cmd.Short) && !strings.Contains(stdout, cmd.Long) || len(cmd.Commands()) == 0 && !strings.Contains(stdout, "Examples:") {
			t.Errorf("%s: %d %q %q", cmd.CommandPath(), code, stdout, stderr)
		}
	}
	visit(newRoot())
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
