package backlog

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"karui/cache"
)

// script is a maker that does what it is told.
type script struct {
	mu      sync.Mutex
	idle    bool
	closed  string // the site that is not open
	verdict Verdict
	made    []string
	times   []time.Time
	running int
	most    int
	takes   time.Duration
}

func (s *script) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idle
}

func (s *script) Open(site string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return site != s.closed
}

func (s *script) Make(ctx context.Context, key cache.Key) Verdict {
	s.mu.Lock()
	s.running++
	s.most = max(s.most, s.running)
	s.made = append(s.made, key.Site+key.Path)
	s.times = append(s.times, time.Now())
	verdict, takes := s.verdict, s.takes
	s.mu.Unlock()
	if takes > 0 {
		timer := time.NewTimer(takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			verdict = Trouble
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	return verdict
}

func (s *script) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// working runs f beside a list that is worked off, in time that passes at once.
func working(t *testing.T, f func(b *Backlog, s *script, pass func(time.Duration))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := Open(Options{Limits: small()})
		s := &script{verdict: Made, idle: true}
		ctx, cancel := context.WithCancel(context.Background())
		var ended sync.WaitGroup
		ended.Go(func() { b.Work(ctx, s) })
		f(b, s, func(d time.Duration) {
			timer := time.NewTimer(d)
			<-timer.C
			synctest.Wait()
		})
		cancel()
		ended.Wait()
	})
}

func TestOneAtATimeAndTwoASecond(t *testing.T) {
	working(t, func(b *Backlog, s *script, pass func(time.Duration)) {
		for i := range 50 {
			b.Ask(key("shop", fmt.Sprintf("/%d", i)), Missing)
		}
		pass(10 * time.Second)
		s.set(func() {
			if n := len(s.made); n < 18 || n > 20 || s.most != 1 {
				t.Errorf("%d made in 10 s, %d at a time", n, s.most)
			}
		})
		if st := b.Status(0); st.Made < 18 || st.Entries != 50-int(st.Made) {
			t.Errorf("%+v", st)
		}
		s.set(func() { s.takes = 5 * time.Second })
		pass(20 * time.Second)
		s.set(func() {
			if s.most != 1 {
				t.Errorf("%d at a time", s.most)
			}
		})
	})
}

