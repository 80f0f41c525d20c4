package proxy

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"karui/convert"
	"karui/convert/header"
	"karui/internal/origintest"
	"karui/proxy/rules"
)

// several is a Converter of several formats, which decides by the name that a
// source begins with.
type several struct {
	mu     sync.Mutex
	decide func(f header.Format, source []byte) convert.Code
	holds  map[header.Format]chan struct{}
	begun  map[header.Format]chan struct{}
	calls  map[string]int // by format and source
}

func newSeveral(decide func(f header.Format, source []byte) convert.Code) *several {
	return &several{
		decide: decide, holds: map[header.Format]chan struct{}{}, begun: map[header.Format]chan struct{}{}, calls: map[string]int{},
	}
}

// hold keeps conversions to a format from ending until open is called; begun is
// closed when one has begun.
func (s *several) hold(f header.Format) (begun <-chan struct{}, open func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hold, start := make(chan struct{}), make(chan struct{})
	s.holds[f], s.begun[f] = hold, start
	return start, sync.OnceFunc(func() { close(hold) })
}

func (s *several) Convert(ctx context.Context, source []byte, opt convert.Options) (convert.Result, error) {
	var r convert.Result
	for _, f := range opt.Formats {
		s.mu.Lock()
		s.calls[callOf(f, source)]++
		hold := s.holds[f]
		if begun := s.begun[f]; begun != nil {
			close(begun)
			s.begun[f] = nil
		}
		s.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-ctx.Done():
				return convert.Result{}, ctx.Err()
			}
		}
		code := s.decide(f, source)
		r.Decision = convert.Decide(code, "because")
		r.Outcomes = append(r.Outcomes, convert.Outcome{Format: f, Decision: r.Decision})
		if code == convert.Converted {
			r.Body, r.Format = made(f, source), f
			break
		}
	}
	return r, nil
}

func (s *several) Ping(context.Context) ([]byte, error) { return []byte("\xff\xd8\xff ping"), nil }

func (s *several) count(f header.Format, source []byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[callOf(f, source)]
}

func callOf(f header.Format, source []byte) string {
	return fmt.Sprintf("%s %x", f, sha256.Sum256(source))
}

// made is the variant of a source in a format.
func made(f header.Format, source []byte) []byte {
	return fmt.Appendf(nil, "%s of %x", f, sha256.Sum256(source))
}

func accepting(formats ...header.Format) string {
	accept := "Accept: image/png"
	for _, f := range formats {
		accept += ", " + f.ContentType()
	}
	return accept + ", */*;q=0.5"
}

func withFormats(names ...string) option {
	return withSite(func(c *SiteConfig) { c.Formats = names })
}

// words are the outcomes that the tests below combine: made, not made for good,
// and two passing troubles.
var words = []convert.Code{convert.Converted, convert.NotSmaller, convert.QueueFull, convert.Timeout}

// subsets gives every choice from formats, in their order.
func subsets(formats []header.Format) [][]header.Format {
	var all [][]header.Format
	for bits := range 1 << len(formats) {
		var chosen []header.Format
		for i, f := range formats {
			if bits&(1<<i) != 0 {
				chosen = append(chosen, f)
			}
		}
		all = append(all, chosen)
	}
	return all
}

// expected is the model: what a viewer gets once everything was tried.
func expected(site, accept []header.Format, outcomes map[header.Format]convert.Code, source []byte) (body []byte, fields map[string]string) {
	sure, last := true, convert.NotAccepted
	for _, f := range site {
		if !slices.Contains(accept, f) {
			continue
		}
		last = outcomes[f]
		if last == convert.Converted {
			control := "public, max-age=60"
			if !sure {
				control = "public, max-age=10"
			}
			return made(f, source), map[string]string{
				"X-Karui": "hit", "Content-Type": f.ContentType(), "Cache-Control": control, "X-Karui-Kept": "",
				"ETag": tagOf(made(f, source)), "Content-Disposition": `inline; filename="a` + f.Extension() + `"`,
			}
		}
		sure = sure && last.Settled()
	}
	fields = map[string]string{
		"X-Karui": "original", "Content-Type": "image/jpeg", "Cache-Control": "public, max-age=60", "ETag": `"v1"`,
		"Content-Disposition": "", "X-Karui-Kept": string(last),
	}
	if !sure {
		fields["X-Karui"], fields["Cache-Control"], fields["X-Karui-Kept"] = "miss", "public, max-age=10", ""
	}
	return source, fields
}

