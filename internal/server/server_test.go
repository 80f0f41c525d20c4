package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"karui/cache"
	"karui/convert"
	"karui/internal/origintest"
	"karui/internal/sample"
	"karui/proxy"
	"karui/proxy/origin"
)

// TestMain is also the worker of the servers that tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == convert.WorkerCommand {
		os.Exit(convert.WorkerMain(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// limit is how long a test waits for what must come.
const limit = 30 * time.Second

// running is a server under test.
type running struct {
	t      *testing.T
	origin *origintest.Origin
	url    string
	admin  string
	hangup chan os.Signal
	log    *lockedBuffer
	next   func() (Config, error)
	stop   context.CancelFunc
	ended  chan error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func testConfig(t *testing.T, o *origintest.Origin) Config {
	t.Helper()
	c := DefaultConfig()
	c.Listen, c.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	c.Convert.Workers = 1
	volume := cache.DefaultVolume()
	volume.Path = t.TempDir()
	c.Cache.Volumes = []cache.VolumeConfig{volume}
	site := proxy.DefaultSite()
	site.ID, site.Default = "shop", true
	place := origin.DefaultPlace()
	place.Name, place.URLs = "origin", []string{o.URL()}
	site.Origins = []origin.PlaceConfig{place}
	c.Sites = []proxy.SiteConfig{site}
	return c
}

func start(t *testing.T, change func(*Config)) *running {
	t.Helper()
	return startWith(t, change, func(*Options) {})
}

func startWith(t *testing.T, change func(*Config), more func(*Options)) *running {
	t.Helper()
	r := &running{t: t, origin: origintest.New(t), hangup: make(chan os.Signal, 1), log: &lockedBuffer{}, ended: make(chan error, 1)}
	config := testConfig(t, r.origin)
	if change != nil {
		change(&config)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	started := make(chan struct{})
	options := Options{
		Config: config, Log: r.log, Hangup: r.hangup,
		Reload: func() (Config, error) { return r.next() },
		Started: func(public, admin net.Addr) {
			r.url, r.admin = "http://"+public.String(), "http://"+admin.String()
			close(started)
		},
	}
	more(&options)
	go func() { r.ended <- Run(ctx, options) }()
	t.Cleanup(func() {
		cancel()
		http.DefaultClient.CloseIdleConnections()
		if err := <-r.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	select {
	case <-started:
	case err := <-r.ended:
		r.ended <- err
		t.Fatalf("did not start: %v", err)
	}
	return r
}

// get asks once; status 0 means that no whole answer came.
func (r *running) get(url string, lines ...string) (status int, header http.Header, body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, nil, err
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, body, err
}

// until asks again and again until the answer is good.
func (r *running) until(url string, good func(status int, h http.Header) bool, lines ...string) {
	r.t.Helper()
	for began := time.Now(); time.Since(began) < limit; {
		if status, h, _, err := r.get(url, lines...); err == nil && good(status, h) {
			return
		}
	}
	r.t.Fatalf("%s never became what was waited for\n%s", url, r.log.String())
}

func isOK(status int, _ http.Header) bool { return status == http.StatusOK }

func TestServe(t *testing.T) {
	r := start(t, nil)
	photo := sample.Photo()
	r.origin.Set("/photo.jpg", origintest.Image("image/jpeg", photo))
	r.until(r.url+"/photo.jpg", func(_ int, h http.Header) bool { return h.Get("X-Karui") == "hit" }, "Accept: image/webp")
	if status, h, body, err := r.get(r.url + "/photo.jpg"); status != 200 || err != nil || h.Get("Content-Type") != "image/jpeg" || !bytes.Equal(body, photo) {
		t.Errorf("the original: status %d, %d bytes, %v", status, len(body), err)
	}
	if n := r.origin.Count("/photo.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
	r.until(r.admin+"/readyz", isOK)
	r.until(r.url+"/ping.jpg", isOK)
	if status, _, body, err := r.get(r.admin + "/healthz"); status != 200 || err != nil {
		t.Errorf("/healthz: %d %s %v", status, body, err)
	}
	status, _, body, err := r.get(r.admin + "/metrics")
	if status != 200 || err != nil {
		t.Fatalf("/metrics: %d %v", status, err)
	}
	for _, name := range []string{
		"karui_requests_total", "karui_conversions_total", "karui_cache_gets_total", "karui_cache_volume_bytes", "karui_convert_workers",
		"karui_flights ", "karui_origin_fetches_total", "karui_ping_conversions_total", "process_resident_memory_bytes", "go_goroutines",
	} {
		if !bytes.Contains(body, []byte(name)) {
			t.Errorf("/metrics lacks %s", name)
		}
	}
	if bytes.Contains(body, []byte("photo.jpg")) || bytes.Contains(body, []byte(r.origin.Addr())) {
		t.Error("/metrics holds a path or a host")
	}
	if log := r.log.String(); !strings.Contains(log, "edge.secrets is empty") || !strings.Contains(log, "karui serves") {
		t.Errorf("the start was not logged as it should:\n%s", log)
	}
}

func TestStoredAnswersSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	same := func(c *Config) { c.Cache.Volumes[0].Path = dir }
	r := start(t, same)
	r.origin.Set("/photo.jpg", origintest.Image("image/jpeg", sample.Photo()))
	r.until(r.url+"/photo.jpg", func(_ int, h http.Header) bool { return h.Get("X-Karui") == "hit" }, "Accept: image/webp")
	r.stop()
	if err := <-r.ended; err != nil {
		t.Fatal(err)
	}
	r.ended <- nil
	again := start(t, same)
	again.origin.Refuse()
	if status, h, _, err := again.get(again.url+"/photo.jpg", "Accept: image/webp"); status != 200 || err != nil || h.Get("X-Karui") != "hit" {
		t.Errorf("after the restart: %d %s %v", status, h.Get("X-Karui"), err)
	}
}

func TestReloadTakesOverWhatItCan(t *testing.T) {
	r := start(t, nil)
	r.origin.Set("/a.css", origintest.Text(200, "text/css", "a{}"))
	other := origintest.New(t)
	other.Set("/a.css", origintest.Text(200, "text/css", "b{}"))
	config := testConfig(t, r.origin)
	config.Sites[0].Origins[0].URLs = []string{other.URL()}
	config.Listen = "127.0.0.1:1"
	r.next = func() (Config, error) { return config, nil }
	r.hangup <- syscall.SIGHUP
	for began := time.Now(); ; {
		_, _, body, err := r.get(r.url + "/a.css")
		if err != nil {
			t.Fatal(err)
		}
		if string(body) == "b{}" {
			break
		}
		if time.Since(began) > limit {
			t.Fatal("the new origin was never asked")
		}
	}
	// A configuration that cannot be used changes nothing.
	r.next = func() (Config, error) { return Config{}, errors.New("line 3: no") }
	r.hangup <- syscall.SIGHUP
	for began := time.Now(); !strings.Contains(r.log.String(), "line 3: no"); {
		if time.Since(began) > limit {
			t.Fatal("the bad configuration was not logged")
		}
		if status, _, body, err := r.get(r.url + "/a.css"); status != 200 || string(body) != "b{}" || err != nil {
			t.Errorf("after a bad configuration: %d %s %v", status, body, err)
		}
	}
	if !strings.Contains(r.log.String(), `"key":"listen"`) {
		t.Error("a change that needs a restart was not named")
	}
}

// While clients keep asking, a stop breaks no answer and refuses no connection
// until it is over.
func TestDrainUnderClientsThatKeepAsking(t *testing.T) {
	r := start(t, nil)
	photo := sample.Photo()
	stall := origintest.NewGate()
	slow := origintest.Image("image/jpeg", photo)
	slow.Stall, slow.StallAt = stall, 4096
	r.origin.Set("/slow.jpg", slow)
	r.origin.Set("/photo.jpg", origintest.Image("image/jpeg", photo))
	r.until(r.url+"/photo.jpg", func(_ int, h http.Header) bool { return h.Get("X-Karui") == "hit" }, "Accept: image/webp")

	under := make(chan error, 1)
	go func() {
		status, _, body, err := r.get(r.url + "/slow.jpg")
		if status != 200 || !bytes.Equal(body, photo) {
			err = errors.Join(err, fmt.Errorf("status %d, %d of %d bytes", status, len(body), len(photo)))
		}
		under <- err
	}()
	r.origin.Await("/slow.jpg", 1, limit)

	// Clients that ask as fast as they can, from before the stop until it is over.
	over := make(chan struct{})
	drains := make(chan struct{}, 1)
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
			defer client.CloseIdleConnections()
			for {
				resp, err := client.Get(r.url + "/photo.jpg")
				if err != nil {
					select {
					case <-over:
						return
					default:
					}
					// The very end of the listener may be seen before Run has returned.
					if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) {
						<-over
						return
					}
					t.Errorf("no answer while it drains: %v", err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				switch {
				case resp.StatusCode == 200 && err == nil && bytes.Equal(body, photo):
				case resp.StatusCode == 503 && err == nil && resp.Header.Get("X-Karui-Reason") == "drain" && resp.Header.Get("Cache-Control") == "no-store":
					select {
					case drains <- struct{}{}:
					default:
					}
				default:
					t.Errorf("a broken answer: status %d, %d bytes, %v", resp.StatusCode, len(body), err)
					return
				}
			}
		})
	}
	r.stop()
	<-drains
	if status, _, _, err := r.get(r.admin + "/readyz"); status != 503 || err != nil {
		t.Errorf("/readyz while it drains: %d %v", status, err)
	}
	if status, _, _, err := r.get(r.url + "/.karui/ping.jpg"); status != 503 || err != nil {
		t.Errorf("the ping while it drains: %d %v", status, err)
	}
	stall.Open()
	if err := <-under; err != nil {
		t.Errorf("the answer under way: %v", err)
	}
	err := <-r.ended
	close(over)
	clients.Wait()
	if err != nil {
		t.Errorf("Run: %v", err)
	}
	r.ended <- nil
}

func TestDrainIsBounded(t *testing.T) {
	r := start(t, func(c *Config) { c.Drain = 50 * time.Millisecond })
	silent := origintest.NewGate()
	t.Cleanup(silent.Open)
	r.origin.Set("/a.jpg", origintest.Answer{Hold: silent})
	asked := make(chan int, 1)
	go func() {
		status, _, _, _ := r.get(r.url + "/a.jpg")
		asked <- status
	}()
	r.origin.Await("/a.jpg", 1, limit)
	began := time.Now()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	r.ended <- nil
	if took := time.Since(began); took > limit/2 {
		t.Errorf("the drain took %v", took)
	}
	if status := <-asked; status == 200 {
		t.Error("an answer out of nothing")
	}
}

func TestStartThatFailsSaysWhy(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"public address taken": {func(c *Config) { c.Listen = taken.Addr().String() }, "(listen)"},
		"admin address taken":  {func(c *Config) { c.Admin.Listen = taken.Addr().String() }, "(admin.listen)"},
		"no cache":             {func(c *Config) { c.Cache.Volumes[0].Path = "/dev/null/karui" }, "/dev/null/karui"},
		"no authorities":       {func(c *Config) { c.Origin.CAFile = "/nowhere.pem" }, "/nowhere.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			config := testConfig(t, origintest.New(t))
			test.change(&config)
			err := Run(context.Background(), Options{Config: config, Log: io.Discard})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Run: %v, want a word about %s", err, test.want)
			}
		})
	}
}

// What net/http cannot read is the true origin's to answer.
func TestRequestThatCannotBeRead(t *testing.T) {
	r := start(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /100%.jpg HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("X-Karui-Reason") != "request" {
		t.Errorf("status %d, %v", resp.StatusCode, resp.Header)
	}
}

func TestIsLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "127.9.9.9:1": true, ":1": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false,
	} {
		if got := isLoopback(address); got != want {
			t.Errorf("isLoopback(%s) = %v", address, got)
		}
	}
}

