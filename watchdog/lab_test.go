package watchdog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"go.uber.org/goleak"

	double "karui/internal/cloudfront"
	"karui/watchdog"
	"karui/watchdog/event"
	"karui/watchdog/probe"
	"karui/watchdog/settings"
	"karui/watchdog/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	imagesPolicy = "b2884449-e4de-46a7-ac36-70bc7f1ddd6d"
	roleARN      = "arn:aws:iam::111122223333:role/karui-watchdog"
	rolePolicy   = `{"Version":"2012-10-17","Statement":[` +
		`{"Effect":"Allow","Action":["cloudfront:GetDistribution","cloudfront:GetDistributionConfig","cloudfront:UpdateDistribution",` +
		`"cloudfront:CreateInvalidation","cloudfront:GetInvalidation"],"Resource":"arn:aws:cloudfront::111122223333:distribution/*"},` +
		`{"Effect":"Allow","Action":"cloudfront:GetCachePolicy","Resource":"arn:aws:cloudfront::111122223333:cache-policy/*"}]}`
)

// lab is a world in a bubble of simulated time: the double of AWS, servers by
// name, an outbox, and a state directory that survives watchdogs.
type lab struct {
	*double.Double
	t      *testing.T
	dir    string
	config settings.Config
	outbox *outbox
	base   aws.Config
	logs   *bytes.Buffer
	logMu  sync.Mutex

	mu      sync.Mutex
	servers map[string]*double.Pipe // by host name
	gone    bool                    // the watchdog's own network
	dials   map[string]int
	closing []func()
}

func shopXML(t *testing.T) []byte {
	t.Helper()
	doc, err := os.ReadFile("../internal/cloudfront/testdata/shop.xml")
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// swapped is a shop's document in the degraded order.
func swapped(t *testing.T, shop []byte) []byte {
	t.Helper()
	const karui = "<OriginGroupMember><OriginId>karui</OriginId></OriginGroupMember>"
	const origin = "<OriginGroupMember><OriginId>origin</OriginId></OriginGroupMember>"
	out := bytes.Replace(shop, []byte(karui+origin), []byte(origin+karui), 1)
	if bytes.Equal(out, shop) {
		t.Fatal("the shop's document is not as expected")
	}
	return out
}

// inLab runs f with a shop whose proxy, origin and control are well.
func inLab(t *testing.T, f func(ctx context.Context, l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{
			t: t, Double: double.New(double.Options{DeployDelay: 4 * time.Minute}), dir: filepath.Join(t.TempDir(), "state"),
			outbox: &outbox{}, servers: map[string]*double.Pipe{}, dials: map[string]int{}, logs: &bytes.Buffer{},
		}
		defer func() {
			for _, c := range slices.Backward(l.closing) {
				c()
			}
		}()
		l.must(l.PutCachePolicy(double.CachePolicy{
			ID: imagesPolicy, Name: "images", DefaultTTL: time.Hour, MaxTTL: 24 * time.Hour, Headers: []string{"Accept"}, Queries: []string{"v"},
		}))
		l.must(l.PutDistribution("ESHOP", shopXML(t)))
		user, err := l.AddUser("watchdog", double.AllowAll)
		l.must(err)
		_, err = l.PutRole(double.Role{Name: "karui-watchdog", ExternalID: "external-17", Policy: rolePolicy})
		l.must(err)
		pipe := double.NewPipe()
		server := l.Serve(pipe)
		transport := pipe.Transport()
		l.closing = append(l.closing, func() {
			transport.CloseIdleConnections()
			l.must(server.Close(context.Background()))
		})
		l.base = aws.Config{
			Region: "eu-west-1", BaseEndpoint: aws.String(server.URL),
			HTTPClient:  &http.Client{Transport: &network{l, transport}, Timeout: 30 * time.Second},
			Credentials: credentials.NewStaticCredentialsProvider(user.AccessKeyID, user.SecretAccessKey, ""),
		}
		l.serve("karui.example.com", ping)
		l.serve("origin.example.com", answer(200))
		l.serve("control.example.com", answer(403))
		l.config = settings.Default()
		l.config.ControlURLs = []string{"http://control.example.com/"}
		l.config.Listen = "127.0.0.1:0"
		l.config.Sites = []settings.Site{shop("shop", "ESHOP")}
		ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
		defer cancel()
		f(ctx, l)
	})
}

func shop(id, distributionID string) settings.Site {
	s := settings.DefaultSite()
	s.ID, s.DistributionID = id, distributionID
	s.PingURL, s.OriginURL = "http://karui.example.com/ping.jpg", "http://origin.example.com/favicon.ico"
	s.OriginGroupID, s.ProxyOriginID, s.DirectOriginID = "images", "karui", "origin"
	s.RoleARN, s.ExternalID = roleARN, "external-17"
	return s
}

// network is the way to AWS, which goes when the watchdog's own network does.
type network struct {
	l    *lab
	next http.RoundTripper
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := n.l.dial("aws"); err != nil {
		return nil, err
	}
	return n.next.RoundTrip(r)
}

