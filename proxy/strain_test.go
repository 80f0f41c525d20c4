package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"karui/cache"
	"karui/convert"
	"karui/convert/header"
	"karui/internal/origintest"
	"karui/proxy/backlog"
	"karui/proxy/dial"
	"karui/proxy/stress"
)

// judged judges latency, by the rig's clock.
func judged() option {
	return withSettings(func(s *Settings) { s.Stress, s.Ping = DefaultStress(), DefaultPing() })
}

// hang has viewers wait for n pictures of which the origin says nothing, until the
// returned function is called.
func (r *rig) hang(n int) (release func()) {
	r.tb.Helper()
	gate := origintest.NewGate()
	var viewers sync.WaitGroup
	for i := range n {
		path := fmt.Sprintf("/hangs%d.jpg", i)
		r.origin.Set(path, origintest.Answer{Hold: gate, Status: 404})
		viewers.Go(func() { r.get(path, takesWebP) })
	}
	for i := range n {
		if !r.origin.Await(fmt.Sprintf("/hangs%d.jpg", i), 1, limit) {
			r.tb.Fatal("the origin was not asked")
		}
	}
	return func() {
		gate.Open()
		viewers.Wait()
	}
}

// reason wants a request to be turned away.
func (r *rig) turnedAway(target, reason string, lines ...string) {
	r.tb.Helper()
	r.want(r.get(target, append(lines, takesWebP)...), 503, nil, map[string]string{
		"X-Karui-Reason": reason, "Cache-Control": "no-store", "X-Karui": "",
	})
}