func TestVolumeFlag(t *testing.T) {
	dir := t.TempDir() + "/new/volume"
	flag, words, err := VolumeFlag(dir, "http://a")
	if err != nil || words != "" || !strings.Contains(flag.Value, dir) {
		t.Errorf("a folder that can be made: %+v %q %v", flag, words, err)
	}
	other, _, err := VolumeFlag(dir, "http://b")
	if err != nil || other.Value == flag.Value {
		t.Errorf("two origins share a folder: %s, %v", other.Value, err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	flag, words, err = VolumeFlag("/dev/null/karui", "http://a")
	if err != nil || !strings.Contains(words, "/dev/null/karui") || !strings.Contains(flag.Value, os.Getenv("XDG_CACHE_HOME")) {
		t.Errorf("a folder that cannot be: %+v %q %v", flag, words, err)
	}
	t.Setenv("XDG_CACHE_HOME", "/dev/null")
	t.Setenv("TMPDIR", "/dev/null")
	if _, _, err = VolumeFlag("/dev/null/karui", "http://a"); err == nil {
		t.Error("no folder can be written, and that was no error")
	}
}

// Behind the public listener, too, a body that broke off must not look whole to
// a viewer of HTTP/1.0, for whom the end of the connection is the end of the body.
func TestHTTP10ViewerIsResetWhenTheOriginBreaksOff(t *testing.T) {
	r := start(t, nil)
	for _, path := range []string{"/a.jpg", "/a.css"} {
		stalled := origintest.NewGate()
		cut := origintest.Image("image/jpeg", sample.Photo()).CutAt(9000, false)
		cut.Framing, cut.Stall, cut.StallAt = origintest.Chunked, stalled, 8000
		r.origin.Set(path, cut)
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(limit))
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.0\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %v, %v", path, resp, err)
		}
		stalled.Open()
		body, err := io.ReadAll(resp.Body)
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %d bytes came, and then %v, want a reset", path, len(body), err)
		}
	}
}

func TestLogHasDurationsAsText(t *testing.T) {
	r := start(t, nil)
	for began := time.Now(); time.Since(began) < limit; runtime.Gosched() {
		if _, after, found := strings.Cut(r.log.String(), `"msg":"cache volume loaded"`); found {
			line, _, _ := strings.Cut(after, "\n")
			if !strings.Contains(line, `"took":"`) {
				t.Errorf("the log has %s", line)
			}
			return
		}
	}
	t.Error("the cache was not loaded")
}

func TestTakenAddressComesWithARemedy(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for address, want := range map[string]string{
		taken.Addr().String(): "another program has it, perhaps another karui; end that one (`ss -ltnp 'sport = :" + port + "'`",
		"192.0.2.1:0":         "this machine does not have the address",
	} {
		c := testConfig(t, origintest.New(t))
		c.Listen = address
		err := Run(t.Context(), Options{Config: c, Log: io.Discard})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "(listen)") {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
