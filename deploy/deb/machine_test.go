package deb

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// machine is a Debian of its own in a folder, which is first changed from outside
// and then booted.
type machine struct {
	t      *testing.T
	root   string
	leader int // process 1 as this machine sees it; 0 before boot
}

// required skips where something is missing that is not karui's.
func required(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("makes a whole Debian")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make and boot a root file system")
	}
	for tool, from := range map[string]string{
		"debootstrap": "debootstrap", "systemd-nspawn": "systemd-container", "nsenter": "util-linux",
		"dpkg-deb": "dpkg", "dpkg-shlibdeps": "dpkg-dev", "apt-config": "apt",
	} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed (apt-get install %s)", tool, from)
		}
	}
	release, err := os.ReadFile("/etc/os-release")
	if err != nil || !strings.Contains(string(release), "\nID=debian\n") {
		t.Skip("the packages are for the release of Debian that they are built on, and this is none")
	}
}

// source is one archive that the machine takes its packages from.
type source struct{ url, suite string }

var (
	oneLine = regexp.MustCompile(`^deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+(.*)$`)
	field   = regexp.MustCompile(`^([A-Za-z-]+):\s*(.*)$`)
)

// sources reads lists of apt in both of their forms, and gives what they hold of a
// release: its updates too, but no archive of anybody else.
func sources(text, release string) []source {
	var found []source
	add := func(urls, suites, components string) {
		if !slices.Contains(strings.Fields(components), "main") {
			return
		}
		for _, url := range strings.Fields(urls) {
			for _, suite := range strings.Fields(suites) {
				if suite == release || suite == release+"-updates" || suite == release+"-security" {
					found = append(found, source{url, suite})
				}
			}
		}
	}
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		fields := map[string]string{}
		for line := range strings.Lines(paragraph) {
			line = strings.TrimSpace(line)
			if m := oneLine.FindStringSubmatch(line); m != nil {
				add(m[1], m[2], m[3])
			} else if m := field.FindStringSubmatch(line); m != nil {
				fields[m[1]] = m[2]
			}
		}
		if slices.Contains(strings.Fields(fields["Types"]), "deb") && !strings.EqualFold(fields["Enabled"], "no") {
			add(fields["URIs"], fields["Suites"], fields["Components"])
		}
	}
	return found
}

