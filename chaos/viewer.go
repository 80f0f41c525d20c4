package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// habits are what kinds of clients send. Each opens the same URL in two ways: as
// an image of a page, and with what its other parts send.
var habits = []struct{ image, other string }{
	{"image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", "*/*"},
	{"image/webp", "image/png,image/*;q=0.8"},
	{"image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", ""},
	{"image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5", "image/webp;q=0,*/*"},
	{"image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5", "*/*"},
}

// lighter are the media types that a client may name to get a variant.
var lighter = []string{"image/webp", "image/avif", "image/heic"}

// takenBy are those that an Accept names. It is read here anew and not by karui's
// own reader, so that a mistake in that one shows.
func takenBy(accept string) []string {
	var takes []string
	for member := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(member), ";")
		if slices.Contains(lighter, name) && !strings.Contains(params, "q=0") {
			takes = append(takes, name)
		}
	}
	return takes
}

// viewer is one client that asks all the time.
type viewer struct {
	id      int
	rng     *rand.Rand
	client  *client
	check   *checker
	rec     *recorder
	history *history
	browser *browser
	files   []*original
	// changing are the pictures that change.
	changing []*changing
	serial   int
	// recent are targets that this viewer asked for lately.
	recent []string
}

func newViewer(id int, seed uint64, base string, check *checker, rec *recorder, h *history, files []*original) *viewer {
	v := &viewer{
		id: id, rng: rand.New(rand.NewPCG(seed, uint64(100+id))), client: newClient(base), check: check, rec: rec, history: h,
		browser: newBrowser(time.Now), files: files,
	}
	for _, id := range slices.Sorted(maps.Keys(check.changing)) {
		v.changing = append(v.changing, check.changing[id])
	}
	return v
}

// run asks until the context ends.
func (v *viewer) run(ctx context.Context) {
	defer v.client.close()
	for ctx.Err() == nil {
		v.step(ctx)
		pause(ctx, time.Duration(10+v.rng.IntN(100))*time.Millisecond)
	}
}

// step makes one request, or what belongs to one.
func (v *viewer) step(ctx context.Context) {
	q := request{method: http.MethodGet, accept: v.accept()}
	q.takes = takenBy(q.accept)
	switch n := v.rng.IntN(100); {
	case n < 28: // a picture that everybody knows
		v.aim(&q, v.warm())
		v.ask(ctx, q)
	case n < 30: // a large file over a thin line, which takes about a second
		q.slow = time.Duration(2+v.rng.IntN(8)) * time.Millisecond
		v.serial++
		v.aim(&q, fmt.Sprintf("%s%s?v=%d-%d", v.folder(), largeID, v.id, v.serial/3))
		v.ask(ctx, q)
	case n < 38: // one that nobody has seen
		v.aim(&q, v.cold())
		v.ask(ctx, q)
	case n < 52 && len(v.recent) > 0: // the same again
		v.aim(&q, v.recent[v.rng.IntN(len(v.recent))])
		v.ask(ctx, q)
	case n < 70: // with a cache of one's own
		v.aim(&q, v.warm())
		v.browse(ctx, q)
	case n < 78:
		q.method = http.MethodHead
		v.aim(&q, v.either())
		v.ask(ctx, q)
	case n < 86:
		v.aim(&q, v.warm())
		v.resume(ctx, q)
	case n < 94:
		v.serial++
		q.private = true
		v.aim(&q, fmt.Sprintf("%s?u=%d-%d", cardPath, v.id, v.serial))
		v.ask(ctx, q)
	case n < 97:
		v.serial++
		q.missing = true
		v.aim(&q, fmt.Sprintf("%smissing-%d.jpg", v.folder(), v.rng.IntN(20)))
		v.ask(ctx, q)
	default: // one who leaves
		v.aim(&q, v.either())
		v.client.leaves(ctx, q, time.Duration(v.rng.IntN(30))*time.Millisecond)
	}
}

func (v *viewer) accept() string {
	habit := habits[v.id%len(habits)]
	if v.rng.IntN(4) == 0 {
		return habit.other
	}
	return habit.image
}

func (v *viewer) aim(q *request, target string) {
	q.target = target
	q.path, _, _ = strings.Cut(target, "?")
}

func (v *viewer) folder() string {
	if v.rng.IntN(5) == 0 {
		return farPrefix
	}
	return nearPath
}

func (v *viewer) file() *original { return v.files[v.rng.IntN(len(v.files))] }

// warm is a target that everybody knows; one of three, of a picture that changes.
func (v *viewer) warm() string {
	if v.rng.IntN(3) > 0 {
		return v.folder() + v.file().id
	}
	target := v.changing[v.rng.IntN(len(v.changing))].path(v.folder())
	if v.rng.IntN(4) == 0 {
		target += fmt.Sprintf("?v=%d", v.rng.IntN(3))
	}
	return target
}

// cold is a target that nobody has asked for: by a new query or a new path.
func (v *viewer) cold() string {
	v.serial++
	target := fmt.Sprintf("%s%s?v=%d-%d", v.folder(), v.file().id, v.id, v.serial)
	if v.rng.IntN(2) == 0 {
		target = fmt.Sprintf("%sp%d-%d/%s", v.folder(), v.id, v.serial, v.file().id)
	}
	v.recent = append(v.recent, target)
	if len(v.recent) > 10 {
		v.recent = v.recent[1:]
	}
	return target
}