func TestMissesAreTurnedAwayAndHitsFlow(t *testing.T) {
	r := newRig(t, judged(), standing())
	jpg := photo(t, 64, 1)
	r.origin.Set("/hit.jpg", validated(jpg, `"v1"`, field("Cache-Control", "max-age=5")))
	r.origin.Set("/new.jpg", jpegAnswer(jpg))
	r.warm("/hit.jpg")
	release := r.hang(25)
	defer release()
	r.clock.passSeconds(4)
	r.turnedAway("/new.jpg", "latency")
	r.want(r.get("/hit.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit"})
	r.want(r.get("/hit.jpg", takesJPEG), 200, jpg, nil)
	// One request a second is the sample.
	r.clock.passSeconds(1)
	r.want(r.get("/new.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "miss"})
	r.turnedAway("/other.jpg", "latency")
	// What is past its lifetime goes on, and the origin is not asked about it beside
	// the sample.
	r.idleBut(25)
	asked := r.origin.Count("/hit.jpg")
	for range 3 {
		r.want(r.get("/hit.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "stale"})
	}
	if n := r.origin.Count("/hit.jpg"); n != asked {
		t.Errorf("the origin was asked %d times about a stale picture", n-asked)
	}
	// A flight that is joined asks nobody.
	if since, _ := r.proxy.stressed(r.clock.now()); !since.IsZero() {
		t.Error("everything is turned away")
	}
	r.want(r.get("/.karui/ping.jpg"), 200, nil, nil)
	metrics := r.metrics()
	for _, want := range []string{`karui_shedding{group="misses",reason="latency",site="shop"} 1`, `karui_requests_total{outcome="503_latency",site="shop"} 2`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// idleBut waits until no more than n flights are under way.
func (r *rig) idleBut(n int) {
	r.tb.Helper()
	r.until(func() bool { return r.proxy.Flights().Flights <= n })
}

func (r *rig) until(ok func() bool) {
	r.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for !ok() {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			r.tb.Fatal("it never came")
		}
	}
}

// metrics gives the registry as lines of name, sorted labels and value.
func (r *rig) metrics() string {
	r.tb.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.tb.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			slices.Sort(labels)
			name := f.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			fmt.Fprintf(&b, "%s %g\n", name, m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
	}
	return b.String()
}

func TestEverythingIsTurnedAwayAndThePingFollows(t *testing.T) {
	r := newRig(t, judged(), standing())
	jpg := photo(t, 64, 1)
	r.origin.Set("/hit.jpg", jpegAnswer(jpg))
	r.warm("/hit.jpg")
	for range 20 {
		// As if the disk under the cache had taken so long.
		timing := r.proxy.latency.Hits().Begin(r.clock.now())
		r.clock.pass(5 * time.Second / 4)
		defer timing.End(r.clock.now())
	}
	r.clock.passSeconds(1)
	r.turnedAway("/hit.jpg", "latency")
	r.turnedAway("/page.html", "latency")
	r.want(r.get("/.karui/ping.jpg"), 200, nil, nil)
	// Somebody asks all the time, and the one sample that is let through does not come back.
	for range 13 {
		r.clock.passSeconds(10)
		r.proxy.latency.Admit(r.clock.now())
	}
	r.turnedAway("/hit.jpg", "latency")
	r.want(r.get("/.karui/ping.jpg"), 503, nil, map[string]string{"X-Karui-Reason": "latency", "Cache-Control": "no-store"})
	// The watchdog leads the traffic elsewhere.
	r.clock.passSeconds(31)
	r.want(r.get("/.karui/ping.jpg"), 200, nil, nil)
	r.want(r.get("/hit.jpg", takesWebP), 200, webp(jpg), nil)
}

func TestFullDisks(t *testing.T) {
	var mu sync.Mutex
	volumes := []stress.Volume{{Used: 50}, {Used: 99}}
	set := func(v ...stress.Volume) {
		mu.Lock()
		defer mu.Unlock()
		volumes = v
	}
	r := newRig(t, standing(), withSettings(func(s *Settings) { s.DiskStress, s.Ping = 95, DefaultPing() }), func(_ *rig, o *Options) {
		o.Volumes = func() []stress.Volume {
			mu.Lock()
			defer mu.Unlock()
			return volumes
		}
	})
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	r.warm("/a.jpg")
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), nil)
	set(stress.Volume{Used: 96}, stress.Volume{Out: true})
	r.until(func() bool { r.proxy.look(); return r.proxy.DiskFull() })
	r.turnedAway("/a.jpg", "disk")
	r.turnedAway("/page.html", "disk")
	r.want(r.get("/.karui/ping.jpg"), 200, nil, nil)
	r.clock.passSeconds(121)
	r.want(r.get("/.karui/ping.jpg"), 503, nil, map[string]string{"X-Karui-Reason": "disk"})
	set(stress.Volume{Used: 93}, stress.Volume{Out: true})
	r.until(func() bool { r.proxy.look(); return !r.proxy.DiskFull() })
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), nil)
	r.want(r.get("/.karui/ping.jpg"), 200, nil, nil)
}

func TestOperatorsTurnAwayAShareByKey(t *testing.T) {
	r := newRig(t, withSite(func(c *SiteConfig) { c.Classes = []ClassConfig{{Match: "/banner/*", ShedFirst: true}} }))
	jpg := photo(t, 64, 1)
	r.origin.SetDefault(func(origintest.Request) origintest.Answer { return jpegAnswer(jpg) })
	shed := func() (away []string) {
		for i := range 20 {
			for _, path := range []string{fmt.Sprintf("/banner/%d.jpg", i), fmt.Sprintf("/photo/%d.jpg?w=1", i)} {
				if a := r.get(path, takesWebP); a.StatusCode == 503 {
					r.want(a, 503, nil, map[string]string{"X-Karui-Reason": "shed", "Cache-Control": "no-store"})
					away = append(away, path)
				}
			}
		}
		return away
	}
	if away := shed(); len(away) > 0 {
		t.Fatalf("turned away: %q", away)
	}
	set := func(percent float64) { r.proxy.Shares().Set("", percent, time.Time{}, []string{"shop"}) }
	set(25)
	quarter := shed()
	if len(quarter) < 4 || len(quarter) > 16 || slices.ContainsFunc(quarter, func(p string) bool { return strings.HasPrefix(p, "/photo") }) {
		t.Errorf("turned away at 25 %%: %q, want half of the banners and nothing else", quarter)
	}
	if again := shed(); !slices.Equal(again, quarter) {
		t.Errorf("turned away first %q, then %q", quarter, again)
	}
	set(75)
	most := shed()
	for _, path := range quarter {
		if !slices.Contains(most, path) {
			t.Errorf("%s is turned away at 25 %% and not at 75 %%", path)
		}
	}
	if !slices.Contains(most, "/banner/7.jpg") || len(most) < 22 || len(most) > 38 {
		t.Errorf("turned away at 75 %%: %q", most)
	}
	if m := r.metrics(); !strings.Contains(m, `karui_shed_ratio{site="shop"} 0.75`) {
		t.Error("metrics lack the share")
	}
	set(0)
	if away := shed(); len(away) > 0 {
		t.Errorf("turned away: %q", away)
	}
}

// seen keeps what the converter was asked for.
type seen struct {
	*fake
	mu      sync.Mutex
	options []convert.Options
}

func (s *seen) Convert(ctx context.Context, source []byte, opt convert.Options) (convert.Result, error) {
	s.mu.Lock()
	s.options = append(s.options, opt)
	s.mu.Unlock()
	return s.fake.Convert(ctx, source, opt)
}

func (s *seen) last(t *testing.T) convert.Options {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.options) == 0 {
		t.Fatal("nothing was converted")
	}
	return s.options[len(s.options)-1]
}

func (s *seen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.options)
}

