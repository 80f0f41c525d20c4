package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"karui/cache"
	"karui/convert"
	"karui/internal/origintest"
	"karui/proxy/origin"
	"karui/proxy/rules"
)

// TestMain is also the worker of the real pools that tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == convert.WorkerCommand {
		os.Exit(convert.WorkerMain(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// limit is how long a test waits for what must come. It is only ever waited out
// by a test that fails.
const limit = 20 * time.Second

// clock is the time of lifetimes in tests.
type clock struct {
	offset atomic.Int64
	// stopped, if set, is what it shows but for offset.
	stopped atomic.Pointer[time.Time]
}

func (c *clock) now() time.Time {
	base := time.Now()
	if stopped := c.stopped.Load(); stopped != nil {
		base = *stopped
	}
	return base.Add(time.Duration(c.offset.Load()))
}

// standing lets time pass only where a test says so, for exact lifetimes on a
// machine of any speed.
func standing() option {
	return func(r *rig, _ *Options) {
		now := time.Now()
		r.clock.stopped.Store(&now)
	}
}

func (c *clock) pass(d time.Duration)  { c.offset.Add(int64(d)) }
func (c *clock) passSeconds(n float64) { c.pass(time.Duration(n * float64(time.Second))) }

// fake is a Converter that makes a recognisable variant without looking at pixels.
type fake struct {
	calls atomic.Int64
	// hold, if set, is waited for by every conversion.
	hold atomic.Pointer[chan struct{}]
	// decide, if set, answers instead.
	decide atomic.Pointer[func(source []byte, opt convert.Options) convert.Result]
	pings  func(context.Context) ([]byte, error)
}

// webp is the variant that the fake makes of a source.
func webp(source []byte) []byte {
	return fmt.Appendf(nil, "RIFF\x40\x00\x00\x00WEBPVP8 %x", sha256.Sum256(source))
}

func (f *fake) Convert(ctx context.Context, source []byte, opt convert.Options) (convert.Result, error) {
	f.calls.Add(1)
	if hold := f.hold.Load(); hold != nil {
		select {
		case <-*hold:
		case <-ctx.Done():
			return convert.Result{}, ctx.Err()
		}
	}
	if decide := f.decide.Load(); decide != nil {
		return (*decide)(source, opt), nil
	}
	return convert.Result{Body: webp(source), Format: opt.Formats[0], Decision: convert.Decide(convert.Converted, "")}, nil
}

func (f *fake) Ping(ctx context.Context) ([]byte, error) {
	if f.pings != nil {
		return f.pings(ctx)
	}
	return []byte("\xff\xd8\xff ping"), nil
}

// keepAs makes the fake decide with one code.
func (f *fake) keepAs(code convert.Code) {
	decide := func([]byte, convert.Options) convert.Result {
		return convert.Result{Decision: convert.Decide(code, "because")}
	}
	f.decide.Store(&decide)
}

// gate holds conversions until the returned function is called.
func (f *fake) gate() (open func()) {
	hold := make(chan struct{})
	f.hold.Store(&hold)
	return sync.OnceFunc(func() { close(hold) })
}

// rig is a proxy with a real cache in front of an origin that misbehaves on demand.
type rig struct {
	tb       testing.TB
	origin   *origintest.Origin
	clock    *clock
	fake     *fake
	cache    *cache.Cache
	proxy    *Proxy
	server   *httptest.Server
	client   *http.Client
	settings Settings
	registry *prometheus.Registry
	log      *lines
}

type option func(*rig, *Options)

// site changes the one site of the rig.
func withSite(change func(*SiteConfig)) option {
	return func(_ *rig, o *Options) { change(&o.Settings.Sites[0].Config) }
}

func withSettings(change func(*Settings)) option {
	return func(_ *rig, o *Options) { change(&o.Settings) }
}

// waiting sets first_response.wait.
func waiting(d time.Duration) option {
	return withSettings(func(s *Settings) { s.FirstResponse.Wait = d })
}

func withConverter(c Converter) option { return func(_ *rig, o *Options) { o.Convert = c } }

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newRig starts everything. Unless told otherwise viewers do not wait for variants.
func newRig(tb testing.TB, options ...option) *rig {
	tb.Helper()
	r := &rig{tb: tb, origin: origintest.New(tb), clock: &clock{}, fake: &fake{}, registry: prometheus.NewRegistry(), log: &lines{}}
	config := origin.DefaultConfig()
	config.Deadline, config.Idle, config.Total = limit, limit, 2*limit
	client, err := origin.New(origin.Options{
		Config: config, Place: origin.PlaceConfig{Name: "test", URLs: []string{r.origin.URL()}, Weight: 1},
		Strip: []string{"X-Routing", KeyHeader}, Now: r.clock.now,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)

	log := slog.New(slog.NewTextHandler(r.log, nil))
	volume := cache.DefaultVolume()
	volume.Path = tb.TempDir()
	cacheConfig := cache.DefaultConfig()
	cacheConfig.Volumes = []cache.VolumeConfig{volume}
	r.cache, err = cache.Open(cacheConfig, cache.DefaultDiskConfig(), cache.Options{Log: log, Now: r.clock.now})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = r.cache.Close() })

	site := DefaultSite()
	site.ID, site.Default, site.Hosts = "shop", true, []string{"www.example.com"}
	o := Options{
		Settings: Settings{
			Edge: DefaultEdge(), TTL: DefaultTTL(), Limits: DefaultLimits(), Convert: convert.DefaultConfig(),
			Sites: []Site{{Config: site, Origin: client}}, AccessLog: true,
		},
		Cache: r.cache, Convert: r.fake, Log: log, Registry: r.registry, SpoolDir: tb.TempDir(), Now: r.clock.now,
	}
	for _, change := range options {
		change(r, &o)
	}
	r.settings = o.Settings
	r.proxy = New(o)
	r.server = httptest.NewServer(r.proxy)
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1000}
	r.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	tb.Cleanup(func() {
		transport.CloseIdleConnections()
		r.server.Close()
		r.proxy.Close()
	})
	return r
}

