package proxy

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"karui/cache"
	"karui/convert"
	"karui/internal/origintest"
	"karui/proxy/backlog"
	"karui/proxy/dial"
)

// later is a rig with a list of what was postponed, and queues that a test sets.
type later struct {
	*rig
	list *backlog.Backlog
	fast atomic.Pointer[Queue]
}

func (l *later) queue(q Queue) { l.fast.Store(&q) }

func newLater(t *testing.T, options ...option) *later {
	t.Helper()
	l := &later{list: backlog.Open(backlog.Options{Limits: backlog.DefaultLimits()})}
	l.queue(Queue{Workers: 2})
	l.rig = newRig(t, append([]option{standing(), func(_ *rig, o *Options) {
		o.Load = func() (fast, slow dial.Load) { return dial.Load{Workers: 2}, dial.Load{} }
		o.Queues = func() (fast, slow Queue) { return *l.fast.Load(), Queue{Workers: 1} }
		o.Postponed, o.Purged = l.list.Ask, l.list.Purge
	}}, options...)...)
	return l
}

// rest has the workers idle for long enough to be known for it.
func (l *later) rest() {
	for range 12 {
		l.clock.passSeconds(1)
		l.proxy.look()
	}
}

func variantKey(path, rest string) cache.Key {
	return cache.Key{Site: "shop", Path: path, Rest: rest, Form: "webp"}
}

func (l *later) make(path string, want backlog.Verdict) {
	l.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	query := ""
	if i := strings.IndexByte(path, '?'); i >= 0 {
		path, query = path[:i], path[i:]
	}
	if got := l.proxy.Postponed().Make(ctx, variantKey(path, query)); got != want {
		l.tb.Errorf("%s: verdict %d, want %d", path, got, want)
	}
}

func (l *later) listed(want int) {
	l.tb.Helper()
	if n := l.list.Counts()["shop"]; n != want {
		l.tb.Errorf("%d entries are on the list, want %d", n, want)
	}
}

