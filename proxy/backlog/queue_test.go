package backlog

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"karui/cache"
)

var epoch = time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)

func small() Limits {
	return Limits{Entries: 100, Bytes: 1 << 20, Key: 1000, Age: 72 * time.Hour, Tries: 3, Backoff: time.Minute}
}

func key(site, path string) cache.Key { return cache.Key{Site: site, Path: path, Form: "webp"} }

func anySite(string) bool { return true }

// take gives the paths in the order in which they are made.
func (q *queue) takeAll(now time.Time) (order []string) {
	for it := q.next(now, anySite); it != nil; it = q.next(now, anySite) {
		order = append(order, it.site.id+it.key().Path)
		q.remove(it)
	}
	return order
}

func TestOnceOnTheListAndHotFirst(t *testing.T) {
	q := newQueue(small())
	for i, path := range []string{"/a", "/b", "/c", "/b", "/b", "/c"} {
		q.add(key("shop", path), 1, true, epoch.Add(time.Duration(i)*time.Second))
	}
	q.add(key("shop", "/unknown"), 1, false, epoch)
	if got, want := fmt.Sprint(q.takeAll(epoch)), "[shop/b shop/c shop/a]"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	if q.entries != 0 || q.bytes != 0 || len(q.sites) != 0 {
		t.Errorf("left behind: %d entries, %d bytes, %d sites", q.entries, q.bytes, len(q.sites))
	}
}

func TestAsksFade(t *testing.T) {
	q := newQueue(small())
	for range 8 {
		q.add(key("shop", "/yesterday"), 1, true, epoch)
	}
	now := epoch.Add(4 * time.Hour)
	q.add(key("shop", "/today"), 1, true, now)
	if got, want := fmt.Sprint(q.takeAll(now)), "[shop/today shop/yesterday]"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

func TestSitesTakeTurns(t *testing.T) {
	q := newQueue(Limits{Entries: 10_000, Bytes: 64 << 20, Key: 1000, Age: time.Hour, Tries: 3, Backoff: time.Minute})
	for i := range 5000 {
		for range 3 {
			q.add(key("big", fmt.Sprintf("/%d", i)), 1, true, epoch)
		}
	}
	turns := 0
	for ; turns < 10; turns++ {
		it := q.next(epoch, anySite)
		q.remove(it)
	}
	for i := range 3 {
		q.add(key("small", fmt.Sprintf("/%d", i)), 1, true, epoch)
	}
	order := q.takeAll(epoch)
	last := 0
	for i, name := range order {
		if name == "small/2" || name == "small/1" || name == "small/0" {
			last = i
		}
	}
	if last > 5 {
		t.Errorf("the last of three entries came at place %d of %d", last, len(order))
	}
}

func TestASiteThatMayNotWaitsAndKeepsItsTurn(t *testing.T) {
	q := newQueue(small())
	q.add(key("a", "/1"), 1, true, epoch)
	q.add(key("b", "/1"), 1, true, epoch)
	onlyB := func(site string) bool { return site == "b" }
	if it := q.next(epoch, onlyB); it == nil || it.site.id != "b" {
		t.Fatalf("next is %+v", it)
	} else {
		q.remove(it)
	}
	if it := q.next(epoch, onlyB); it != nil {
		t.Errorf("next is of %s", it.site.id)
	}
	if it := q.next(epoch, anySite); it == nil || it.site.id != "a" {
		t.Errorf("next is %+v", it)
	}
}

func TestFailuresRestEverLongerAndEnd(t *testing.T) {
	q := newQueue(small())
	dropped := map[Cause]int{}
	q.dropped = func(_ *item, why Cause) { dropped[why]++ }
	q.add(key("shop", "/a"), 1, true, epoch)
	now := epoch
	for i, rest := range []time.Duration{time.Minute, 4 * time.Minute} {
		it := q.next(now, anySite)
		if it == nil {
			t.Fatalf("attempt %d: nothing to do", i)
		}
		q.failed(it, now)
		now = now.Add(rest - time.Second)
		if q.next(now, anySite) != nil {
			t.Fatalf("tried again within %s of failure %d", rest, i)
		}
		now = now.Add(time.Second)
	}
	q.failed(q.next(now, anySite), now)
	if q.entries != 0 || dropped[Failed] != 1 || len(dropped) != 1 {
		t.Errorf("%d entries, dropped %v", q.entries, dropped)
	}
}

func TestWhatNobodyAsksForGoes(t *testing.T) {
	q := newQueue(small())
	dropped := map[Cause]int{}
	q.dropped = func(_ *item, why Cause) { dropped[why]++ }
	q.add(key("shop", "/old"), 8, true, epoch)
	q.add(key("shop", "/older"), 8, true, epoch)
	now := epoch.Add(73 * time.Hour)
	q.add(key("shop", "/old"), 1, false, now)
	q.add(key("shop", "/new"), 1, true, now)
	q.add(key("blog", "/old"), 1, true, epoch)
	q.sweep(now)
	if got, want := fmt.Sprint(q.takeAll(now)), "[shop/old shop/new]"; got != want || dropped[Old] != 2 {
		t.Errorf("order %s, want %s; dropped %v", got, want, dropped)
	}
	q.add(key("shop", "/a"), 1, true, epoch)
	if it := q.next(now, anySite); it != nil || dropped[Old] != 3 {
		t.Errorf("made what is too old: %+v, %v", it, dropped)
	}
}

func TestALongKeyIsNotKept(t *testing.T) {
	q := newQueue(small())
	dropped := map[Cause]int{}
	q.dropped = func(_ *item, why Cause) { dropped[why]++ }
	q.add(key("shop", "/"+string(make([]byte, 1000))), 1, true, epoch)
	if q.entries != 0 || dropped[TooLarge] != 1 || len(q.sites) != 0 {
		t.Errorf("%d entries, dropped %v", q.entries, dropped)
	}
}

func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringN(0, 40, 300)
		k := cache.Key{Site: part.Draw(t, "site"), Path: part.Draw(t, "path"), Rest: part.Draw(t, "rest"), Form: part.Draw(t, "form")}
		if got := keyOf(k.Site, nameOf(k)); got != k {
			t.Fatalf("%+v became %+v", k, got)
		}
	})
}