// answer is what a viewer got.
type answer struct {
	*http.Response
	body []byte
	err  error // of the body
}

// do sends one request. Headers are "Name: value".
func (r *rig) do(method, target string, lines ...string) *answer {
	r.tb.Helper()
	req, err := http.NewRequest(method, r.server.URL, nil)
	if err != nil {
		r.tb.Fatal(err)
	}
	// The target goes out byte for byte.
	req.URL.Opaque = target
	req.Header.Set("User-Agent", "test")
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Add(name, value)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	resp, err := r.client.Do(req.WithContext(ctx))
	if err != nil {
		r.tb.Fatalf("%s %s: %v", method, target, err)
	}
	defer resp.Body.Close()
	a := &answer{Response: resp}
	a.body, a.err = io.ReadAll(resp.Body)
	return a
}

func (r *rig) get(target string, lines ...string) *answer {
	r.tb.Helper()
	return r.do(http.MethodGet, target, lines...)
}

const (
	takesWebP = "Accept: image/avif,image/webp,*/*;q=0.8"
	takesJPEG = "Accept: image/png,image/*;q=0.8,*/*;q=0.5"
)

// idle waits until nothing is under way, background work included.
func (r *rig) idle() {
	r.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	wait := func() {
		if err := r.proxy.work.wait(ctx); err != nil {
			r.tb.Fatalf("work is still under way: %v", err)
		}
	}
	wait()
	// A flight is still known for an instant after its task, and one that a refresh
	// began is known before it counts as work.
	for r.proxy.Flights().Flights > 0 && ctx.Err() == nil {
		runtime.Gosched()
	}
	wait()
}

// warm makes a path's variant and waits until it is stored.
func (r *rig) warm(target string, lines ...string) {
	r.tb.Helper()
	r.get(target, append(lines, takesWebP)...)
	r.idle()
}

// want compares an answer; "" for a header wants it absent, "*" any value.
func (r *rig) want(a *answer, status int, body []byte, fields map[string]string) {
	r.tb.Helper()
	if a.StatusCode != status {
		r.tb.Errorf("status %d, want %d (%s)", a.StatusCode, status, a.body[:min(len(a.body), 200)])
	}
	if a.err != nil {
		r.tb.Errorf("body: %v", a.err)
	}
	if body != nil && !bytes.Equal(a.body, body) {
		r.tb.Errorf("body of %d bytes %.40q, want %d bytes %.40q", len(a.body), a.body, len(body), body)
	}
	for name, want := range fields {
		got := strings.Join(a.Header.Values(name), " | ")
		switch {
		case want == "*" && got != "", got == want:
		default:
			r.tb.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// photo gives a JPEG with noise in it, about as large as side x side / 2 bytes.
func photo(tb testing.TB, side int, seed uint64) []byte {
	tb.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	img := image.NewRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			img.Set(x, y, color.RGBA{uint8(x), uint8(y), uint8(random.IntN(256)), 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 90}); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// raw sends bytes over a connection of its own and gives the answer's head and
// whatever follows, read by the caller.
func (r *rig) raw(request string) (*http.Response, *bufio.Reader, net.Conn) {
	r.tb.Helper()
	conn, err := net.Dial("tcp", r.server.Listener.Addr().String())
	if err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(limit))
	if _, err := io.WriteString(conn, request); err != nil {
		r.tb.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil {
		r.tb.Fatalf("no answer: %v", err)
	}
	return resp, reader, conn
}

func readFull(r io.Reader, b []byte) (int, error) { return io.ReadFull(r, b) }

// tagOf gives the ETag of a variant with these bytes.
func tagOf(body []byte) string { return rules.DigestOf(body).ETag() }

func targetOf(uri string) rules.Target {
	t, _ := rules.ParseTarget(uri)
	return t
}