func TestTheDialChoosesFormatQualityAndEffort(t *testing.T) {
	s := &seen{fake: &fake{}}
	r := newRig(t, standing(), withConverter(s), withSite(func(c *SiteConfig) { c.Formats, c.Quality = []string{"avif", "webp"}, 60 }))
	r.origin.SetDefault(func(origintest.Request) origintest.Answer { return jpegAnswer(photo(t, 64, 1)) })
	for level, want := range []struct {
		format  header.Format
		quality int
		effort  int
		control string
	}{
		{header.AVIF, 60, 2, "public, max-age=86400"},
		{header.WebP, 60, 2, "public, max-age=600"}, // lean would have 70, and the site wants 60
		{header.WebP, 50, 0, "public, max-age=600"},
	} {
		if err := r.proxy.Dial().Pin("", level, time.Time{}); err != nil {
			t.Fatal(err)
		}
		path := fmt.Sprintf("/%d.jpg", level)
		r.warm(path)
		got := s.last(t)
		if got.Formats[0] != want.format || got.Quality != want.quality || *got.Effort != want.effort {
			t.Errorf("level %d: %v at quality %d with effort %d, want %+v", level, got.Formats, got.Quality, *got.Effort, want)
		}
		r.want(r.get(path, takesWebP), 200, nil, map[string]string{
			"X-Karui": "hit", "Content-Type": want.format.ContentType(), "Cache-Control": want.control,
		})
	}
	// What was made before goes on being answered, whatever the level, and as before.
	r.want(r.get("/0.jpg", takesWebP), 200, nil, map[string]string{"Content-Type": "image/avif", "Cache-Control": "public, max-age=86400"})
	if n := s.count(); n != 3 {
		t.Errorf("%d conversions, want 3", n)
	}
	if m := r.metrics(); !strings.Contains(m, `karui_dial_level{site=""} 2`) || !strings.Contains(m, `karui_dial_moves_total{cause="pin"} 2`) {
		t.Error("metrics lack the dial")
	}
}

func TestDeferMakesNothingNew(t *testing.T) {
	var mu sync.Mutex
	later := map[cache.Key][]backlog.Ask{}
	r := newRig(t, standing(), waiting(limit), func(_ *rig, o *Options) {
		o.Postponed = func(key cache.Key, a backlog.Ask) {
			mu.Lock()
			defer mu.Unlock()
			later[key] = append(later[key], a)
		}
	})
	jpg := photo(t, 64, 1)
	r.origin.SetDefault(func(origintest.Request) origintest.Answer { return jpegAnswer(jpg) })
	r.warm("/old.jpg")
	_ = r.proxy.Dial().Pin("shop", 3, time.Time{})
	r.want(r.get("/old.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit", "Cache-Control": "public, max-age=86400"})
	for range 3 {
		r.want(r.get("/new.jpg?a=1", takesWebP), 200, jpg, map[string]string{"X-Karui": "miss", "Cache-Control": "public, max-age=10"})
		r.idle()
	}
	if n := r.origin.Count("/new.jpg"); n > 1 {
		t.Errorf("the origin was asked %d times", n)
	}
	if calls := r.fake.calls.Load(); calls != 1 {
		t.Errorf("%d conversions, want the one before", calls)
	}
	mu.Lock()
	want := []backlog.Ask{backlog.Missing, backlog.Missing, backlog.Missing}
	if asked := later[cache.Key{Site: "shop", Path: "/new.jpg", Rest: "?a=1", Form: "webp"}]; len(later) != 1 || !slices.Equal(asked, want) {
		t.Errorf("postponed: %+v", later)
	}
	mu.Unlock()
	// With the level back it is made when it is asked for, of what is in the cache.
	r.proxy.Dial().Unpin("shop")
	r.want(r.get("/new.jpg?a=1", takesWebP), 200, webp(jpg), nil)
	if n := r.origin.Count("/new.jpg?a=1"); n > 1 {
		t.Errorf("the origin was asked %d times", n)
	}
}

func TestMadeAgainAtLevelZeroOnceThereIsTime(t *testing.T) {
	s := &seen{fake: &fake{}}
	free := dial.Load{Workers: 2}
	r := newRig(t, standing(), withConverter(s), func(_ *rig, o *Options) {
		o.Load = func() (fast, slow dial.Load) { return free, dial.Load{} }
	})
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	_ = r.proxy.Dial().Pin("", 2, time.Time{})
	r.warm("/a.jpg")
	cheap := map[string]string{"X-Karui": "hit", "Cache-Control": "public, max-age=600"}
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), cheap)
	r.proxy.Dial().Unpin("")
	// The workers have not been looked at for long enough to know that they have time.
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), cheap)
	r.idle()
	if n := s.count(); n != 1 {
		t.Fatalf("%d conversions, want 1", n)
	}
	for range 12 {
		r.clock.passSeconds(1)
		r.proxy.look()
	}
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), cheap)
	r.until(func() bool {
		r.idle()
		return r.get("/a.jpg", takesWebP).Header.Get("Cache-Control") == "public, max-age=86388"
	})
	if got := s.last(t); s.count() != 2 || got.Quality != 80 || *got.Effort != 2 {
		t.Errorf("%d conversions, the last %+v", s.count(), got)
	}
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times", n)
	}
}

func TestReloadMovesTheDialAndTheLimits(t *testing.T) {
	r := newRig(t, judged())
	next := r.settings
	next.Dial = DialConfig{Mode: "1", Levels: []DialLevel{{Name: "a"}, {Name: "b", Formats: []string{"none"}}}}
	next.Sites = nil
	r.proxy.Reload(next)
	if n, l := r.proxy.Dial().Of("shop"); n != 1 || !l.Deferred {
		t.Errorf("level %d: %+v", n, l)
	}
}
