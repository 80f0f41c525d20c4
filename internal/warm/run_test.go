package warm

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"karui/convert/header"
)

var (
	webp = Form{header.WebP}
	avif = Form{header.AVIF}
)

// double stands in for the proxy. Its answers are made under its lock.
type double struct {
	mu     sync.Mutex
	asked  []request
	answer func(r request, nth int) answer
	nth    map[string]int
	now    int // under way
	most   int
	took   time.Duration
}

type request struct {
	target string
	form   Form
	at     time.Time
}

func (d *double) ask(ctx context.Context, target string, form Form) answer {
	d.mu.Lock()
	r := request{target, form, time.Now()}
	d.asked = append(d.asked, r)
	key := target + " " + form.String()
	d.nth[key]++
	d.now++
	d.most = max(d.most, d.now)
	a := d.answer(r, d.nth[key])
	d.mu.Unlock()
	select {
	case <-time.After(d.took):
	case <-ctx.Done():
		a = answer{unreached: ctx.Err()}
	}
	d.mu.Lock()
	d.now--
	d.mu.Unlock()
	return a
}

func did(word string, form Form, fields ...string) answer {
	a := answer{status: 200, header: heads(append(fields, "X-Karui: "+word, "Content-Type: "+form.accept())...), bytes: 100, sniffed: header.JPEG}
	if word == "hit" || word == "wait" {
		a.sniffed = form.format
	}
	return a
}

func refusal(reason string) answer {
	return answer{status: 503, header: heads("X-Karui-Reason: " + reason)}
}

// missThenHit is a proxy that makes variants in the background.
func missThenHit(r request, nth int) answer {
	if nth == 1 {
		return did("miss", r.form)
	}
	return did("hit", r.form)
}

// paths are the lines of a list.
func paths(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "/%d.jpg\n", i)
	}
	return b.String()
}

func options(list string) Options {
	sources := []Source{{List, "-"}}
	return Options{
		Sources: sources, Forms: []Form{webp}, Scope: Scope{Hosts: []string{"www.example.com"}},
		Proxy: Proxy{URL: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}, Site: "shop", Routing: "X-Routing", Short: 10 * time.Second},
		Pages: true, Stdin: strings.NewReader(list), Limits: DefaultLimits(), Rate: 100, Parallel: 4, Patience: 10 * time.Minute, DoneFor: 24 * time.Hour,
		State: Memory("shop", sources), Progress: func(Progress) {}, Say: func(string) {},
	}
}

// warmWith runs with a double in place of the proxy.
func warmWith(ctx context.Context, o Options, d *double) (*Report, error) {
	d.nth = map[string]int{}
	if d.took == 0 {
		d.took = 5 * time.Millisecond
	}
	fetch := newFetcher(&o.Scope, o.Limits)
	defer fetch.close()
	return newRun(o, d.ask, fetch).run(ctx)
}

func TestEveryImageIsAskedUntilItIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(paths(300) + "/0.jpg\nhttps://www.example.com/1.jpg\nhttps://other.example/x.jpg\n/x.svg\n")
		o.Forms = []Form{avif, webp, Original}
		d := &double{answer: func(r request, nth int) answer {
			switch {
			case r.form == Original:
				return did("original", r.form, "X-Karui-Kept: not_accepted")
			case r.target == "/7.jpg" && r.form == avif:
				return did("original", r.form, "X-Karui-Kept: graphic")
			case r.target == "/8.jpg":
				return did("bypass", r.form)
			}
			return missThenHit(r, nth)
		}}
		report, err := warmWith(t.Context(), o, d)
		if err != nil || !report.Good() || report.Images != 300 || report.Foreign != 1 || report.LeftOut != 1 || report.Requests != len(d.asked) {
			t.Fatalf("%v %+v", err, report)
		}
		a, w, original := report.Forms[0], report.Forms[1], report.Forms[2]
		if a.Made != 298 || a.Kept != 1 || a.KeptWhy["graphic"] != 1 || a.Bypassed != 1 || w.Made != 299 || w.Bypassed != 1 || original.Kept != 300 {
			t.Errorf("%+v\n%+v\n%+v", a, w, original)
		}
		if d.most > 4 {
			t.Errorf("%d at a time", d.most)
		}
	})
}

func TestTheRateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(paths(200))
		o.Rate = 5
		d := &double{answer: missThenHit, took: 400 * time.Millisecond}
		begun := time.Now()
		report, err := warmWith(t.Context(), o, d)
		if err != nil || report.Requests != 400 {
			t.Fatalf("%v %+v", err, report)
		}
		if took := time.Since(begun); took < 79*time.Second || took > 90*time.Second {
			t.Errorf("400 requests at 5/s took %s", took)
		}
		for i := range d.asked {
			for n := 10; i+n < len(d.asked) && n <= 100; n *= 10 {
				if span := d.asked[i+n].at.Sub(d.asked[i].at); span < time.Duration(n)*200*time.Millisecond-time.Millisecond {
					t.Fatalf("%d requests within %s", n, span)
				}
			}
		}
	})
}

// As long as variants take to be made, so long new images wait: the proxy's queue is
// never longer than a few for each request at a time.
func TestConversionsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(paths(200))
		o.Rate = 1000
		const each = 500 * time.Millisecond // one worker
		var free time.Time
		made, most := map[string]time.Time{}, 0
		d := &double{}
		d.answer = func(r request, _ int) answer {
			at, known := made[r.target]
			if !known {
				if free.Before(r.at) {
					free = r.at
				}
				free = free.Add(each)
				made[r.target] = free
				waiting := 0
				for _, when := range made {
					if when.After(r.at) {
						waiting++
					}
				}
				most = max(most, waiting)
				return did("miss", r.form)
			}
			if at.After(r.at) {
				return did("miss", r.form)
			}
			return did("hit", r.form)
		}
		report, err := warmWith(t.Context(), o, d)
		if err != nil || report.Forms[0].Made != 200 {
			t.Fatalf("%v %+v", err, report)
		}
		if most > 16 {
			t.Errorf("%d conversions waited at a time", most)
		}
	})
}

func TestAStressedProxyIsLeftAlone(t *testing.T) {
	for _, reason := range []string{"latency", "disk", "shed", "drain", "origin"} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				from, to := begun.Add(2*time.Second), begun.Add(5*time.Minute)
				stress := 0
				d := &double{}
				d.answer = func(r request, nth int) answer {
					if r.at.After(from) && r.at.Before(to) {
						stress++
						return refusal(reason)
					}
					return missThenHit(r, nth)
				}
				var said []string
				o := options(paths(1000))
				o.Say = func(s string) { said = append(said, s) }
				report, err := warmWith(t.Context(), o, d)
				if err != nil || report.Forms[0].Made != 1000 {
					t.Fatalf("%v %+v", err, report)
				}
				// Those under way, and one for each pause of 1, 2, 4 ... 60 s.
				if stress < 5 || stress > 16 {
					t.Errorf("%d requests in five minutes of stress", stress)
				}
				if len(said) != 1 || !strings.Contains(said[0], reason) {
					t.Errorf("%q", said)
				}
			})
		})
	}
}

// Some images are always turned away, others never: these are not held up by those.
func TestShedImagesHoldUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var last time.Time
		d := &double{answer: func(r request, nth int) answer {
			if strings.HasSuffix(r.target, "7.jpg") {
				return refusal("shed")
			}
			last = r.at
			return missThenHit(r, nth)
		}}
		report, err := warmWith(t.Context(), options(paths(1000)), d)
		if !errors.Is(err, ErrOutage) || !strings.Contains(err.Error(), "an operator has requests turned away") || report.Forms[0].Made != 900 {
			t.Fatalf("%v %+v", err, report)
		}
		if took := last.Sub(begun); took > 30*time.Minute || time.Since(last) > 12*time.Minute {
			t.Errorf("it took %s, and %s to give up", took, time.Since(last))
		}
	})
}

