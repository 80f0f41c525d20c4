package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is what is measured: a program that was started here, or one that runs already.
type server struct {
	name string
	// url is where a path begins; or a template with {origin}, which stands for the origin's URL with the path.
	url   string
	roots []int
	admin string // karui's admin listener, else ""
	words string // the file with what karui says, else ""
	// start is how long it took until it was ready, looked at every 5 ms.
	start time.Duration
	cmd   *exec.Cmd
	ended chan error
}

// at gives the address of what the origin has under path.
func (s *server) at(originURL, path string) string {
	if strings.Contains(s.url, "{origin}") {
		return strings.ReplaceAll(s.url, "{origin}", originURL+path)
	}
	return s.url + path
}

func (s *server) cpu() (time.Duration, error) { return settledCPU(s.roots) }

// stop ends what was started here.
func (s *server) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	timer := time.NewTimer(35 * time.Second)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// launch starts a program and waits until url answers 200.
func launch(ctx context.Context, name, ready string, errors io.Writer, program string, args ...string) (*server, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = errors
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s := &server{name: name, cmd: cmd, roots: []int{cmd.Process.Pid}, ended: make(chan error, 1)}
	began := time.Now()
	go func() { s.ended <- cmd.Wait() }()
	if err := s.await(ctx, ready); err != nil {
		s.stop()
		return nil, err
	}
	s.start = time.Since(began)
	return s, nil
}