// Whatever happens, the list keeps its bounds, its piles and its counts, and a site
// with less than its share loses nothing to one with more.
func TestBoundsAndFairness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := small()
		limits.Entries = 20
		limits.Bytes = 14 * (overhead + 10)
		q := newQueue(limits)
		sites := []string{"a", "b", "c"}
		full := map[string]int{} // losses to a full list, by site
		q.dropped = func(it *item, why Cause) {
			if why != Full {
				return
			}
			full[it.site.id]++
			for _, other := range q.sites {
				// It is off the list already.
				if len(other.cold.items) > len(it.site.cold.items)+1 {
					t.Fatalf("site %s with %d entries lost one, and %s has %d", it.site.id, len(it.site.cold.items)+1, other.id, len(other.cold.items))
				}
			}
			for _, left := range it.site.cold.items {
				if hotter(it, left) {
					t.Fatalf("%q went, and the colder %q stayed", it.name, left.name)
				}
			}
		}
		now := epoch
		var working *item
		served := map[string]uint64{} // turns that a site waited for its next
		for step := range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "pass")) * time.Second)
			site := rapid.SampledFrom(sites).Draw(t, "site")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			default:
				q.add(key(site, fmt.Sprintf("/%02d", rapid.IntRange(0, 40).Draw(t, "path"))), 1, true, now)
			case 0, 1, 2:
				if working != nil {
					break
				}
				if working = q.next(now, anySite); working == nil {
					break
				}
				for _, id := range sites {
					s := q.sites[id]
					if s == nil || len(s.ready.items) == 0 || id == working.site.id {
						served[id] = 0
						continue
					}
					if served[id]++; served[id] > uint64(len(sites)) {
						t.Fatalf("step %d: site %s has waited for %d turns", step, id, served[id])
					}
				}
				for _, other := range working.site.ready.items {
					if hotter(other, working) {
						t.Fatal("a hotter one was passed over")
					}
				}
			case 3:
				if working != nil {
					q.remove(working)
				}
				working = nil
			case 4:
				if working != nil {
					q.failed(working, now)
				}
				working = nil
			case 5:
				if working != nil {
					q.rest(working, now, 10*time.Second)
				}
				working = nil
			case 6:
				q.sweep(now)
			}
			check(t, q)
		}
	})
}

// check wants the list to agree with itself.
func check(t interface{ Fatalf(string, ...any) }, q *queue) {
	entries, size := 0, int64(0)
	for id, s := range q.sites {
		piled := 0
		for name, it := range s.items {
			entries++
			size += it.size()
			if it.site != s || s.id != id || it.name != name || it.state == gone {
				t.Fatalf("%q of %q is out of order: %+v", name, id, it)
			}
			var in *pile
			switch it.state {
			case busy:
				continue
			case ready:
				in = &s.ready
			case waiting:
				in = &s.waiting
			}
			piled++
			if in.items[it.hot] != it || s.cold.items[it.cold] != it {
				t.Fatalf("%q is not where it says", name)
			}
		}
		if len(s.items) == 0 || piled != len(s.cold.items) || piled != len(s.ready.items)+len(s.waiting.items) {
			t.Fatalf("site %q: %d of %d entries lie in piles of %d, %d and %d", id, piled, len(s.items), len(s.ready.items), len(s.waiting.items), len(s.cold.items))
		}
	}
	if entries != q.entries || size != q.bytes || entries > q.limits.Entries || size > q.limits.Bytes {
		t.Fatalf("%d entries of %d bytes, counted %d of %d, limits %d of %d", entries, size, q.entries, q.bytes, q.limits.Entries, q.limits.Bytes)
	}
}

func TestHeats(t *testing.T) {
	// The sum of decayed counts, in the form that heats are kept in.
	got := math.Exp2(warmer(heatAt(epoch, 3), heatAt(epoch.Add(2*time.Hour), 1)) - heatAt(epoch.Add(3*time.Hour), 1))
	if want := 3.0/8 + 1.0/2; math.Abs(got-want) > 1e-6 {
		t.Errorf("%g, want %g", got, want)
	}
}