func TestSources(t *testing.T) {
	got := sources(`# deb http://a.example/debian bookworm main
deb [signed-by=/k arch=amd64] http://a.example/debian bookworm main contrib
deb http://tools.example/apt stable main

Types: deb deb-src
# a remark
URIs: http://b.example/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main

Enabled: no
Types: deb
URIs: http://c.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://d.example/security
Suites: bookworm-security
Components: main
`, "bookworm")
	want := []source{{"http://a.example/debian", "bookworm"}, {"http://b.example/debian", "bookworm"}, {"http://b.example/debian", "bookworm-updates"}, {"http://d.example/security", "bookworm-security"}}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// newMachine makes a Debian of the release of this machine, from where this machine
// gets its packages.
func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, root: filepath.Join(t.TempDir(), "root")}
	release := strings.TrimSpace(m.here("sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME"))
	var lists []string
	for _, pattern := range []string{"/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			lists = append(lists, string(b))
		}
	}
	from := sources(strings.Join(lists, "\n\n"), release)
	base := slices.IndexFunc(from, func(s source) bool { return s.suite == release })
	if base < 0 {
		t.Skipf("the lists of apt name no archive of %s", release)
	}
	if out, code := m.run("debootstrap", "--variant=minbase", release, m.root, from[base].url); code != 0 {
		t.Skipf("debootstrap can make no Debian here; is the archive out of reach? %s", tail(out))
	}
	text := ""
	for _, s := range from {
		text += fmt.Sprintf("deb %s %s main\n", s.url, s.suite)
	}
	m.write("/etc/apt/sources.list", text, 0o644)
	// The way to the archives, a proxy say, is that of this machine.
	m.write("/etc/apt/apt.conf.d/50here", m.here("apt-config", "dump", "Acquire"), 0o644)
	if resolver, err := os.ReadFile("/etc/resolv.conf"); err == nil {
		m.write("/etc/resolv.conf", string(resolver), 0o644)
	}
	if out, code := m.try("apt-get", "update", "-q"); code != 0 {
		t.Skipf("the archive is out of reach: %s", tail(out))
	}
	m.install("systemd-sysv")
	// There is no network to wait for, and nothing to be done daily.
	for _, unit := range []string{"systemd-networkd-wait-online.service", "systemd-networkd.service", "apt-daily.timer", "apt-daily-upgrade.timer"} {
		if err := os.Symlink("/dev/null", m.path("/etc/systemd/system/"+unit)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// run gives what a command writes, both streams together, and its exit code.
func (m *machine) run(name string, args ...string) (out string, code int) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "TERM=dumb")
	b, err := cmd.CombinedOutput()
	if ctx.Err() != nil || err != nil && cmd.ProcessState == nil {
		m.t.Fatalf("%s %q: %v\n%s", name, args, err, b)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// here runs a command on this machine, which must succeed.
func (m *machine) here(name string, args ...string) string {
	m.t.Helper()
	out, code := m.run(name, args...)
	if code != 0 {
		m.t.Fatalf("%s %q ends with %d:\n%s", name, args, code, tail(out))
	}
	return out
}

// try runs a command in the machine: in its folder before boot, among its processes
// after.
func (m *machine) try(args ...string) (out string, code int) {
	m.t.Helper()
	if m.leader == 0 {
		return m.run("chroot", append([]string{m.root}, args...)...)
	}
	return m.run("nsenter", append([]string{"--target", fmt.Sprint(m.leader), "--all", "--"}, args...)...)
}

// in is try for a command that must succeed.
func (m *machine) in(args ...string) string {
	m.t.Helper()
	out, code := m.try(args...)
	if code != 0 {
		m.t.Fatalf("%q ends with %d:\n%s", args, code, tail(out))
	}
	return out
}

// install puts packages in, those of the archive by name and files by their path.
func (m *machine) install(packages ...string) string {
	m.t.Helper()
	return m.in(append([]string{"apt-get", "install", "-qy", "--no-install-recommends", "-o", "Dpkg::Options::=--force-unsafe-io", "-o", "Dpkg::Options::=--force-confold"}, packages...)...)
}

func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

func (m *machine) write(name, text string, mode os.FileMode) {
	m.t.Helper()
	if err := os.WriteFile(m.path(name), []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Chmod(m.path(name), mode); err != nil { // whatever the umask
		m.t.Fatal(err)
	}
}

func (m *machine) read(name string) string {
	m.t.Helper()
	b, err := os.ReadFile(m.path(name))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(b)
}

func (m *machine) exists(name string) bool {
	_, err := os.Lstat(m.path(name))
	return err == nil
}

func tail(out string) string { return out[max(0, len(out)-4000):] }

// boot starts the machine with its own systemd and a network that is only its own
// loopback. It is shut down at the test's end.
func (m *machine) boot() {
	m.t.Helper()
	args := []string{"--directory", m.root, "--boot", "--register=no", "--private-network", "--link-journal=no", "--console=pipe", "--quiet"}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		args = append(args, "--keep-unit") // nobody is there to ask for one
	}
	// Its own machine id is made at its first boot.
	if err := os.Remove(m.path("/etc/machine-id")); err != nil && !os.IsNotExist(err) {
		m.t.Fatal(err)
	}
	if out, code := m.run("systemd-nspawn", append(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--boot" }), "/bin/true")...); code != 0 {
		m.t.Skipf("systemd-nspawn starts nothing on this machine, in a container perhaps: %s", tail(out))
	}
	var console bytes.Buffer
	nspawn := exec.Command("systemd-nspawn", args...)
	nspawn.Stdout, nspawn.Stderr = &console, &console
	nspawn.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is the test's to handle
	if err := nspawn.Start(); err != nil {
		m.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = nspawn.Wait() // how a shutdown ends is of no interest
	}()
	m.t.Cleanup(func() {
		leader := m.leader
		m.leader = 0
		_ = nspawn.Process.Signal(syscall.SIGTERM) // an orderly shutdown
		select {
		case <-ended:
			return
		case <-time.After(30 * time.Second):
		}
		if leader != 0 {
			_ = syscall.Kill(leader, syscall.SIGKILL) // and everything in it
		}
		_ = nspawn.Process.Kill()
		<-ended
	})
	m.eventually("the machine boots", func() bool {
		select {
		case <-ended:
			m.t.Fatalf("systemd-nspawn ended:\n%s", tail(console.String()))
		default:
		}
		if m.leader == 0 {
			pid := nspawn.Process.Pid
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
			if err != nil {
				return false
			}
			if n, _ := fmt.Sscan(string(b), &m.leader); n != 1 {
				return false
			}
		}
		out, _ := m.try("systemctl", "is-system-running")
		return slices.Contains([]string{"running", "degraded"}, strings.TrimSpace(out))
	})
}

// eventually waits for what others bring about.
func (m *machine) eventually(what string, cond func() bool) {
	m.t.Helper()
	deadline := time.After(60 * time.Second)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			m.t.Fatalf("not within a minute: %s\n%s", what, m.journal())
		}
	}
}

func (m *machine) journal() string {
	if m.leader == 0 {
		return ""
	}
	out, _ := m.try("journalctl", "--no-pager", "-n", "60", "-o", "cat")
	return out
}

// within runs do where the network is the machine's. What it listens on or connects
// to stays there.
func (m *machine) within(do func() error) error {
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with this goroutine, since no other may get it.
		runtime.LockOSThread()
		done <- func() error {
			ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", m.leader))
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("enter the machine's network: %w", err)
			}
			return do()
		}()
	}()
	return <-done
}

// client asks in the machine's network.
func (m *machine) client() *http.Client {
	return &http.Client{
		Timeout: 20 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
				err = m.within(func() error {
					conn, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
					return err
				})
				return conn, err
			},
		},
	}
}

// serve answers in the machine's network until the test ends.
func (m *machine) serve(address string, h http.Handler) {
	m.t.Helper()
	var l net.Listener
	if err := m.within(func() (err error) { l, err = net.Listen("tcp", address); return err }); err != nil {
		m.t.Fatal(err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	m.t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}