func TestPostponedIsMadeWithoutAViewer(t *testing.T) {
	l := newLater(t)
	jpg := photo(t, 64, 1)
	l.origin.SetDefault(func(origintest.Request) origintest.Answer { return jpegAnswer(jpg) })
	_ = l.proxy.Dial().Pin("shop", 3, time.Time{})
	l.want(l.get("/a.jpg?x=1", takesWebP), 200, jpg, map[string]string{"X-Karui": "miss"})
	l.idle()
	l.listed(1)
	m := l.proxy.Postponed()
	l.rest()
	if m.Open("shop") {
		t.Error("something may be made at defer")
	}
	l.make("/a.jpg?x=1", backlog.Busy)
	l.proxy.Dial().Unpin("shop")
	if !m.Open("shop") || !m.Idle() {
		t.Error("nothing may be made though there is time")
	}
	l.make("/a.jpg?x=1", backlog.Made)
	l.want(l.get("/a.jpg?x=1", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit", "Cache-Control": "public, max-age=86388"})
	if n := l.origin.Count("/a.jpg?x=1") + l.origin.Count("/a.jpg"); n > 1 {
		t.Errorf("the origin was asked %d times", n)
	}
	l.make("/a.jpg?x=1", backlog.Found)
	if n := l.fake.calls.Load(); n != 1 {
		t.Errorf("%d conversions", n)
	}
}

// What is not in the cache any more is fetched, in nobody's name.
func TestPostponedIsFetchedWhereTheCacheHasItNoMore(t *testing.T) {
	l := newLater(t)
	jpg := photo(t, 64, 1)
	l.origin.Set("/a.jpg", jpegAnswer(jpg))
	l.make("/a.jpg", backlog.Made)
	l.want(l.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit"})
	asked := l.origin.Requests("/a.jpg")
	if len(asked) != 1 || asked[0].Header.Get("User-Agent") != "karui" || asked[0].Header.Get("X-Forwarded-For") != "" {
		t.Errorf("the origin was asked: %+v", asked)
	}
}

// Viewers who come meanwhile share the fetch and the conversion.
func TestPostponedAndViewersShareAFlight(t *testing.T) {
	l := newLater(t, waiting(limit))
	jpg := photo(t, 64, 1)
	gate := origintest.NewGate()
	held := jpegAnswer(jpg)
	held.Hold = gate
	l.origin.Set("/a.jpg", held)
	verdict, viewer := make(chan backlog.Verdict, 1), make(chan *answer, 1)
	go func() { verdict <- l.proxy.Postponed().Make(context.Background(), variantKey("/a.jpg", "")) }()
	l.origin.Await("/a.jpg", 1, limit)
	go func() { viewer <- l.get("/a.jpg", takesWebP) }()
	l.until(func() bool { return l.proxy.Flights().Viewers == 2 })
	// A viewer needs it, so it is made whether or not there is time.
	l.queue(Queue{Workers: 2, Busy: 2})
	gate.Open()
	// Whether it was made before that viewer looked is up to the machine.
	l.want(<-viewer, 200, webp(jpg), map[string]string{"X-Karui": "*", "Content-Type": "image/webp"})
	if v := <-verdict; v != backlog.Made {
		t.Errorf("verdict %d", v)
	}
	if n := l.origin.Count("/a.jpg"); n != 1 || l.fake.calls.Load() != 1 {
		t.Errorf("%d fetches, %d conversions", n, l.fake.calls.Load())
	}
}

func TestWhatIsMadeInAHurryIsMadeAgainWithoutAViewer(t *testing.T) {
	s := &seen{fake: &fake{}}
	l := newLater(t, withConverter(s), withSite(func(c *SiteConfig) { c.Formats = []string{"avif", "webp"} }))
	jpg := photo(t, 64, 1)
	l.origin.Set("/a.jpg", jpegAnswer(jpg))
	_ = l.proxy.Dial().Pin("", 2, time.Time{})
	l.warm("/a.jpg")
	// The WebP of a cheap level, and the AVIF that this level leaves out.
	l.listed(2)
	l.rest()
	l.proxy.Dial().Unpin("")
	l.make("/a.jpg", backlog.Made)
	if got := s.last(t); s.count() != 2 || got.Quality != 80 {
		t.Errorf("%d conversions, the last at quality %d", s.count(), got.Quality)
	}
	l.make("/a.jpg", backlog.Found)
	avif := variantKey("/a.jpg", "")
	avif.Form = "avif"
	if v := l.proxy.Postponed().Make(context.Background(), avif); v != backlog.Made {
		t.Errorf("the AVIF: verdict %d", v)
	}
	l.want(l.get("/a.jpg", takesWebP), 200, nil, map[string]string{
		"X-Karui": "hit", "Content-Type": "image/avif", "Cache-Control": "public, max-age=86388",
	})
	if n := l.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times", n)
	}
}

func TestVerdictsOnWhatIsPostponed(t *testing.T) {
	l := newLater(t, withSite(func(c *SiteConfig) { c.Exclude = []string{"/private/*"} }))
	jpg := photo(t, 64, 1)
	l.origin.SetDefault(func(origintest.Request) origintest.Answer { return jpegAnswer(jpg) })
	l.origin.Set("/gone.jpg", origintest.Text(404, "text/plain", "gone"))
	l.origin.Set("/text.jpg", origintest.Text(200, "text/plain", "no picture at all"))
	l.origin.Set("/own.jpg", jpegAnswer(jpg, field("Set-Cookie", "a=b")))
	l.origin.Set("/fixed.jpg", jpegAnswer(jpg, field("Cache-Control", "no-transform")))
	l.origin.Set("/down.jpg", origintest.Text(500, "text/plain", "trouble"))
	l.origin.Set("/moved.jpg", origintest.Text(301, "text/plain", "elsewhere", field("Location", "/a.jpg")))
	for path, want := range map[string]backlog.Verdict{
		"/gone.jpg": backlog.Missed, "/text.jpg": backlog.Missed, "/own.jpg": backlog.Missed, "/fixed.jpg": backlog.Settled,
		"/private/a.jpg": backlog.Void, "/page.html": backlog.Void, "/down.jpg": backlog.Trouble, "/moved.jpg": backlog.Missed,
	} {
		l.make(path, want)
	}
	l.make("/down.jpg", backlog.Busy) // it rests
	for _, key := range []cache.Key{
		{Site: "closed", Path: "/a.jpg", Form: "webp"},
		{Site: "shop", Path: "/a.jpg", Form: "avif"},
		{Site: "shop", Path: "/a.jpg", Form: "original"},
		{Site: "shop", Path: "/a.jpg", Rest: "\nx-tenant:1", Form: "webp"},
		{Site: "shop", Path: "/a.jpg", Rest: "\ngarbage", Form: "webp"},
	} {
		if v := l.proxy.Postponed().Make(context.Background(), key); v != backlog.Void {
			t.Errorf("%v: verdict %d", key, v)
		}
	}
	for code, want := range map[convert.Code]backlog.Verdict{
		convert.NotSmaller: backlog.Settled, convert.QueueFull: backlog.Busy, convert.Timeout: backlog.Trouble, convert.Unavailable: backlog.Trouble,
	} {
		l.fake.keepAs(code)
		path := "/" + string(code) + ".jpg"
		l.make(path, want)
		if want == backlog.Settled {
			l.make(path, backlog.Found)
		}
	}
	l.listed(0)
	l.queue(Queue{Workers: 2, Busy: 1})
	l.make("/fine.jpg", backlog.Busy)
	l.queue(Queue{Workers: 2, Waiting: 1})
	l.make("/fine.jpg", backlog.Busy)
	if n := l.origin.Count("/fine.jpg"); n != 0 {
		t.Errorf("the origin was asked %d times for what there was no time for", n)
	}
}

// Viewers' work that comes during the fetch goes first.
func TestPostponedStopsForViewers(t *testing.T) {
	l := newLater(t)
	gate := origintest.NewGate()
	held := jpegAnswer(photo(t, 64, 1))
	held.Hold = gate
	l.origin.Set("/a.jpg", held)
	verdict := make(chan backlog.Verdict, 1)
	go func() { verdict <- l.proxy.Postponed().Make(context.Background(), variantKey("/a.jpg", "")) }()
	l.origin.Await("/a.jpg", 1, limit)
	l.queue(Queue{Workers: 2, Busy: 2, Waiting: 3})
	gate.Open()
	if v := <-verdict; v != backlog.Busy {
		t.Errorf("verdict %d", v)
	}
	if n := l.fake.calls.Load(); n != 0 {
		t.Errorf("%d conversions", n)
	}
	if l.proxy.Postponed().Idle() {
		t.Error("it is idle")
	}
}

func TestNothingIsMadeUnderStressOrInADrain(t *testing.T) {
	l := newLater(t)
	l.rest()
	m := l.proxy.Postponed()
	l.proxy.since.set(true, l.clock.now())
	if m.Idle() {
		t.Error("idle with full disks")
	}
	l.proxy.since.set(false, l.clock.now())
	if !m.Idle() || !m.Open("shop") || !m.Open("a site that was closed") {
		t.Error("not idle")
	}
	l.proxy.work.refuse()
	if m.Idle() || m.Open("shop") {
		t.Error("idle in a drain")
	}
}

// What finds no worker is made when there is one, and requests that come meanwhile count.
func TestWhatFindsNoWorkerIsMadeLater(t *testing.T) {
	l := newLater(t)
	jpg := photo(t, 64, 1)
	l.origin.SetDefault(func(origintest.Request) origintest.Answer { return jpegAnswer(jpg) })
	l.fake.keepAs(convert.QueueFull)
	for _, path := range []string{"/once.jpg", "/twice.jpg"} {
		l.want(l.get(path, takesWebP), 200, jpg, map[string]string{"X-Karui": "miss", "Cache-Control": "public, max-age=10"})
		l.idle()
	}
	l.want(l.get("/twice.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "miss"})
	if next := l.list.Status(2).Sites[0].Next; len(next) != 2 || next[0].Key.Path != "/twice.jpg" || next[0].Asked < 1.9 {
		t.Errorf("%+v", next)
	}
	l.fake.decide.Store(nil)
	l.make("/twice.jpg", backlog.Busy) // a worker was missing a moment ago
	l.clock.passSeconds(11)
	l.make("/twice.jpg", backlog.Made)
	l.want(l.get("/twice.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit"})
	// What failed for another reason is tried when somebody asks, and is not on the list.
	l.fake.keepAs(convert.Timeout)
	l.get("/slow.jpg", takesWebP)
	l.idle()
	l.get("/slow.jpg", takesWebP)
	l.listed(2)
}

func TestWhatIsPurgedIsNotMade(t *testing.T) {
	l := newLater(t)
	l.origin.SetDefault(func(origintest.Request) origintest.Answer { return jpegAnswer(photo(t, 64, 1)) })
	_ = l.proxy.Dial().Pin("", 3, time.Time{})
	for _, path := range []string{"/old/a.jpg", "/old/b.jpg?x=1", "/new/a.jpg"} {
		l.get(path, takesWebP)
	}
	l.idle()
	l.listed(3)
	if _, err := l.proxy.Purge(context.Background(), "shop", []string{"/old/"}); err != nil {
		t.Fatal(err)
	}
	l.listed(1)
}

func TestKeysHoldAllThatAFetchNeeds(t *testing.T) {
	config := DefaultSite()
	config.ID, config.ForwardHeaders = "shop", []string{"User-Agent", "X-Tenant", "Accept-Language"}
	s := newSite(config, nil, nil)
	r := newRouter("X-Routing", []*site{s})
	for _, viewer := range []http.Header{
		{},
		{"X-Tenant": {"7"}, "Accept-Language": {"ja", "en;q=0.5"}, "User-Agent": {"browser"}},
		{"X-Tenant": {""}, "Origin": {"https://www.example.com"}},
		{"Origin": {"https://a:8443"}},
	} {
		for _, target := range []string{"/a.jpg", "/%E3%81%82/b.PNG?x=1&y=%0A:2", "/a;b//c.gif?"} {
			f := s.fetch(targetOf(target), viewer)
			f.named = true
			key := f.form("webp")
			got, format, ok := r.postponed(key)
			if !ok || got.key != f.key || got.target != f.target || got.origin != f.origin || !got.named || format.String() != "webp" {
				t.Errorf("%s %v: %+v, %v", target, viewer, got, ok)
				continue
			}
			want := f.header()
			want.Set("User-Agent", "karui")
			have := got.header()
			for name := range want {
				if strings.Join(have[name], "|") != strings.Join(want[name], "|") || len(have) != len(want) {
					t.Errorf("%s %v: sends %v, want %v", target, viewer, have, want)
				}
			}
		}
	}
}
