package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// system is everything that is under test, and what is around it.
type system struct {
	dir    string
	origin *origin
	front  *front
	karui  *program
	dog    *program
	launch *launcher

	// cache is karui's cache folder, on a small disk of its own where disk is true;
	// seen is the same folder as this program sees it.
	cache, seen string
	disk        bool
	// noDisk says why there is none.
	noDisk string

	dogState string // the watchdog's folder
	settings string // karui's configuration file
	address  string // where karui serves
	admin    string // where its operators ask
	formats  []string
	// tool is karui's binary under another name than that of the running process, and
	// environment what its commands get.
	tool        string
	environment []string
	log         *os.File
}

// diskSize is that of the cache's disk, in bytes: less than a run of some minutes
// stores, so that karui has to make room, too.
const diskSize = 24 << 20

// startSystem starts the origin, the edge, karui and the watchdog. Whoever gets a
// system closes it.
func startSystem(ctx context.Context, dir string, b binaries, o Options, files []*original, changes []*changing, card []byte, surprised func(string)) (s *system, err error) {
	s = &system{dir: dir, launch: newLauncher(), cache: filepath.Join(dir, "cache"), dogState: filepath.Join(dir, "watchdog"), settings: filepath.Join(dir, "karui.yaml")}
	defer func() {
		if err != nil {
			s.close()
			s = nil
		}
	}()
	if s.log, err = os.Create(filepath.Join(dir, "programs.log")); err != nil {
		return s, err
	}
	if err = os.MkdirAll(s.cache, 0o700); err != nil {
		return s, err
	}
	s.mount()
	if s.origin, err = startOrigin(files, changes, card); err != nil {
		return s, err
	}
	if s.address, err = freeAddress(); err != nil {
		return s, err
	}
	if s.admin, err = freeAddress(); err != nil {
		return s, err
	}
	if s.front, err = startFront(s.address, s.origin.direct.address); err != nil {
		return s, err
	}
	s.formats = o.Formats
	if err = s.configure("300ms", 80); err != nil {
		return s, err
	}
	watched := filepath.Join(dir, "watchdog.yaml")
	if err = os.WriteFile(watched, []byte(s.watchdogSettings()), 0o600); err != nil {
		return s, err
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir()}
	env = append(env, s.front.environment()...)
	s.tool, s.environment = b.karui, env
	karui, err := own(b.karui, dir)
	if err != nil {
		return s, err
	}
	s.karui = &program{
		name: "karui", path: karui, args: []string{"serve", "--config", s.settings}, dir: dir, log: s.log, launch: s.launch,
		env: slices.Concat(env, o.Environment), ready: "http://" + s.admin + "/readyz", surprised: surprised,
	}
	dog, err := own(b.watchdog, dir)
	if err != nil {
		return s, err
	}
	s.dog = &program{
		name: "karui-watchdog", path: dog, args: []string{"run", "--config", watched}, dir: dir, log: s.log, launch: s.launch,
		env: env, surprised: surprised,
	}
	if err = s.karui.start(); err != nil {
		return s, err
	}
	if err = s.karui.await(ctx, startLimit); err != nil {
		return s, fmt.Errorf("%w; see %s", err, s.log.Name())
	}
	return s, s.dog.start()
}

// startLimit is how long a busy machine may take to start karui.
const startLimit = time.Minute

// close ends everything that was started, whatever its state.
func (s *system) close() {
	if s.dog != nil {
		s.dog.end(syscall.SIGTERM, 20*time.Second)
	}
	if s.karui != nil {
		s.karui.end(syscall.SIGTERM, 20*time.Second)
		for _, pid := range s.karui.children() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // stopped workers cannot notice that their parent is gone
		}
	}
	if s.front != nil {
		s.front.close()
	}
	if s.origin != nil {
		s.origin.close()
	}
	if s.disk {
		// Whoever still reads there has been killed; the mount goes when they are gone.
		_ = s.launch.run(func() error { return unix.Unmount(s.cache, unix.MNT_DETACH) })
	}
	if s.log != nil {
		_ = s.log.Close()
	}
	s.launch.close()
}

// mount gives the cache a small disk of its own, which needs root, or a user
// namespace in which this program counts as root.
func (s *system) mount() {
	s.seen = s.launch.root + s.cache
	err := s.launch.run(func() error {
		return unix.Mount("karui-chaos", s.cache, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, fmt.Sprintf("size=%d,mode=0700", diskSize))
	})
	if err != nil {
		s.noDisk = fmt.Sprintf("no small disk could be mounted for the cache: %v", err)
		return
	}
	s.disk = true
}

// configure writes karui.yaml, renamed into place.
func (s *system) configure(wait string, quality int) error {
	return replaceFile(s.settings, fmt.Sprintf(`listen: %q
drain: 5s
admin: { listen: %q }
log: { access: false }
edge: { secrets: [%s] }
ttl: { short: %v, long: %v, stale: %v }
first_response: { wait: %s }
cache:
  memory: 1MiB
  volumes: [{ path: %q, max_size: 20MiB }]
origin: { deadline: 1500ms, connect: 500ms }
sites:
  - id: %s
    hosts: [www.example.com]
    default: true
    distribution: { id: %s, role_arn: %q, external_id: %s }
    origins: [{ name: main, urls: [%q] }]
    formats: [%s]
    quality: %d
    query: [v]
`, s.address, s.admin, secret, shortTTL, longTTL, staleTTL, wait, s.cache, siteID, distributionID, s.front.purgeRole, externalID, s.origin.way.url(), strings.Join(s.formats, ", "), quality))
}

func replaceFile(name, text string) error {
	if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}

// watchdogSettings is watchdog.yaml, with seconds for what takes minutes in earnest.
func (s *system) watchdogSettings() string {
	return fmt.Sprintf(`interval: 1s
ping: { count: 3, spacing: 100ms, timeout: 220ms }
state_dir: %q
listen: "127.0.0.1:0"
deploy_timeout: 30s
proxy_deadline: 1500ms
control_urls: [%q]
mail: { from: karui@example.com, to: [ops@example.com], ses: { region: eu-west-1 } }
sites:
  - id: %s
    ping_url: %q
    origin_url: %q
    viewer_url: %q
    distribution_id: %s
    origin_group_id: images
    proxy_origin_id: karui
    direct_origin_id: origin
    role_arn: %q
    external_id: %s
    max_swaps_per_day: 1000
`, s.dogState, s.front.api.URL, siteID, "http://"+s.address+"/ping.jpg", s.origin.direct.url()+"/favicon.ico",
		s.front.server.URL+nearPath+"000.jpg", distributionID, s.front.role, externalID)
}

// freeAddress is an address on which nobody listens, and hardly anybody will
// while karui is down.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback(), "0"))
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), errors.Join(l.Close())
}