// Whatever the site makes, the viewer takes and comes of it: the best format
// there is, whole and by its right name, every format made once, and no marker
// where trouble passes.
func TestFormatsOutcomesAndViewers(t *testing.T) {
	every := []header.Format{header.AVIF, header.HEIC, header.WebP}
	for _, names := range [][]string{
		{"webp"}, {"avif"}, {"avif", "webp"}, {"webp", "avif"}, {"heic", "webp"}, {"avif", "heic", "webp"}, {"heic", "webp", "avif"},
	} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			t.Parallel()
			var site []header.Format
			for _, name := range names {
				f, _ := header.ParseFormat(name)
				site = append(site, f)
			}
			var mu sync.Mutex
			outcomes := map[string]map[header.Format]convert.Code{} // by source
			converter := newSeveral(func(f header.Format, source []byte) convert.Code {
				mu.Lock()
				defer mu.Unlock()
				return outcomes[string(source)][f]
			})
			r := newRig(t, withFormats(names...), withConverter(converter), waiting(limit), standing())
			words := words
			if len(site) > 2 {
				words = words[:3] // the two passing troubles differ in nothing but their name
			}
			combinations := 1
			for range site {
				combinations *= len(words)
			}
			for n := range combinations {
				now := map[header.Format]convert.Code{}
				for i, rest := 0, n; i < len(site); i, rest = i+1, rest/len(words) {
					now[site[i]] = words[rest%len(words)]
				}
				jpg := photo(t, 24, uint64(n))
				mu.Lock()
				outcomes[string(jpg)] = now
				mu.Unlock()
				path := fmt.Sprintf("/%d/a.jpg", n)
				r.origin.Set(path, validated(jpg, `"v1"`, field("Cache-Control", "max-age=60")))
				viewers := subsets(every)
				if n%2 == 0 {
					slices.Reverse(viewers)
				}
				var all sync.WaitGroup
				for _, accept := range viewers {
					all.Go(func() {
						a := r.get(path, accepting(accept...))
						body, fields := expected(site, accept, now, jpg)
						// How a viewer of the cold flight came by its picture is not the point here.
						r.want(a, 200, body, map[string]string{"Content-Type": fields["Content-Type"], "ETag": fields["ETag"], "Vary": "Accept"})
					})
				}
				all.Wait()
				r.idle()
				for _, accept := range viewers {
					r.again(path, site, accept, now, jpg)
				}
				r.idle()
				if got := r.origin.Count(path); got != 1 {
					t.Errorf("%v: the origin was asked %d times, want once", now, got)
				}
				for _, f := range site {
					if got := converter.count(f, jpg); got > 1 {
						t.Errorf("%v: %s was tried %d times, want at most once", now, f, got)
					}
				}
				if t.Failed() {
					t.Fatalf("with %v", now)
				}
			}
		})
	}
}

// again checks what a viewer gets from the cache, by every kind of request.
func (r *rig) again(path string, site, accept []header.Format, outcomes map[header.Format]convert.Code, source []byte) {
	r.tb.Helper()
	body, fields := expected(site, accept, outcomes, source)
	fields["Vary"] = "Accept"
	line := accepting(accept...)
	r.want(r.get(path, line), 200, body, fields)
	tag := "If-None-Match: " + fields["ETag"]
	r.want(r.get(path, line, tag), 304, []byte{}, map[string]string{
		"Vary": "Accept", "ETag": fields["ETag"], "Cache-Control": fields["Cache-Control"], "Content-Type": "",
	})
	r.want(r.do(http.MethodHead, path, line), 200, []byte{}, fields)
	r.want(r.get(path, line, "Range: bytes=2-5", "If-Range: "+fields["ETag"]), 206, body[2:6], map[string]string{"Vary": "Accept"})
	// What another representation is known by is none of this one.
	for _, f := range append([]header.Format{header.JPEG}, site...) {
		foreign := `"v1"`
		if f != header.JPEG {
			foreign = tagOf(made(f, source))
		}
		if foreign == fields["ETag"] {
			continue
		}
		r.want(r.get(path, line, "If-None-Match: "+foreign), 200, body, fields)
		r.want(r.get(path, line, "Range: bytes=2-5", "If-Range: "+foreign), 200, body, fields)
	}
}