func (l *lab) dial(host string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials[host]++
	if l.gone {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
	}
	return nil
}

// dialled is how often a host was dialled.
func (l *lab) dialled(host string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dials[host]
}

func (l *lab) lose(gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = gone
}

// serve starts a server of that name, in place of one before.
func (l *lab) serve(host string, h http.HandlerFunc) {
	pipe := double.NewPipe()
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Serve(pipe) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers[host] = pipe
	l.closing = append(l.closing, func() {
		server.Close()
		wait.Wait()
	})
}

// stop makes a server refuse connections.
func (l *lab) stop(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.servers, host)
}

// Dial is how probes reach the servers.
func (l *lab) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if err := l.dial(host); err != nil {
		return nil, err
	}
	l.mu.Lock()
	pipe := l.servers[host]
	l.mu.Unlock()
	if pipe == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	return pipe.Dial(ctx, network, address)
}

// watchdog makes one on the lab's state directory.
func (l *lab) watchdog() *watchdog.Watchdog {
	l.t.Helper()
	st, err := store.Open(l.dir)
	l.must(err)
	return l.watchdogAt(st)
}

func (l *lab) watchdogAt(st *store.Store) *watchdog.Watchdog {
	l.t.Helper()
	w, err := watchdog.New(watchdog.Options{
		Config: l.config, Store: st, Outbox: l.outbox, What: "run",
		AWS:    func(context.Context) (aws.Config, error) { return l.base, nil },
		Probe:  probe.Options{Dial: l.Dial},
		Listen: func(context.Context, string) (net.Listener, error) { return double.NewPipe(), nil },
		Log:    slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	l.must(err)
	return w
}

// Write takes the log.
func (l *lab) Write(p []byte) (int, error) {
	l.logMu.Lock()
	defer l.logMu.Unlock()
	return l.logs.Write(p)
}

// watch runs a watchdog for as long as it takes.
func (l *lab) watch(ctx context.Context, d time.Duration) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	w := l.watchdog()
	defer w.Close()
	w.Run(ctx, nil)
}

// check runs one round of all sites.
func (l *lab) check(ctx context.Context) []watchdog.Result {
	l.t.Helper()
	w := l.watchdog()
	defer w.Close()
	results, errs := w.Check(ctx)
	if err := errors.Join(errs...); err != nil {
		l.t.Fatalf("check: %v", err)
	}
	return results
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// order is who comes first at the double.
func (l *lab) order() event.Order {
	l.t.Helper()
	s, ok := l.Distribution("ESHOP")
	if !ok {
		l.t.Fatal("the distribution is gone")
	}
	return orderOf(s.Newest)
}

func orderOf(doc []byte) event.Order {
	text := string(doc)
	group := text[strings.Index(text, "<OriginGroup><Id>images</Id>"):]
	if strings.Index(group, "<OriginId>karui</OriginId>") < strings.Index(group, "<OriginId>origin</OriginId>") {
		return event.OrderProxy
	}
	return event.OrderDirect
}

// updates counts the writes that went through.
func (l *lab) updates() int {
	n := 0
	for _, c := range l.Calls("UpdateDistribution") {
		if c.Status == 200 {
			n++
		}
	}
	return n
}

// wantTold checks what has been told so far, in order.
func (l *lab) wantTold(kinds ...event.Kind) {
	l.t.Helper()
	var got []event.Kind
	for _, e := range l.outbox.all() {
		got = append(got, e.Kind)
	}
	if !slices.Equal(got, kinds) {
		l.logMu.Lock()
		defer l.logMu.Unlock()
		l.t.Fatalf("told %q, want %q\n%s", got, kinds, l.logs)
	}
}

func answer(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// hang takes a request and never answers.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

var pingBody = func() []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 16, 16)), nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}()

func ping(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "image/jpeg")
	_, _ = w.Write(pingBody)
}

// outbox keeps events as the real one does, without sending them anywhere.
type outbox struct {
	mu     sync.Mutex
	events []event.Event
	full   error // what Enqueue fails with
	panics bool
	tried  []event.Event // sent past it
}

// straight lists what was sent past the outbox.
func (o *outbox) straight() []event.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.tried)
}

func (o *outbox) Try(_ context.Context, e event.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tried = append(o.tried, e)
	return nil
}

func (o *outbox) Enqueue(_ context.Context, e event.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.panics {
		panic("outbox")
	}
	if o.full != nil {
		return o.full
	}
	if !slices.ContainsFunc(o.events, func(have event.Event) bool { return have.ID == e.ID }) {
		o.events = append(o.events, e)
	}
	return nil
}

func (o *outbox) all() []event.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.events)
}

func (o *outbox) set(full error, panics bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.full, o.panics = full, panics
}

func (o *outbox) Run(ctx context.Context)          { <-ctx.Done() }
func (o *outbox) Flush(context.Context) error      { return nil }
func (o *outbox) Waiting() (int, time.Time, error) { return 0, time.Time{}, nil }

var errFull = fmt.Errorf("the outbox is full")