func TestNothingWithoutTime(t *testing.T) {
	working(t, func(b *Backlog, s *script, pass func(time.Duration)) {
		s.set(func() { s.idle = false })
		b.Ask(key("shop", "/a"), Missing)
		b.Ask(key("blog", "/a"), Missing)
		pass(time.Hour)
		s.set(func() {
			if len(s.made) > 0 {
				t.Errorf("made %q", s.made)
			}
			s.idle, s.closed = true, "shop"
		})
		pass(time.Minute)
		s.set(func() {
			if fmt.Sprint(s.made) != "[blog/a]" {
				t.Errorf("made %q", s.made)
			}
			s.closed = ""
		})
		pass(time.Second)
		if st := b.Status(0); st.Entries != 0 || st.Made != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// What somebody else has made, and what nobody wants any more, takes none of the time
// of what is to be made.
func TestWhatNeedsNoWorkTakesNoTurn(t *testing.T) {
	for verdict, cause := range map[Verdict]Cause{Found: Present, Void: Obsolete} {
		working(t, func(b *Backlog, s *script, pass func(time.Duration)) {
			s.set(func() { s.verdict = verdict })
			for i := range 90 {
				b.Ask(key("shop", fmt.Sprintf("/%d", i)), Missing)
			}
			pass(2 * time.Second)
			if st := b.Status(0); st.Entries != 0 || st.Dropped[cause] != 90 || st.Made != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	for verdict, want := range map[Verdict]struct {
		entries, attempts int
		cause             Cause
	}{
		Made: {0, 1, ""}, Settled: {0, 1, Kept}, Found: {0, 1, Present}, Missed: {0, 1, Obsolete}, Void: {0, 1, Obsolete},
		Busy: {1, 100, ""}, Trouble: {0, 3, Failed},
	} {
		working(t, func(b *Backlog, s *script, pass func(time.Duration)) {
			s.set(func() { s.verdict = verdict })
			b.Ask(key("shop", "/a"), Missing)
			pass(time.Hour)
			st := b.Status(1)
			dropped := uint64(0)
			for _, n := range st.Dropped {
				dropped += n
			}
			s.set(func() {
				if st.Entries != want.entries || len(s.made) < want.attempts || want.entries == 0 && len(s.made) != want.attempts ||
					want.cause != "" && (st.Dropped[want.cause] != 1 || dropped != 1) || want.cause == "" && dropped != 0 {
					t.Errorf("verdict %d: %d attempts, %+v", verdict, len(s.made), st)
				}
			})
			if want.entries > 0 && st.Sites[0].Next[0].Tries != 0 {
				t.Errorf("verdict %d counts as a failure", verdict)
			}
		})
	}
}

func TestTheEndIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Open(Options{Limits: small()})
		s := &script{verdict: Made, idle: true, takes: time.Hour}
		ctx, cancel := context.WithCancel(context.Background())
		var ended sync.WaitGroup
		ended.Go(func() { b.Work(ctx, s) })
		b.Ask(key("shop", "/a"), Missing)
		<-time.After(2 * time.Second)
		cancel()
		ended.Wait()
		if st := b.Status(1); st.Entries != 1 || len(s.made) != 1 || st.Sites[0].Next[0].Tries != 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestAPanicKeepsNothingBusy(t *testing.T) {
	b := Open(Options{Limits: small()})
	b.Ask(key("shop", "/a"), Missing)
	func() {
		defer func() { _ = recover() }()
		b.one(context.Background(), panics{})
	}()
	if st := b.Status(1); len(st.Sites) != 1 || len(st.Sites[0].Next) != 1 {
		t.Errorf("%+v", st)
	}
}

type panics struct{}

func (panics) Idle() bool                              { return true }
func (panics) Open(string) bool                        { return true }
func (panics) Make(context.Context, cache.Key) Verdict { panic("a fault") }

func TestWhatGoesWhileItIsMade(t *testing.T) {
	working(t, func(b *Backlog, s *script, pass func(time.Duration)) {
		s.set(func() { s.takes = 10 * time.Second })
		b.Ask(key("shop", "/a.jpg"), Missing)
		b.Ask(key("shop", "/b/1.jpg"), Missing)
		b.Ask(key("shop", "/b/1.jpg"), Missing)
		b.Ask(key("blog", "/b/1.jpg"), Missing)
		pass(2 * time.Second)
		b.Purge(func(k cache.Key) bool { return k.Site == "shop" && k.Path[:3] == "/b/" })
		if n := b.Clear("blog"); n != 1 {
			t.Errorf("%d cleared", n)
		}
		pass(time.Minute)
		if st := b.Status(1); st.Entries != 0 || st.Dropped[Purged] != 1 || st.Dropped[Cleared] != 1 {
			t.Errorf("%+v", st)
		}
	})
}

func TestOverrun(t *testing.T) {
	limits := small()
	limits.Entries, limits.Bytes = 100_000, 64<<20
	b := Open(Options{Limits: limits})
	for i := range inboxMost + 10 {
		b.Ask(key("shop", fmt.Sprint(i)), Missing)
	}
	if st := b.Status(0); st.Entries != inboxMost || st.Dropped[Overrun] != 10 {
		t.Errorf("%d entries, dropped %v", st.Entries, st.Dropped)
	}
}

func TestLongKeysTakeNoMemory(t *testing.T) {
	b := Open(Options{Limits: DefaultLimits()})
	b.Ask(key("shop", "/"+string(make([]byte, 10_000))), Missing)
	b.Ask(key("shop", "/"+string(make([]byte, 10_000))), Again)
	if st := b.Status(0); st.Entries != 0 || st.Dropped[TooLarge] != 1 || st.Dropped[Overrun] != 0 {
		t.Errorf("%d entries, dropped %v", st.Entries, st.Dropped)
	}
	const each = 8000
	for i := range inboxBytes/each + 100 {
		b.Ask(key("shop", fmt.Sprintf("/%0*d", each, i)), Missing)
	}
	if st := b.Status(0); st.Entries < inboxBytes/each-10 || st.Entries > inboxBytes/each || st.Dropped[Overrun] < 100 {
		t.Errorf("%d entries, dropped %v", st.Entries, st.Dropped)
	}
	b.Ask(key("shop", "/new.jpg"), Missing)
	if n := b.Counts()["shop"]; n < inboxBytes/each-9 {
		t.Errorf("%d entries after the next", n)
	}
}

func TestKeepWritesWithinASecond(t *testing.T) {
	file := t.TempDir() + "/backlog.journal"
	synctest.Test(t, func(t *testing.T) {
		b := Open(Options{File: file, Limits: small()})
		ctx, cancel := context.WithCancel(context.Background())
		var ended sync.WaitGroup
		ended.Go(func() { b.Keep(ctx) })
		b.Ask(key("shop", "/a"), Missing)
		<-time.After(flushEvery)
		synctest.Wait()
		other := Open(Options{File: file, Limits: small()})
		if other.Counts()["shop"] != 1 {
			t.Error("it is not on disk")
		}
		other.Close()
		b.Ask(key("shop", "/b"), Missing)
		cancel()
		ended.Wait()
		b.Close()
		if other := Open(Options{File: file, Limits: small()}); other.Counts()["shop"] != 2 {
			t.Error("the last one is not on disk")
		} else {
			other.Close()
		}
	})
}

func TestManyAskWhileItIsLookedAt(t *testing.T) {
	b := Open(Options{File: t.TempDir() + "/backlog.journal", Limits: DefaultLimits()})
	defer b.Close()
	var asking sync.WaitGroup
	for w := range 8 {
		asking.Go(func() {
			for i := range 500 {
				b.Ask(key(fmt.Sprintf("site%d", i%3), fmt.Sprintf("/%d", i)), Missing)
				switch w {
				case 0:
					b.Counts()
				case 1:
					_ = b.Flush()
				case 2:
					b.one(context.Background(), &script{idle: true, verdict: Busy})
				case 3:
					b.Status(3)
				}
			}
		})
	}
	asking.Wait()
	if st := b.Status(0); st.Entries != 500 || len(st.Sites) != 3 {
		t.Errorf("%+v", st)
	}
}