// Who takes the quick format does not wait for the slow one that the viewer
// before it takes.
func TestQuickFormatDoesNotWaitForTheSlowOne(t *testing.T) {
	converter := newSeveral(func(header.Format, []byte) convert.Code { return convert.Converted })
	r := newRig(t, withFormats("avif", "webp"), withConverter(converter), waiting(limit), standing())
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	begun, open := converter.hold(header.AVIF)
	defer open()
	slow := make(chan *answer)
	go func() { slow <- r.get("/a.jpg", accepting(header.AVIF, header.WebP)) }()
	<-begun
	r.want(r.get("/a.jpg", accepting(header.WebP)), 200, made(header.WebP, jpg), nil)
	r.want(r.get("/a.jpg", accepting()), 200, jpg, map[string]string{"X-Karui": "original"})
	open()
	r.want(<-slow, 200, made(header.AVIF, jpg), map[string]string{"X-Karui": "wait", "Cache-Control": "public, max-age=86400"})
	r.idle()
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
}

// While the better format is being made, the other one that is there already is
// answered, and not for long.
func TestOtherVariantStandsIn(t *testing.T) {
	for name, test := range map[string]struct {
		stored bool
		wait   time.Duration
	}{
		"from the cache":           {true, time.Millisecond},
		"from the cache, no wait":  {true, 0},
		"from the flight":          {false, time.Millisecond},
		"from the flight, no wait": {false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			converter := newSeveral(func(header.Format, []byte) convert.Code { return convert.Converted })
			r := newRig(t, withFormats("avif", "webp"), withConverter(converter), waiting(test.wait), standing())
			jpg := photo(t, 64, 1)
			r.origin.Set("/a.jpg", jpegAnswer(jpg))
			both := accepting(header.AVIF, header.WebP)
			if test.stored {
				r.get("/a.jpg", accepting(header.WebP))
				r.idle()
			}
			begun, open := converter.hold(header.AVIF)
			defer open()
			r.get("/a.jpg", both)
			<-begun
			for a := r.get("/a.jpg", accepting(header.WebP)); a.Header.Get("Content-Type") != "image/webp"; {
				a = r.get("/a.jpg", accepting(header.WebP)) // it is on its way
			}
			r.want(r.get("/a.jpg", both), 200, made(header.WebP, jpg), map[string]string{
				"X-Karui": "hit", "Cache-Control": "public, max-age=10", "Content-Type": "image/webp", "ETag": tagOf(made(header.WebP, jpg)),
			})
			open()
			r.idle()
			r.want(r.get("/a.jpg", both), 200, made(header.AVIF, jpg), map[string]string{"X-Karui": "hit", "Cache-Control": "public, max-age=86400"})
			r.want(r.get("/a.jpg", accepting(header.WebP)), 200, made(header.WebP, jpg), map[string]string{"X-Karui": "hit", "Cache-Control": "public, max-age=86400"})
		})
	}
}

// A format that found no worker is tried again after a rest, and then answered;
// the other one is answered all the while.
func TestPassingTroubleOfOneFormat(t *testing.T) {
	var mu sync.Mutex
	avif := convert.QueueFull
	converter := newSeveral(func(f header.Format, _ []byte) convert.Code {
		mu.Lock()
		defer mu.Unlock()
		if f == header.AVIF {
			return avif
		}
		return convert.Converted
	})
	r := newRig(t, withFormats("avif", "webp"), withConverter(converter), waiting(limit), standing())
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	both := accepting(header.AVIF, header.WebP)
	r.want(r.get("/a.jpg", both), 200, made(header.WebP, jpg), map[string]string{"X-Karui": "wait", "Cache-Control": "public, max-age=10"})
	r.idle()
	r.want(r.get("/a.jpg", both), 200, made(header.WebP, jpg), map[string]string{"X-Karui": "hit", "Cache-Control": "public, max-age=10"})
	r.want(r.get("/a.jpg", accepting(header.AVIF)), 200, jpg, map[string]string{"X-Karui": "miss", "Cache-Control": "public, max-age=10"})
	if n := converter.count(header.AVIF, jpg); n != 1 {
		t.Errorf("AVIF was tried %d times, want once", n)
	}
	r.clock.passSeconds(11)
	mu.Lock()
	avif = convert.Converted
	mu.Unlock()
	r.want(r.get("/a.jpg", both), 200, made(header.AVIF, jpg), map[string]string{"X-Karui": "wait"})
	if n := converter.count(header.WebP, jpg); n != 1 {
		t.Errorf("WebP was made %d times, want once", n)
	}
}