func (v *viewer) either() string {
	if v.rng.IntN(4) > 0 {
		return v.warm()
	}
	return v.cold()
}

// browse opens a target as a browser does: out of its cache while that is fresh,
// else with the tags it knows.
func (v *viewer) browse(ctx context.Context, q request) {
	if k := v.browser.fresh(q); k != nil {
		v.reuse(q, k, nil, wrongFormat)
		return
	}
	q.tags = v.browser.tags(q)
	a, got := v.ask(ctx, q)
	switch {
	case a == nil:
	case got == gotNothing:
		k := v.browser.confirmed(q, a.header)
		if k == nil {
			v.rec.bad(v.id, a, q.path, []finding{{foreignETag, fmt.Sprintf("304 for tag %q, asked with %q", a.header.Get("ETag"), q.tags)}})
			return
		}
		v.reuse(q, k, a, foreignETag)
	case got == gotOriginal, got == gotVariant:
		v.browser.put(q, a.header, a.body)
	}
}

// reuse checks what a browser shows out of its own cache, without asking or because the
// answer confirmed it; of the first, nobody knows how old it is. A format that the client
// does not take has this reason.
func (v *viewer) reuse(q request, k *kept, confirmed *answer, blame reason) {
	a := &answer{request: q, began: time.Now(), ended: time.Now(), status: http.StatusOK, header: k.header, body: k.body, own: true}
	if confirmed != nil {
		a.began, a.ended, a.own = confirmed.began, confirmed.ended, false
	}
	var found []finding
	v.check.checkBody(a, k.header, k.body, func(r reason, format string, args ...any) {
		if r == wrongFormat {
			r = blame
		}
		found = append(found, finding{r, "out of the client's own cache: " + fmt.Sprintf(format, args...)})
	})
	if len(found) > 0 {
		v.rec.bad(v.id, a, q.path, found)
	}
}

// resume asks for the rest of something, as a download manager does, or for a
// part without saying of what.
func (v *viewer) resume(ctx context.Context, q request) {
	var known *kept
	for _, k := range v.browser.stored[q.target] {
		if k.selects(q) && strings.HasPrefix(k.header.Get("ETag"), `"`) {
			known = k
		}
	}
	// Within the smallest file of a name: nobody has said yet which one it will be.
	q.part = fmt.Sprintf("bytes=%d-%d", v.rng.IntN(min(20, v.smallest(q)/4)), 20+v.rng.IntN(500))
	if known != nil && len(known.body) > 1 && v.rng.IntN(3) > 0 {
		q.part = fmt.Sprintf("bytes=%d-", 1+v.rng.IntN(len(known.body)-1))
		q.ifRange = known.header.Get("ETag")
	}
	if a, got := v.ask(ctx, q); a != nil && (got == gotOriginal || got == gotVariant) {
		v.browser.put(q, a.header, a.body)
	}
}

// smallest is the length of the smallest original that the request may be about.
func (v *viewer) smallest(q request) int {
	least := maxFile
	for _, file := range v.check.versions(q) {
		least = min(least, len(file.body))
	}
	return least
}

// maxRepeats is how often a client asks again for what was cut off.
const maxRepeats = 10

// ask asks, judges the answer, and asks again for what was cut off. It gives no
// answer for what was excused or bad, and what it looked like.
func (v *viewer) ask(ctx context.Context, q request) (*answer, outcome) {
	for try := range maxRepeats {
		a := v.client.do(ctx, q)
		if ctx.Err() != nil && a.err != nil {
			return nil, ""
		}
		if a.err == nil {
			return v.judge(ctx, a)
		}
		v.rec.answered(a, "")
		if !v.history.cutAllowed(a.began, a.ended) {
			why := finding{badCut, fmt.Sprintf("broke off after %d bytes (try %d): %v", len(a.body), try+1, a.err)}
			if a.status == 0 {
				why.reason = noAnswer
			}
			v.rec.bad(v.id, a, q.path, []finding{why})
			return nil, ""
		}
		if try == 0 {
			v.rec.noteCut()
		} else {
			v.rec.noteRepeat()
		}
	}
	v.rec.bad(v.id, &answer{request: q, began: time.Now(), ended: time.Now()}, q.path, []finding{{badCut, fmt.Sprintf("never whole in %d tries", maxRepeats)}})
	return nil, ""
}

// judge checks an answer that came to its end.
func (v *viewer) judge(ctx context.Context, a *answer) (*answer, outcome) {
	got, found := v.check.check(a)
	if got == gotPart && len(found) == 1 && found[0].reason == unseenPart {
		found = v.compareParts(ctx, a)
	}
	if a.status >= 500 && v.history.nobodyThere(a.began, a.ended) {
		found = slices.DeleteFunc(found, func(f finding) bool { return f.reason == badStatus })
		if len(found) == 0 {
			v.rec.noteExcluded()
		}
	}
	v.rec.answered(a, got)
	if len(found) > 0 {
		v.rec.bad(v.id, a, a.request.path, found)
		return nil, got
	}
	return a, got
}

// compareParts fetches the whole of which a part came first, and checks again.
func (v *viewer) compareParts(ctx context.Context, a *answer) []finding {
	q := a.request
	q.part, q.ifRange = "", ""
	_, _ = v.ask(ctx, q)
	_, found := v.check.check(a)
	if len(found) == 1 && found[0].reason == unseenPart {
		v.rec.noteUnknown() // it has changed meanwhile
		return nil
	}
	return found
}
