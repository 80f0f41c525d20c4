package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "golang.org/x/image/webp"
)

// part is one part of the page as it is now, without its tags.
func (r *running) part(name string) string {
	r.t.Helper()
	_, body := r.get("/live?as=webp")
	var live struct{ Fragments map[string]string }
	if err := json.Unmarshal([]byte(body), &live); err != nil {
		return ""
	}
	text := regexp.MustCompile(`<svg.*?</svg>`).ReplaceAllString(live.Fragments[name], "")
	if name == "way" { // whose order is in an attribute
		return text
	}
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]+>`).ReplaceAllString(text, " ")), " ")
}

// shows waits until a part of the page says something.
func (r *running) shows(limit time.Duration, name, text string) {
	r.t.Helper()
	last := ""
	defer func() {
		if r.t.Failed() {
			r.t.Logf("%s: %s", name, last)
		}
	}()
	eventually(r.t, limit, fmt.Sprintf("%s says %q", name, text), func() bool {
		last = r.part(name)
		return strings.Contains(last, text)
	})
}

// edge is the address of the edge, which the page tells.
func (r *running) edge() string {
	r.t.Helper()
	_, body := r.get("/")
	found := regexp.MustCompile(`The edge listens on <code>(http://[0-9.:]+)</code>`).FindStringSubmatch(body)
	if found == nil {
		r.t.Fatalf("the page does not name the edge: %s", body)
	}
	return found[1]
}

// crowd asks the edge for all images, all the time, and decodes every answer.
type crowd struct {
	mu       sync.Mutex
	problems []string
	answers  int
	formats  map[string]int // since the last look
}

func (c *crowd) look() (formats map[string]int, answers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	formats = c.formats
	c.formats = make(map[string]int)
	return formats, c.answers
}

// visitors starts a crowd; stop ends it and gives what went wrong.
func visitors(t *testing.T, edge string) (c *crowd, stop func() []string) {
	t.Helper()
	c = &crowd{formats: make(map[string]int)}
	done := make(chan struct{})
	var all sync.WaitGroup
	for _, path := range []string{"/photo.jpg", "/logo.png", "/screenshot.png", "/animation.gif"} {
		for _, accept := range []string{"image/webp", "image/*"} {
			all.Go(func() {
				client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableCompression: true}}
				defer client.CloseIdleConnections()
				tick := time.NewTicker(100 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-done:
						return
					case <-tick.C:
					}
					format, err := fetch(client, edge+path, accept)
					c.mu.Lock()
					c.answers++
					c.formats[format]++
					if err != nil && len(c.problems) < 20 {
						c.problems = append(c.problems, fmt.Sprintf("%s, %s: %v", path, accept, err))
					}
					c.mu.Unlock()
				}
			})
		}
	}
	return c, func() []string {
		close(done)
		all.Wait()
		return c.problems
	}
}

// fetch asks once, and looks at the answer with decoders of Go's own.
func fetch(client *http.Client, address, accept string) (string, error) {
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", accept)
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d: %.200s", resp.StatusCode, body)
	}
	// Go decodes no animated WebP; that one is looked at to the end of its last frame.
	if frames := bytes.Count(body, []byte("ANMF")); frames > 1 && formatOf(body) == "webp" {
		if n, err := framesOf(body); err != nil || n != 20 {
			return "", fmt.Errorf("animation of %d frames: %w", n, err)
		}
		return "webp", accepted("webp", accept)
	}
	img, format, err := image.Decode(bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("%d bytes do not decode: %w", len(body), err)
	}
	if size := img.Bounds().Size(); size.X < 300 || size.Y < 200 {
		return "", fmt.Errorf("an image of %v", size)
	}
	return format, accepted(format, accept)
}

func accepted(format, accept string) error {
	if format == "webp" && !strings.Contains(accept, "webp") {
		return fmt.Errorf("%s for a viewer that takes %s", format, accept)
	}
	return nil
}