func (s *server) await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client := newClient(1)
	defer client.CloseIdleConnections()
	for {
		r, err := request(ctx, url, takesJPEG)
		if err != nil {
			return err
		}
		if answer, err := client.Do(r); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("start %s: it ended: %w", s.name, err)
		case <-ctx.Done():
			return fmt.Errorf("start %s: %s does not answer: %w", s.name, url, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// karuiOptions are the settings in which measurements differ.
type karuiOptions struct {
	memory string
	wait   string
	access bool
	// folder is that of the cache; one of its own when empty. talks has karui say what it does.
	folder string
	talks  bool
	// formats is a list as in karui.yaml; empty for the default.
	formats string
	// steered lets karui judge its load as it would in use: the dial moves, what takes too long is turned away, and
	// nothing waits long. Else it does what it is asked, however long that takes.
	steered bool
}

// startKarui starts karui in front of the origin, with a folder of its own.
func startKarui(ctx context.Context, b *bench, name string, o karuiOptions) (*server, error) {
	dir, err := os.MkdirTemp(b.dir, "karui-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for karui: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	admin, err := freePort()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "karui.yaml")
	level := "warn"
	if o.access || o.talks {
		level = "info" // which lines about requests are
	}
	folder := o.folder
	if folder == "" {
		folder = filepath.Join(dir, "cache")
	}
	formats := ""
	if o.formats != "" {
		formats = "formats: " + o.formats + ", "
	}
	judgement := `origin: { deadline: 40s }
convert: { queue_wait: 30s }
dial: { mode: off }
stress: { latency: 60s }
`
	if o.steered {
		judgement = ""
	}
	text := fmt.Sprintf(`listen: "127.0.0.1:%d"
log: { level: %s, access: %t }
admin: { listen: "127.0.0.1:%d" }
first_response: { wait: %s }
%scache: { memory: %s, volumes: [{ path: %q }] }
sites: [{ id: shop, default: true, %sorigins: [{ name: main, urls: [%q] }] }]
`, port, level, o.access, admin, o.wait, judgement, o.memory, folder, formats, b.origin.url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write karui.yaml: %w", err)
	}
	words, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, fmt.Errorf("make a log for karui: %w", err)
	}
	defer words.Close()
	ready := fmt.Sprintf("http://127.0.0.1:%d/readyz", admin)
	s, err := launch(ctx, name, ready, words, b.karui, "serve", "--config", file)
	if err != nil {
		said, _ := os.ReadFile(words.Name())
		return nil, fmt.Errorf("%w\n%s", err, said)
	}
	s.words = words.Name()
	s.url, s.admin = fmt.Sprintf("http://127.0.0.1:%d", port), fmt.Sprintf("http://127.0.0.1:%d", admin)
	return s, nil
}

// startNginx starts nginx as a cache in front of the origin: one worker for each of two cores, everything else as
// Debian has it, except that a log of requests is kept only if asked for.
func startNginx(ctx context.Context, b *bench, name string, access bool) (*server, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		if _, err := os.Stat("/usr/sbin/nginx"); err != nil {
			return nil, errNoPeer
		}
		program = "/usr/sbin/nginx"
	}
	dir, err := os.MkdirTemp(b.dir, "nginx-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for nginx: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // its workers write below a folder that only this user may enter
	}
	log := "off"
	if access {
		log = dir + "/access"
	}
	text := fmt.Sprintf(`%s
daemon off;
worker_processes 2;
pid %[2]s/pid;
error_log %[2]s/log;
events { worker_connections 4096; }
http {
  access_log %[5]s;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 100000000;
  client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/temp; fastcgi_temp_path %[2]s/fastcgi;
  uwsgi_temp_path %[2]s/uwsgi; scgi_temp_path %[2]s/scgi;
  proxy_cache_path %[2]s/cache levels=1:2 keys_zone=bench:10m max_size=1g;
  server {
    listen 127.0.0.1:%[3]d;
    location = /ready { return 200; }
    location / { proxy_pass %[4]s; proxy_cache bench; proxy_cache_valid 200 1h; }
  }
}
`, user, dir, port, b.origin.url, log)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write nginx.conf: %w", err)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	s, err := launch(ctx, name, url+"/ready", io.Discard, program, "-p", dir, "-c", file, "-e", dir+"/log")
	if err != nil {
		return nil, err
	}
	s.url = url
	return s, nil
}

// errNoPeer says that something to compare with is not installed.
var errNoPeer = errors.New("not installed")

// parsePeer reads NAME=URL, where the URL has {origin} for the address of an original.
func parsePeer(text string) (name, url string, port int, err error) {
	name, url, ok := strings.Cut(text, "=")
	if !ok || name == "" || !strings.Contains(url, "{origin}") {
		return "", "", 0, fmt.Errorf("peer %q: want NAME=URL with {origin} in it, such as imgproxy=http://127.0.0.1:8081/insecure/q:80/plain/{origin}@webp", text)
	}
	rest := strings.TrimPrefix(url, "http://")
	host, _, _ := strings.Cut(rest, "/")
	_, digits, err := net.SplitHostPort(host)
	if err == nil {
		port, err = strconv.Atoi(digits)
	}
	if err != nil || rest == url {
		return "", "", 0, fmt.Errorf("peer %q: want http://ADDRESS:PORT/...", text)
	}
	return name, url, port, nil
}

// findPeer finds the processes of a server that runs already.
func findPeer(text string) (*server, error) {
	name, url, port, err := parsePeer(text)
	if err != nil {
		return nil, err
	}
	roots, err := listeners(port)
	if err != nil {
		return nil, fmt.Errorf("peer %s: %w", name, err)
	}
	return &server{name: name, url: url, roots: roots}, nil
}

// metric reads one number of karui's metrics: the sum over all labels that contain the given ones.
func (s *server) metric(ctx context.Context, name, labels string) (float64, error) {
	r, err := request(ctx, s.admin+"/metrics", takesJPEG)
	if err != nil {
		return 0, err
	}
	client := newClient(1)
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	return sumMetric(string(b), name, labels)
}

func sumMetric(text, name, labels string) (float64, error) {
	var total float64
	for line := range strings.Lines(text) {
		head, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		metric, have, _ := strings.Cut(head, "{")
		if !ok || metric != name || !strings.Contains(have, labels) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", name, err)
		}
		total += v
	}
	return total, nil
}