// An image that alone meets a stressed proxy is given up in the end.
func TestAnImageThatIsAlwaysTurnedAwayIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(paths(2000))
		o.Rate = 1
		d := &double{answer: func(r request, nth int) answer {
			if r.target == "/3.jpg" {
				return refusal("origin")
			}
			return missThenHit(r, nth)
		}}
		report, err := warmWith(t.Context(), o, d)
		if err != nil || report.Forms[0].Made != 1999 || report.Failed != 1 || !strings.Contains(report.Failures[0].Reason, "503 origin") {
			t.Fatalf("%v %+v", err, report)
		}
		if n := d.nth["/3.jpg webp"]; n < 6 || n > 8 {
			t.Errorf("%d tries", n)
		}
	})
}

func TestAnOutageEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "state.json")
		o := options(paths(500))
		state, err := OpenState(file, "shop", o.Sources, false)
		if err != nil {
			t.Fatal(err)
		}
		o.State = state
		begun := time.Now()
		d := &double{answer: func(r request, nth int) answer {
			if r.at.Sub(begun) > 3*time.Second {
				return answer{unreached: errors.New("connection refused")}
			}
			return missThenHit(r, nth)
		}}
		report, err := warmWith(t.Context(), o, d)
		if !errors.Is(err, ErrOutage) || !strings.Contains(err.Error(), "connection refused") || report.Finished || report.Failed != 0 {
			t.Fatalf("%v %+v", err, report)
		}
		if took := time.Since(begun); took < 10*time.Minute || took > 12*time.Minute {
			t.Errorf("it took %s", took)
		}
		done := report.Forms[0].Made
		if done < 16 || done > 400 {
			t.Fatalf("%d were made", done)
		}
		_ = state.Close()

		// The next run goes on, and asks for nothing twice.
		o = options(paths(500))
		if o.State, err = OpenState(file, "shop", o.Sources, false); err != nil {
			t.Fatal(err)
		}
		d = &double{answer: missThenHit}
		report, err = warmWith(t.Context(), o, d)
		if err != nil || report.Forms[0].Before != done || report.Forms[0].Made != 500-done {
			t.Errorf("%v %+v", err, report)
		}
		_ = o.State.Close()

		// What was done long ago is not done any more.
		time.Sleep(25 * time.Hour) // within the bubble
		o = options(paths(500))
		if o.State, err = OpenState(file, "shop", o.Sources, false); err != nil {
			t.Fatal(err)
		}
		report, err = warmWith(t.Context(), o, &double{answer: missThenHit})
		if err != nil || report.Forms[0].Before != 0 || report.Forms[0].Made != 500 {
			t.Errorf("%v %+v", err, report)
		}
		_ = o.State.Close()
	})
}

func TestAnInterruptedRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		o := options(paths(500))
		d := &double{}
		d.answer = func(r request, nth int) answer {
			if len(d.asked) == 300 {
				stop()
			}
			return missThenHit(r, nth)
		}
		report, err := warmWith(ctx, o, d)
		if !errors.Is(err, context.Canceled) || report.Finished || report.Failed > 0 {
			t.Fatalf("%v %+v", err, report)
		}
		state, done := o.State, report.Forms[0].Made
		o = options(paths(500))
		o.State = state
		report, err = warmWith(t.Context(), o, &double{answer: missThenHit})
		if err != nil || done < 100 || report.Forms[0].Before != done || report.Forms[0].Before+report.Forms[0].Made != 500 {
			t.Errorf("%v, %d before: %+v", err, done, report)
		}
	})
}

func TestTheProxysLoadIsHeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		from, to := begun.Add(5*time.Second), begun.Add(3*time.Minute)
		high := func(at time.Time) bool { return at.After(from) && at.Before(to) }
		for _, load := range []Load{{Level: 1, LevelName: "lean"}, {Waiting: 3, Oldest: time.Second}} {
			d := &double{answer: missThenHit}
			o := options(paths(1000))
			o.Watch = func(context.Context) (Load, error) {
				if high(time.Now()) {
					return load, nil
				}
				return Load{Waiting: 1, Oldest: 10 * time.Millisecond}, nil
			}
			report, err := warmWith(t.Context(), o, d)
			if err != nil || report.Forms[0].Made != 1000 {
				t.Fatalf("%v %+v", err, report)
			}
			during := 0
			for _, r := range d.asked {
				if r.at.After(from.Add(watchEvery+time.Second)) && r.at.Before(to) {
					during++
				}
			}
			if during > 0 || time.Now().Before(to) {
				t.Errorf("%+v: %d requests under load", load, during)
			}
			begun = time.Now()
			from, to = begun.Add(5*time.Second), begun.Add(3*time.Minute)
		}
		// It ends, and says why.
		o := options(paths(1000))
		o.Watch = func(context.Context) (Load, error) { return Load{Level: 3, LevelName: "defer"}, nil }
		if _, err := warmWith(t.Context(), o, &double{answer: missThenHit}); !errors.Is(err, ErrOutage) || !strings.Contains(err.Error(), "its dial is at 3 (defer)") {
			t.Error(err)
		}
		// Not knowing is no reason to wait.
		var said []string
		o = options(paths(10))
		o.Say = func(s string) { said = append(said, s) }
		o.Watch = func(context.Context) (Load, error) { return Load{}, errors.New("no token") }
		if report, err := warmWith(t.Context(), o, &double{answer: missThenHit}); err != nil || report.Forms[0].Made != 10 || len(said) != 1 || !strings.Contains(said[0], "no token") {
			t.Errorf("%v %+v %q", err, report, said)
		}
	})
}

func TestWhatCannotBeWarmedIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options("/a.jpg\n/gone.jpg\n/slow.jpg\n/cut.jpg\n")
		o.Forms = []Form{webp, avif}
		d := &double{answer: func(r request, nth int) answer {
			switch r.target {
			case "/gone.jpg":
				return answer{status: 404, header: heads()}
			case "/slow.jpg":
				return did("miss", r.form)
			case "/cut.jpg":
				return answer{status: 200, header: heads(), bytes: 7, broken: errors.New("unexpected EOF")}
			}
			return did("hit", r.form)
		}}
		report, err := warmWith(t.Context(), o, d)
		if err != nil || report.Good() || report.Failed != 2 || report.Forms[0].Failed != 2 || report.Forms[0].Missing != 1 || report.Forms[0].Ready != 1 || len(report.Failures) != 2 || report.DeadLinks != 1 {
			t.Fatalf("%v %+v", err, report)
		}
		if d.nth["/slow.jpg webp"] != maxTries || d.nth["/cut.jpg webp"] != maxTries || d.nth["/gone.jpg webp"] != 1 {
			t.Errorf("%v", d.nth)
		}
		for _, f := range report.Failures {
			if !slices.Equal(f.Formats, []string{"webp", "avif"}) && !slices.Equal(f.Formats, []string{"avif", "webp"}) {
				t.Errorf("%+v", f)
			}
		}
		var b strings.Builder
		if err := report.WriteTable(&b); err != nil || !strings.Contains(b.String(), "dead link: /gone.jpg: the origin has no such file (404)\n") {
			t.Errorf("%v\n%s", err, b.String())
		}
		// A refused key ends the run at once.
		o = options(paths(100))
		d = &double{answer: func(request, int) answer { return refusal("secret") }}
		if _, err := warmWith(t.Context(), o, d); err == nil || !strings.Contains(err.Error(), "edge.secrets") || len(d.asked) > 4 {
			t.Errorf("%v after %d requests", err, len(d.asked))
		}
	})
}

func TestTheNumberOfImagesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(paths(100))
		o.Images = 30
		d := &double{answer: missThenHit}
		report, err := warmWith(t.Context(), o, d)
		if err != nil || report.Good() || report.Images != 30 || report.OverLimit != 70 || report.Forms[0].Made != 30 {
			t.Errorf("%v %+v", err, report)
		}
		var found []string
		o = options(paths(3))
		o.DryRun, o.Found = true, func(s string) { found = append(found, s) }
		d = &double{answer: missThenHit}
		if _, err := warmWith(t.Context(), o, d); err != nil || len(d.asked) > 0 || !slices.Equal(found, []string{"/0.jpg", "/1.jpg", "/2.jpg"}) {
			t.Errorf("%v %d %q", err, len(d.asked), found)
		}
	})
}