// TestStopAndHeal is the demonstration's first purpose: karui is killed, images go
// on, the order changes, the mail arrives; karui is healed, and WebP returns. Takes
// about 40 s, most of which is waiting for the watchdog.
func TestStopAndHeal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes most of a minute")
	}
	t.Parallel()
	r := startDemo(t)
	r.shows(90*time.Second, "way", `data-order="karui"`)
	crowd, stop := visitors(t, r.edge())
	webp := func() bool {
		formats, _ := crowd.look()
		return formats["webp"] >= 2
	}
	eventually(t, 90*time.Second, "WebP comes", webp)
	if status, body := r.press("/do/stop?as=webp", ""); status != http.StatusOK || !strings.Contains(body, "karui is down") {
		t.Errorf("after the click: %d", status)
	}
	_, before := crowd.look()
	r.shows(90*time.Second, "verdict", "Images go on")
	r.shows(90*time.Second, "way", `data-order="origin"`)
	r.shows(90*time.Second, "inbox", "shop DEGRADED")
	eventually(t, 90*time.Second, "only originals come", func() bool {
		formats, _ := crowd.look()
		return formats["webp"] == 0 && formats["jpeg"] > 0 && formats["png"] > 0 && formats["gif"] > 0
	})
	if _, after := crowd.look(); after < before+20 {
		t.Errorf("only %d images were asked for while karui was down", after-before)
	}
	if status, _ := r.press("/do/stop?as=webp", ""); status != http.StatusOK {
		t.Errorf("once more: %d", status)
	}
	r.press("/do/heal?as=webp", "")
	r.shows(90*time.Second, "way", `data-order="karui"`)
	r.shows(90*time.Second, "inbox", "shop RESTORED")
	eventually(t, 90*time.Second, "WebP returns", webp)
	for _, p := range stop() {
		t.Error(p)
	}
	if v := r.part("verdict"); !regexp.MustCompile(`\b0 broken|broken 0\b`).MatchString(v) {
		t.Errorf("the page says: %s", v)
	}
}

// TestOtherFaults: slow, a full disk, a broken origin, a rehearsal, and mails in
// Japanese.
func TestOtherFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes most of a minute")
	}
	t.Parallel()
	r := startDemo(t)
	r.shows(90*time.Second, "way", `data-order="karui"`)
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	edge := r.edge()
	whole := func(path string) (time.Duration, error) {
		began := time.Now()
		_, err := fetch(client, edge+path, "image/webp")
		return time.Since(began), err
	}

	r.press("/do/rehearse", "")
	r.shows(90*time.Second, "watch", ": passed")
	r.shows(90*time.Second, "inbox", "REHEARSAL")

	// A full disk: whole images, also of what is new.
	r.press("/do/fill", "")
	if controls := r.part("controls"); strings.Contains(controls, "Not on this machine") {
		t.Logf("the disk cannot be filled here: %s", controls)
	} else {
		r.shows(90*time.Second, "controls", "cache is full")
		for i := range 5 {
			if _, err := whole(fmt.Sprintf("/photo.jpg?full=%d", i)); err != nil {
				t.Error(err)
			}
		}
	}

	// A broken origin: what was asked for before goes on, what is new cannot.
	if _, err := whole("/logo.png?known"); err != nil {
		t.Fatal(err)
	}
	r.press("/do/break", "")
	r.shows(90*time.Second, "verdict", "The origin is broken")
	if _, err := whole("/logo.png?new"); err == nil || !strings.Contains(err.Error(), "status 50") {
		t.Errorf("an image that nobody has: %v", err)
	}
	if _, err := whole("/logo.png?known"); err != nil {
		t.Errorf("an image that karui has: %v", err)
	}
	r.press("/cold", "")
	r.shows(90*time.Second, "cold", "did not come")
	r.press("/do/heal", "")
	if _, err := whole("/logo.png?new"); err != nil {
		t.Error(err)
	}

	// Slow: images come late from the origin, and in time once karui is out of the way.
	r.press("/language", "language=ja")
	r.press("/do/slow", "")
	took, err := whole("/photo.jpg?slow")
	if err != nil || took < responseTimeout {
		t.Errorf("an image through a slow karui: %v after %s", err, took)
	}
	r.shows(90*time.Second, "way", `data-order="origin"`)
	r.shows(90*time.Second, "inbox", "[karui] shop DEGRADED プロキシ")
	if _, err := whole("/photo.jpg?past"); err != nil {
		t.Errorf("an image past a slow karui: %v", err)
	}
	r.press("/do/heal", "")
	r.shows(90*time.Second, "way", `data-order="karui"`)

	// Killed by somebody else: said so, and healed.
	pid := 0
	if _, err := fmt.Sscan(r.part("pid"), &pid); err != nil || pid <= 1 {
		t.Fatalf("no process to kill: %v", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.shows(90*time.Second, "journal", "not by a button of this page")
	r.press("/do/heal", "")
	r.shows(90*time.Second, "journal", "karui serves again")
}

// TestEnds: however the demonstration ends, nothing of it is left. That is looked at
// for each demonstration that a test starts.
func TestEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds each")
	}
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			r := startDemo(t)
			if n := len(r.processes()); n < 4 {
				t.Errorf("%d processes: the demonstration, its janitor, karui and the watchdog are missing", n)
			}
			if code := r.signal(s); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
	t.Run("while it starts", func(t *testing.T) {
		// Not through startDemo, which waits for the address.
		r := launchDemo(t)
		eventually(t, 90*time.Second, "it starts", func() bool { return strings.Contains(r.log.String(), "the folder for") })
		if code := r.signal(syscall.SIGTERM); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("an address that is taken", func(t *testing.T) {
		taken := httptest.NewServer(http.NotFoundHandler())
		defer taken.Close()
		r := launchDemo(t, "--listen", strings.TrimPrefix(taken.URL, "http://"))
		select {
		case <-r.ended:
		case <-time.After(time.Minute):
			t.Fatal("it did not end")
		}
		if code := r.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(r.log.String(), "--listen") {
			t.Errorf("exit code %d: %s", code, r.log)
		}
	})
}

// A site that does not answer is the caller's to look after, and is named.
func TestRealSiteThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(cut.Close)
	for _, tt := range []struct{ site, why string }{{gone.URL, "connection refused"}, {cut.URL, "EOF"}} {
		site, err := url.Parse(tt.site)
		if err != nil {
			t.Fatal(err)
		}
		transport := siteTransport()
		_, err = discover(t.Context(), site, transport)
		transport.CloseIdleConnections()
		if err == nil || !strings.HasPrefix(err.Error(), tt.site+" does not answer: ") || !strings.Contains(err.Error(), tt.why) || strings.Count(err.Error(), tt.site) != 1 || !strings.Contains(err.Error(), "--origin") {
			t.Error(err)
		}
	}
	if testing.Short() {
		return
	}
	r := launchDemo(t, "--origin", gone.URL)
	select {
	case <-r.ended:
	case <-time.After(time.Minute):
		t.Fatal("it did not end")
	}
	if said := r.log.String(); r.cmd.ProcessState.ExitCode() != 1 || strings.Contains(said, "cannot be started") || !strings.Contains(said, "karui: "+gone.URL+" does not answer: ") {
		t.Errorf("%s: %s", r.cmd.ProcessState, said)
	}
}