// Variants of one picture live and die together, whoever asks.
func TestFormatsAreKeptTogether(t *testing.T) {
	converter := newSeveral(func(f header.Format, _ []byte) convert.Code {
		if f == header.HEIC {
			return convert.NotSmaller
		}
		return convert.Converted
	})
	r := newRig(t, withFormats("avif", "heic", "webp"), withConverter(converter), standing())
	before, after := photo(t, 64, 1), photo(t, 64, 2)
	viewers := map[header.Format]string{
		header.AVIF: accepting(header.AVIF), header.HEIC: accepting(header.HEIC), header.WebP: accepting(header.WebP),
	}
	warm := func() {
		for _, accept := range viewers {
			r.get("/a.jpg", accept)
			r.idle()
		}
	}
	r.origin.Set("/a.jpg", validated(before, `"v1"`, field("Cache-Control", "max-age=60")))
	warm()
	r.clock.passSeconds(61)
	// One viewer's refresh is everybody's.
	r.get("/a.jpg", viewers[header.AVIF])
	r.idle()
	asked := r.origin.Count("/a.jpg")
	for f, accept := range viewers {
		fields := map[string]string{"X-Karui": "hit", "Cache-Control": "public, max-age=60"}
		body := made(f, before)
		if f == header.HEIC {
			fields["X-Karui"], fields["X-Karui-Kept"], body = "original", "not_smaller", before
		}
		r.want(r.get("/a.jpg", accept), 200, body, fields)
	}
	if n := r.origin.Count("/a.jpg"); n != asked {
		t.Errorf("the origin was asked %d times more for pictures that had just been confirmed", n-asked)
	}
	// And a new picture leaves nothing of the old one.
	r.origin.Set("/a.jpg", validated(after, `"v2"`, field("Cache-Control", "max-age=60")))
	r.clock.passSeconds(61)
	r.want(r.get("/a.jpg", viewers[header.WebP]), 200, made(header.WebP, before), map[string]string{"X-Karui": "stale"})
	r.idle()
	r.want(r.get("/a.jpg", viewers[header.AVIF]), 200, after, map[string]string{"X-Karui": "miss"})
	r.idle()
	warm()
	r.want(r.get("/a.jpg", viewers[header.AVIF]), 200, made(header.AVIF, after), map[string]string{"X-Karui": "hit"})
	r.want(r.get("/a.jpg", viewers[header.HEIC]), 200, after, map[string]string{"X-Karui": "original", "ETag": `"v2"`})
	r.want(r.get("/a.jpg", viewers[header.WebP]), 200, made(header.WebP, after), map[string]string{"X-Karui": "hit"})
}

// An origin that forbids changes from now on has no variants from now on.
func TestNoTransformThatComesLater(t *testing.T) {
	for name, revalidates := range map[string]bool{"200": false, "304": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			jpg := photo(t, 64, 1)
			r.origin.Set("/a.jpg", validated(jpg, `"v1"`, field("Cache-Control", "max-age=60")))
			r.warm("/a.jpg")
			forbids := validated(jpg, `"v1"`, field("Cache-Control", "max-age=60, no-transform"))
			forbids.Validate = revalidates
			r.origin.Set("/a.jpg", forbids)
			r.clock.passSeconds(61)
			r.get("/a.jpg", takesWebP)
			r.idle()
			r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "original", "X-Karui-Kept": "not_convertible"})
		})
	}
}

// What ended a worker is tried again when its quarantine is over, or an operator
// lets it out, however often the origin confirms that it is the same picture.
func TestMarkersOfQuarantineLapse(t *testing.T) {
	for name, release := range map[string]func(*rig, []byte){
		"a day later":  func(r *rig, _ []byte) { r.clock.passSeconds(24 * 3600) },
		"by a request": func(r *rig, jpg []byte) { r.proxy.Pardon(sha256.Sum256(jpg)) },
		"by a request before a restart": func(r *rig, jpg []byte) {
			r.proxy.Pardon(sha256.Sum256(jpg))
			pardons := r.proxy.Pardons()
			r.proxy.pardoned.at = map[rules.Digest]time.Time{}
			r.proxy.RestorePardons(pardons)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, waiting(limit), standing())
			jpg := photo(t, 64, 1)
			r.origin.Set("/a.jpg", validated(jpg, `"v1"`, field("Cache-Control", "max-age=200000")))
			r.fake.keepAs(convert.Crashed)
			r.warm("/a.jpg")
			r.clock.passSeconds(1)
			r.fake.decide.Store(nil)
			r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "original", "X-Karui-Kept": "crashed"})
			release(r, jpg)
			r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "wait"})
			r.idle()
			r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit"})
		})
	}
}

