package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karui/cache"
	"karui/convert"
	"karui/convert/header"
	"karui/proxy/origin"
)

// stage is a proxy over a real cache of two volumes, whose origin and converter stop
// before every step until they are told to go on. All of it lives in a bubble, so that
// the order of things is the test's to choose.
type stage struct {
	t       *testing.T
	volumes []cache.VolumeConfig
	store   *cache.Cache
	proxy   *Proxy

	mu      sync.Mutex
	free    bool   // nothing stops
	purged  bool   // this run's purge has returned
	waiting []turn // steps that wait, oldest first
	pieces  map[string]*piece
}

// turn is a step that waits to be taken.
type turn struct {
	folder string
	take   chan struct{}
}

// piece is what the origin has under a folder of its own, of one run of a play.
type piece struct {
	old, now     []byte // nil is 404
	switched     bool
	cacheControl string
}

// step waits until it is this step's turn.
func (s *stage) step(ctx context.Context, folder string) error {
	s.mu.Lock()
	if s.free {
		s.mu.Unlock()
		return nil
	}
	mine := turn{folder, make(chan struct{})}
	s.waiting = append(s.waiting, mine)
	s.mu.Unlock()
	select {
	case <-mine.take:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Do is the origin: it says 304 to whoever asks with a condition, whatever picture
// it has by now, as origins do whose ETags do not follow their pictures.
func (s *stage) Do(ctx context.Context, r origin.Request) (*origin.Response, error) {
	folder, _, _ := strings.Cut(r.Target[1:], "/")
	if err := s.step(ctx, folder); err != nil { // the request is on its way
		return nil, err
	}
	start := time.Now()
	s.mu.Lock()
	p := s.pieces[folder]
	picture := p.old
	if p.switched {
		picture = p.now
	}
	s.mu.Unlock()
	if err := s.step(ctx, folder); err != nil { // the head is on its way
		return nil, err
	}
	h := http.Header{"Etag": {`"always"`}, "Content-Type": {"image/jpeg"}, "Cache-Control": {p.cacheControl}}
	response := &origin.Response{Head: origin.Head{Status: http.StatusOK, Header: h, Framing: origin.Length, Start: start}}
	switch {
	case r.Header.Get("If-None-Match") != "":
		response.Status = http.StatusNotModified
		picture = nil
	case picture == nil:
		response.Status = http.StatusNotFound
	}
	response.Length = int64(len(picture))
	response.Body = &halting{s: s, ctx: ctx, folder: folder, rest: picture}
	return response, nil
}

// halting is a body that comes in two halves.
type halting struct {
	s      *stage
	ctx    context.Context
	folder string
	rest   []byte
	half   bool
}

func (h *halting) Read(p []byte) (int, error) {
	if len(h.rest) == 0 {
		return 0, io.EOF
	}
	n := min(len(p), len(h.rest))
	if !h.half {
		h.half = true
		n = min(n, (len(h.rest)+1)/2)
	} else if err := h.s.step(h.ctx, h.folder); err != nil {
		return 0, err
	}
	copy(p, h.rest[:n])
	h.rest = h.rest[n:]
	return n, nil
}

func (h *halting) Close() error { return nil }

// Convert is the converter.
func (s *stage) Convert(ctx context.Context, source []byte, opt convert.Options) (convert.Result, error) {
	_, rest, _ := bytes.Cut(source, []byte("folder "))
	folder, _, _ := bytes.Cut(rest, []byte(" "))
	if err := s.step(ctx, string(folder)); err != nil {
		return convert.Result{}, err
	}
	if bytes.Contains(source, []byte("plain")) {
		return convert.Result{Decision: convert.Decide(convert.NotSmaller, "")}, nil
	}
	return convert.Result{Body: variantOf(source, opt.Formats[0]), Format: opt.Formats[0], Decision: convert.Decide(convert.Converted, "")}, nil
}

func (s *stage) Ping(context.Context) ([]byte, error) { return []byte("\xff\xd8\xff ping"), nil }

func variantOf(source []byte, f header.Format) []byte {
	return fmt.Appendf(nil, "RIFF %v of %s", f, source[len(source)-12:])
}

func (s *stage) open() {
	s.t.Helper()
	log := slog.New(slog.DiscardHandler)
	config := cache.DefaultConfig()
	config.Memory, config.Volumes = 4<<20, s.volumes
	var err error
	if s.store, err = cache.Open(config, cache.DiskConfig{High: 100, Low: 99, Stress: 100}, cache.Options{Log: log}); err != nil {
		s.t.Fatal(err)
	}
	site := DefaultSite()
	site.ID, site.Default, site.Formats = "shop", true, []string{"avif", "webp"}
	settings := Settings{
		Edge: DefaultEdge(), TTL: DefaultTTL(), Limits: DefaultLimits(), Convert: convert.DefaultConfig(),
		Stress: DefaultStress(), Sites: []Site{{Config: site, Origin: s}},
	}
	settings.Stress.Latency = time.Minute // steps take their time
	settings.FirstResponse.Wait = 300 * time.Millisecond
	s.proxy = New(Options{
		Settings: settings, Cache: s.store, Convert: s, Log: log, Registry: prometheus.NewRegistry(), SpoolDir: s.volumes[0].Path,
	})
}

func (s *stage) close() {
	s.proxy.Close()
	if err := s.store.Close(); err != nil {
		s.t.Error(err)
	}
}

// viewer is one request.
type viewer struct {
	s      *stage
	late   bool // it began after the purge
	passed bool // its head was sent after the purge
	accept string
	*httptest.ResponseRecorder
	done chan struct{}
}

var accepts = []string{"image/webp,*/*", "image/avif,image/webp,*/*", "*/*"}

func (s *stage) view(folder, accept string, late bool) *viewer {
	v := &viewer{s: s, late: late, accept: accept, ResponseRecorder: httptest.NewRecorder(), done: make(chan struct{})}
	r := httptest.NewRequest(http.MethodGet, "/"+folder+"/a.jpg", nil)
	r.Header.Set("Accept", accept)
	go func() {
		defer close(v.done)
		defer func() {
			if failure := recover(); failure != nil && failure != http.ErrAbortHandler { //nolint:errorlint // it is compared so by net/http
				panic(failure)
			}
		}()
		s.proxy.ServeHTTP(v, r)
	}()
	return v
}

// WriteHeader implements http.ResponseWriter.
func (v *viewer) WriteHeader(status int) {
	v.s.mu.Lock()
	v.passed = v.s.purged
	v.s.mu.Unlock()
	v.ResponseRecorder.WriteHeader(status)
}

// check looks at what the viewer got: of whose bytes it is.
func (v *viewer) check(t *testing.T, p *piece, order string) {
	t.Helper()
	kinds := map[string]string{}
	add := func(whose string, picture []byte) {
		if picture == nil {
			kinds["404 "] = whose
			return
		}
		kinds["200 "+string(picture)] = whose
		for _, f := range []header.Format{header.AVIF, header.WebP} {
			kinds["200 "+string(variantOf(picture, f))] = whose
		}
	}
	add("old", p.old)
	add("new", p.now)
	got := fmt.Sprintf("%d %s", v.Code, v.Body.String())
	switch whose := kinds[got]; {
	case whose == "":
		t.Fatalf("%s: a viewer of %s got %d %.60q", order, v.accept, v.Code, v.Body.String())
	case whose == "old" && v.late:
		t.Fatalf("%s: a viewer of %s who asked after the purge got the old picture: %v, X-Karui %s", order, v.accept, v.Code, v.Header().Get(didHeader))
	case whose == "old" && v.passed && v.Header().Get("Cache-Control") != "no-store":
		t.Fatalf("%s: an edge may keep the old picture, whose head was sent after the purge: %s, X-Karui %s", order, v.Header().Get("Cache-Control"), v.Header().Get(didHeader))
	}
}

// play is a situation in which a purge comes.
type play struct {
	name string
	// before makes what is stored when it begins.
	before       func(s *stage, parts []*part)
	old, now     string // kinds of pictures: photo, plain (kept as it is), none (404)
	cacheControl string
}

func plays() []play {
	asked := func(s *stage, parts []*part, accepts ...string) {
		for _, own := range parts {
			for _, accept := range accepts {
				<-s.view(own.folder, accept, false).done
				synctest.Wait()
			}
		}
	}
	warm := func(s *stage, parts []*part) { asked(s, parts, accepts...) }
	stale := func(s *stage, parts []*part) {
		warm(s, parts)
		<-time.After(11 * time.Second)
		synctest.Wait()
	}
	return []play{
		{name: "cold", before: func(*stage, []*part) {}, old: "photo", now: "photo"},
		{name: "stored", before: warm, old: "photo", now: "photo"},
		{name: "stale", before: stale, old: "photo", now: "photo", cacheControl: "max-age=10"},
		{name: "must be asked for", before: warm, old: "photo", now: "photo", cacheControl: "no-cache"},
		{name: "kept as it is", before: warm, old: "plain", now: "photo"},
		{name: "stale, and kept from now on", before: stale, old: "photo", now: "plain", cacheControl: "max-age=10"},
		{name: "404 before", before: warm, old: "none", now: "photo"},
		{name: "original alone", before: func(s *stage, parts []*part) { asked(s, parts, "*/*") }, old: "photo", now: "photo"},
	}
}

func pictureOf(kind, whose, folder string) []byte {
	if kind == "none" {
		return nil
	}
	return fmt.Appendf(nil, "\xff\xd8\xff\xe0\x00\x10JFIF\x00 folder %s %s %s", folder, strings.Repeat(".", 3000), whose+"-"+kind+"-end")
}

// part is one folder in a run, with its viewers and the order of what happened to it.
type part struct {
	*piece
	folder  string
	viewers []*viewer
	early   int // how many viewers come before the purge, at most
	order   strings.Builder
}

// side is how many folders a run has: they share its purge, and go on side by side.
const side = 6

// perform plays with one order of things, drawn from random: viewers come, steps of the
// origin and the converter happen, time passes, and once, a purge. It gives the orders.
func (s *stage) perform(p play, run int, random *rand.Rand) (orders []string) {
	parts := make([]*part, side)
	s.setFree(true)
	for i := range parts {
		folder := fmt.Sprintf("run%d-%d", run, i)
		own := &piece{old: pictureOf(p.old, "old", folder), now: pictureOf(p.now, "new", folder), cacheControl: p.cacheControl}
		parts[i] = &part{piece: own, folder: folder, early: 1 + random.IntN(3)}
		s.mu.Lock()
		s.pieces[folder] = own
		s.mu.Unlock()
	}
	p.before(s, parts)
	s.setFree(false)
	s.setPurged(false)
	purged, passed := false, 0
	for s.act(parts, &purged, &passed, random) {
		synctest.Wait()
	}
	s.setFree(true)
	for _, own := range parts {
		order := p.name + ": " + own.order.String()
		orders = append(orders, order)
		for _, v := range own.viewers {
			<-v.done
			v.check(s.t, own.piece, order)
		}
	}
	for round := range 2 {
		for i, own := range parts {
			for _, accept := range accepts {
				v := s.view(own.folder, accept, true)
				<-v.done
				synctest.Wait()
				v.check(s.t, own.piece, fmt.Sprintf("%s, round %d", orders[i], round))
			}
		}
		if round == 0 {
			<-time.After(3 * time.Second) // now it is stored
			synctest.Wait()
		}
	}
	return orders
}

func (s *stage) setFree(free bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = free
}

func (s *stage) setPurged(purged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.purged = purged
}

// act does one of all the things that can happen; false if nothing can.
func (s *stage) act(parts []*part, purged *bool, passed *int, random *rand.Rand) bool {
	s.mu.Lock()
	waiting := slices.Clone(s.waiting)
	s.mu.Unlock()
	var can []func()
	for i, t := range waiting {
		can = append(can, func() {
			s.mu.Lock()
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			s.mu.Unlock()
			n := 0
			for _, other := range waiting[:i] {
				if other.folder == t.folder {
					n++
				}
			}
			for _, own := range parts {
				if own.folder == t.folder {
					fmt.Fprintf(&own.order, "s%d", n)
				}
			}
			close(t.take)
		})
	}
	everywhere := func(format string, args ...any) {
		for _, own := range parts {
			fmt.Fprintf(&own.order, format, args...)
		}
	}
	for _, own := range parts {
		if n := len(own.viewers); n < 4 && (*purged || n < own.early) {
			can = append(can, func() {
				i := random.IntN(len(accepts))
				fmt.Fprintf(&own.order, "v%d", i)
				own.viewers = append(own.viewers, s.view(own.folder, accepts[i], *purged))
			})
		}
	}
	if !*purged {
		can = append(can, func() {
			everywhere("P")
			s.mu.Lock()
			for _, own := range parts {
				own.switched = true
			}
			s.mu.Unlock()
			name, _, _ := strings.Cut(parts[0].folder, "-")
			if _, err := s.proxy.Purge(context.Background(), "shop", []string{"/" + name + "-"}); err != nil {
				s.t.Fatal(err)
			}
			*purged = true
			s.setPurged(true)
		})
	}
	if *passed < 3 {
		can = append(can, func() {
			d := []time.Duration{100 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second}[random.IntN(3)]
			everywhere("t%d", d/(100*time.Millisecond))
			*passed++
			<-time.After(d)
		})
	}
	if len(can) == 0 {
		return false
	}
	can[random.IntN(len(can))]()
	return true
}

// TestPurgeInEveryOrder: whatever is under way when a purge comes, and in whatever order
// it goes on, no viewer who asks after the purge gets the old picture, in any form; nor
// after a restart.
func TestPurgeInEveryOrder(t *testing.T) {
	runs := 45
	if n, err := strconv.Atoi(os.Getenv("KARUI_PURGE_ORDERS")); err == nil {
		runs = n
	}
	for i, p := range plays() {
		t.Run(p.name, func(t *testing.T) {
			root := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := &stage{t: t, pieces: map[string]*piece{}}
				for v := range 2 {
					volume := cache.DefaultVolume()
					volume.Path = filepath.Join(root, strconv.Itoa(v))
					s.volumes = append(s.volumes, volume)
				}
				s.open()
				defer func() { s.close() }()
				orders := map[string]bool{}
				for run := range runs {
					for _, order := range s.perform(p, run, rand.New(rand.NewPCG(uint64(i), uint64(run)))) {
						orders[order] = true
					}
					if t.Failed() {
						return
					}
				}
				t.Logf("%d orders", len(orders))
				if len(orders) < runs*side*3/4 {
					t.Errorf("only %d of %d orders are different", len(orders), runs*side)
				}
				s.close()
				s.open()
				for folder, own := range s.pieces {
					for _, accept := range accepts {
						v := s.view(folder, accept, true)
						<-v.done
						v.check(t, own, "after a restart")
					}
					synctest.Wait()
				}
			})
		})
	}
}