// TestRealSite shows the images of a site other than the sample one.
func TestRealSite(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	files := samples()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			_, _ = io.WriteString(w, `<img src="/photo.jpg" alt="Mountains"><img src="https://elsewhere.example/x.jpg">`)
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(site.Close)
	r := startDemo(t, "--origin", site.URL)
	_, body := r.get("/")
	if !strings.Contains(body, "Mountains") || strings.Contains(body, "elsewhere.example") {
		t.Errorf("the images of the site are not shown: %s", body)
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	eventually(t, 90*time.Second, "WebP of the site's image", func() bool {
		format, err := fetch(client, r.edge()+"/photo.jpg", "image/webp")
		if err != nil {
			t.Error(err)
		}
		return format == "webp"
	})
	r.press("/pictures", "path=/logo.png")
	if _, body := r.get("/"); !strings.Contains(body, "logo.png") {
		t.Error("an image that was named is not shown")
	}
}

// TestPartsThatDoNotStart are named, with what they said last, and everything that
// was started before is taken down.
func TestPartsThatDoNotStart(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	program := buildDir.program(t)
	t.Setenv("TMPDIR", t.TempDir())
	for name, change := range map[string]func(*Commands){
		"karui cannot be started: karui ended":               func(c *Commands) { c.Serve = []string{"config", "check"} },
		"the watchdog cannot be started: the watchdog ended": func(c *Commands) { c.Watchdog = []string{"config", "check"} },
	} {
		commands := Commands{
			Serve: []string{"serve"}, Watchdog: []string{"demo-watchdog", "run"}, Rehearse: []string{"demo-watchdog", "rehearse"},
			Disk: []string{"demo-disk"}, Janitor: []string{"demo-janitor"},
		}
		change(&commands)
		err := Run(t.Context(), Options{Listen: "127.0.0.1:0", Formats: []string{"webp"}, Executable: program, Commands: commands, draw: samples})
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "it said last") {
			t.Errorf("%v, want %s", err, name)
		}
	}

	// Without a small disk everything starts, and the button says why it cannot be pressed.
	commands := Commands{
		Serve: []string{"serve"}, Watchdog: []string{"demo-watchdog", "run"}, Rehearse: []string{"demo-watchdog", "rehearse"},
		Disk: []string{"config", "check", "--config", "/nonexistent"}, Janitor: []string{"demo-janitor"},
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := Run(ctx, Options{Listen: "127.0.0.1:0", Formats: []string{"webp"}, Executable: program, Commands: commands, draw: samples, Ready: func(url string) {
		if _, body := ask(t, http.MethodGet, url, ""); !strings.Contains(body, "Not on this machine: this system mounts no disk in memory") {
			t.Error("the button does not say why the disk cannot be filled")
		}
		cancel()
	}})
	if err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