// broken answers 503 for the targets that are said to be so, as karui does where the
// origin always answers 500.
func broken(is func(n int) bool) func(request, int) answer {
	return func(r request, nth int) answer {
		var n int
		_, _ = fmt.Sscanf(r.target, "/%d.jpg", &n)
		if is(n) {
			return refusal("origin")
		}
		return missThenHit(r, nth)
	}
}

// What the origin never gives ends no run, slows it little, and is named.
func TestImagesThatTheOriginNeverGives(t *testing.T) {
	for name, tt := range map[string]struct {
		all    int
		rate   float64
		is     func(n int) bool
		broken int
		most   time.Duration
	}{
		"alone":            {1, 5, func(int) bool { return true }, 1, 3 * time.Minute},
		"one of two":       {2, 5, func(n int) bool { return n == 1 }, 1, 3 * time.Minute},
		"one of two, slow": {2, 0.1, func(n int) bool { return n == 1 }, 1, 4 * time.Minute},
		"spread":           {200, 5, func(n int) bool { return n%20 == 7 }, 10, 5 * time.Minute},
		"the last":         {200, 5, func(n int) bool { return n >= 190 }, 10, 6 * time.Minute},
		"the first":        {200, 5, func(n int) bool { return n < 10 }, 10, 5 * time.Minute},
		"a few, no other":  {8, 5, func(int) bool { return true }, 8, 5 * time.Minute},
		"a folder":         {900, 10, func(n int) bool { return n >= 100 && n < 400 }, 300, 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := options(paths(tt.all))
				o.Rate = tt.rate
				began := time.Now()
				d := &double{answer: broken(tt.is)}
				report, err := warmWith(t.Context(), o, d)
				if took := time.Since(began); err != nil || !report.Finished || report.Failed != tt.broken || report.Forms[0].Made != tt.all-tt.broken || took > tt.most {
					t.Fatalf("after %s: %v %+v", took, err, report)
				}
				for _, f := range report.Failures {
					var n int
					if _, err := fmt.Sscanf(f.Name, "/%d.jpg", &n); err != nil || !tt.is(n) || !strings.Contains(f.Reason, "503 origin") {
						t.Errorf("%+v", f)
					}
					if tries := d.nth[f.Name+" webp"]; tries > maxTries {
						t.Errorf("%s: %d tries", f.Name, tries)
					}
				}
			})
		})
	}
}

// A run that gives up since the origin gives nothing says what it was asked for.
func TestWhatWasNotGivenIsNamedWhenTheRunGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, err := warmWith(t.Context(), options(paths(500)), &double{answer: broken(func(int) bool { return true })})
		if !errors.Is(err, ErrOutage) || report.Finished || report.Failed < 10 || report.Failed > 30 || len(report.Failures) != report.Failed {
			t.Fatalf("%v %+v", err, report)
		}
	})
}

// A dead link is listed and is no failure, and is asked for again by the next run; where
// all are dead, something is wrong.
func TestDeadLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := func(r request, nth int) answer {
			if r.target == "/1.jpg" {
				return answer{status: 410, header: heads()}
			}
			return missThenHit(r, nth)
		}
		o := options(paths(3))
		report, err := warmWith(t.Context(), o, &double{answer: one})
		if err != nil || !report.Good() || report.AllDead() || report.Failed != 0 || report.DeadLinks != 1 || report.Forms[0].Made != 2 || report.Dead[0].Name != "/1.jpg" {
			t.Fatalf("%v %+v", err, report)
		}
		again := options(paths(3))
		again.State = o.State
		if report, err = warmWith(t.Context(), again, &double{answer: missThenHit}); err != nil || report.Forms[0].Before != 2 || report.Forms[0].Made != 1 {
			t.Errorf("%v %+v", err, report)
		}
		report, err = warmWith(t.Context(), options(paths(3)), &double{answer: func(request, int) answer { return answer{status: 404, header: heads()} }})
		if err != nil || report.Good() || !report.AllDead() || report.DeadLinks != 3 {
			t.Errorf("%v %+v", err, report)
		}
	})
}