func TestUnreadablePictureIsDecodedOnce(t *testing.T) {
	converter := newSeveral(func(header.Format, []byte) convert.Code { return convert.Truncated })
	r := newRig(t, withFormats("avif", "heic", "webp"), withConverter(converter), waiting(limit), standing())
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	r.want(r.get("/a.jpg", accepting(header.AVIF, header.HEIC, header.WebP)), 200, jpg, map[string]string{"X-Karui": "original", "X-Karui-Kept": "truncated"})
	r.idle()
	r.want(r.get("/a.jpg", accepting(header.WebP)), 200, jpg, map[string]string{"X-Karui": "original", "X-Karui-Kept": "truncated"})
	n := converter.count(header.AVIF, jpg) + converter.count(header.HEIC, jpg) + converter.count(header.WebP, jpg)
	if n != 1 {
		t.Errorf("%d conversions were tried, want one", n)
	}
}

// A variant that is there is answered although the better format's original is
// gone from the cache and cannot be fetched.
func TestVariantOutlivesItsOriginal(t *testing.T) {
	for name, trouble := range map[string]func(*rig){
		"refused": func(r *rig) { r.origin.Refuse() },
		"500":     func(r *rig) { r.origin.Set("/a.jpg", origintest.Text(500, "text/plain", "")) },
	} {
		t.Run(name, func(t *testing.T) {
			converter := newSeveral(func(header.Format, []byte) convert.Code { return convert.Converted })
			r := newRig(t, withFormats("avif", "webp"), withConverter(converter), standing())
			jpg := photo(t, 64, 1)
			answer := jpegAnswer(jpg)
			r.origin.Set("/a.jpg", answer)
			r.get("/a.jpg", accepting(header.WebP))
			r.idle()
			site := r.proxy.set.Load().sites[0]
			f := site.fetch(targetOf("/a.jpg"), http.Header{})
			if err := r.cache.Delete(f.form(formOriginal), r.clock.now()); err != nil {
				t.Fatal(err)
			}
			trouble(r)
			short := map[string]string{"X-Karui": "hit", "Cache-Control": "public, max-age=10"}
			for range 3 {
				r.want(r.get("/a.jpg", accepting(header.AVIF, header.WebP)), 200, made(header.WebP, jpg), short)
				r.idle()
			}
			r.want(r.get("/a.jpg", accepting(header.WebP)), 200, made(header.WebP, jpg), map[string]string{"X-Karui": "hit", "Cache-Control": "public, max-age=86400"})
			if n := r.origin.Count("/a.jpg"); n > 2 {
				t.Errorf("the origin was asked %d times: an origin in trouble is asked once in a short lifetime", n)
			}
			if name == "refused" {
				r.origin.Resume()
			}
			r.origin.Set("/a.jpg", answer)
			r.clock.passSeconds(11)
			r.get("/a.jpg", accepting(header.AVIF, header.WebP))
			r.idle()
			r.want(r.get("/a.jpg", accepting(header.AVIF, header.WebP)), 200, made(header.AVIF, jpg), map[string]string{"X-Karui": "hit"})
		})
	}
}

// A format that the site does not list for a while must not come back with the
// picture of before.
func TestFormatThatIsListedAgain(t *testing.T) {
	converter := newSeveral(func(header.Format, []byte) convert.Code { return convert.Converted })
	r := newRig(t, withFormats("avif", "webp"), withConverter(converter), standing())
	list := func(names ...string) {
		sites := slices.Clone(r.settings.Sites)
		sites[0].Config.Formats = names
		r.settings.Sites = sites
		r.proxy.Reload(r.settings)
	}
	before, after := photo(t, 64, 1), photo(t, 64, 2)
	r.origin.Set("/a.jpg", validated(before, `"v1"`, field("Cache-Control", "max-age=60")))
	r.get("/a.jpg", accepting(header.AVIF))
	r.idle()
	list("webp")
	r.origin.Set("/a.jpg", validated(after, `"v2"`, field("Cache-Control", "max-age=60")))
	r.clock.passSeconds(61)
	r.get("/a.jpg", accepting())
	r.idle()
	list("avif", "webp")
	r.want(r.get("/a.jpg", accepting(header.AVIF)), 200, after, map[string]string{"X-Karui": "miss"})
}
