package dial_test

import (
	"strings"
	"testing"
	"time"

	"karui/convert/header"
	"karui/proxy/dial"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// stage is a dial with a simulated clock and workers.
type stage struct {
	t     *testing.T
	now   time.Time
	d     *dial.Dial
	moves []dial.Move
	busy  time.Duration
	slow  time.Duration
}

func automatic() dial.Settings {
	return dial.Settings{Auto: true, Wait: 500 * time.Millisecond, Levels: dial.Defaults()}
}

func newStage(t *testing.T, s dial.Settings) *stage {
	st := &stage{t: t, now: start}
	st.d = dial.New(s, func() time.Time { return st.now }, func(m dial.Move) { st.moves = append(st.moves, m) })
	return st
}

// load lets workers be busy for a share of the time, with the longest waiting
// conversion having waited.
func (s *stage) load(d time.Duration, share float64, wait time.Duration) {
	s.both(d, share, wait, 0, 0)
}

func (s *stage) both(d time.Duration, share float64, wait time.Duration, slowShare float64, slowWait time.Duration) {
	for range int(d / time.Second) {
		s.now = s.now.Add(time.Second)
		s.busy += time.Duration(2 * share * float64(time.Second))
		s.slow += time.Duration(slowShare * float64(time.Second))
		s.d.Observe(dial.Load{Workers: 2, BusyTime: s.busy, Wait: wait}, dial.Load{Workers: 1, BusyTime: s.slow, Wait: slowWait})
	}
}

func (s *stage) at(want int) {
	s.t.Helper()
	if got, _ := s.d.Of("shop"); got != want {
		s.t.Errorf("after %s the level is %d, want %d; moves: %+v", s.now.Sub(start), got, want, s.moves)
	}
}

func TestAutoClimbsOneLevelInTenSeconds(t *testing.T) {
	s := newStage(t, automatic())
	s.load(8*time.Second, 1, time.Second)
	s.at(0)
	s.load(3*time.Second, 1, time.Second)
	s.at(1)
	s.load(8*time.Second, 1, time.Second)
	s.at(1)
	s.load(3*time.Second, 1, time.Second)
	s.at(2)
	s.load(time.Minute, 1, time.Second)
	s.at(3)
}

func TestAutoStays(t *testing.T) {
	for name, load := range map[string]struct {
		share float64
		wait  time.Duration
	}{
		"busy, and nothing waits for long": {1, 400 * time.Millisecond},
		"a queue, and workers have time":   {0.9, 2 * time.Second},
		"calm":                             {0.1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, automatic())
			s.load(5*time.Minute, load.share, load.wait)
			s.at(0)
			if len(s.moves) > 0 {
				t.Errorf("moves: %+v", s.moves)
			}
		})
	}
}

func TestAutoComesDownAfterACalmMinute(t *testing.T) {
	s := newStage(t, automatic())
	s.load(time.Minute, 1, time.Second)
	s.at(3)
	// Within the gap between calm and busy nothing moves.
	s.load(5*time.Minute, 0.8, 0)
	s.at(3)
	s.load(55*time.Second, 0.2, 0)
	s.at(3)
	s.load(15*time.Second, 0.2, 0)
	s.at(2)
	// An interruption starts the minute anew.
	s.load(15*time.Second, 0.9, 0)
	s.load(50*time.Second, 0.1, 0)
	s.at(2)
	s.load(20*time.Second, 0.1, 0)
	s.at(1)
}

func TestAutoIsAtZeroWithinTwoMinutesAfterTheLoad(t *testing.T) {
	s := newStage(t, automatic())
	s.load(time.Minute, 1, time.Second)
	s.at(3)
	s.load(2*time.Minute, 0, 0)
	s.at(0)
}

func TestAutoClimbsForSlowFormats(t *testing.T) {
	s := newStage(t, automatic())
	s.both(11*time.Second, 0.1, 0, 1, time.Second)
	s.at(1)
	_, lean := s.d.Of("shop")
	if lean.Makes(header.AVIF) || !lean.Makes(header.WebP) {
		t.Errorf("lean: %+v", lean)
	}
}

func TestAutoForgetsAnotherPool(t *testing.T) {
	s := newStage(t, automatic())
	s.load(9*time.Second, 1, time.Second)
	s.busy = 0
	s.load(9*time.Second, 1, time.Second)
	s.at(0)
}

func TestPinHoldsAndExpires(t *testing.T) {
	s := newStage(t, automatic())
	if err := s.d.Pin("", 2, s.now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	s.at(2)
	s.load(59*time.Minute, 1, 2*time.Second)
	s.at(2)
	s.load(2*time.Minute, 0, 0)
	s.at(0)
	if last := s.moves[len(s.moves)-1]; last.Cause != "expiry" || last.From != 2 {
		t.Errorf("last move: %+v", last)
	}
	for _, bad := range []int{-1, 4} {
		if err := s.d.Pin("", bad, time.Time{}); err == nil {
			t.Errorf("level %d was taken", bad)
		}
	}
}

func TestPinOfASiteGoesBeforeThatOfAll(t *testing.T) {
	s := newStage(t, automatic())
	_ = s.d.Pin("shop", 3, time.Time{})
	s.at(3)
	if n, _ := s.d.Of("blog"); n != 0 {
		t.Errorf("blog is at %d", n)
	}
	_ = s.d.Pin("", 1, time.Time{})
	s.at(1)
	_ = s.d.Pin("shop", 0, time.Time{})
	s.at(0)
	again := newStage(t, automatic())
	again.d.Restore(s.d.Pins())
	again.at(0)
	if n, _ := again.d.Of("blog"); n != 1 {
		t.Errorf("after a restart, blog is at %d", n)
	}
	s.d.Unpin("")
	s.at(0)
	if len(s.d.Pins()) != 0 {
		t.Errorf("pins: %+v", s.d.Pins())
	}
}

func TestFixedAndConfigure(t *testing.T) {
	fixed := automatic()
	fixed.Auto, fixed.Base = false, 2
	s := newStage(t, fixed)
	s.at(2)
	s.load(time.Minute, 1, time.Second)
	s.at(2)
	_ = s.d.Pin("", 3, time.Time{})
	shorter := automatic()
	shorter.Levels = shorter.Levels[:2]
	s.d.Configure(shorter)
	s.at(1)
	if _, l := s.d.Of("shop"); l.Name != "lean" {
		t.Errorf("level: %+v", l)
	}
}

func TestScheduleIsAFloor(t *testing.T) {
	festival := automatic()
	for _, w := range [][3]string{
		{"all day", "2026-03-01T12:01:00Z", "2026-03-01T13:00:00Z"},
		{"peak", "2026-03-01T12:10:00Z", "2026-03-01T12:20:00Z"},
	} {
		window, err := dial.ParseWindow(w[0], w[1], w[2], "", map[string]int{"all day": 1, "peak": 2}[w[0]])
		if err != nil {
			t.Fatal(err)
		}
		festival.Windows = append(festival.Windows, window)
	}
	s := newStage(t, festival)
	s.at(0)
	s.load(2*time.Minute, 0, 0)
	s.at(1)
	s.load(9*time.Minute, 0, 0)
	s.at(2)
	if got := s.d.Status(); got.Mode != "schedule" || got.Window != "peak" || !got.Until.Equal(start.Add(20*time.Minute)) {
		t.Errorf("status: %+v", got)
	}
	s.load(15*time.Second, 1, time.Second)
	s.at(3) // the load counts above the floor
	s.load(15*time.Minute, 0, 0)
	s.at(1)
	s.load(time.Hour, 0, 0)
	s.at(0)
}

func TestHistoryIsBoundedAndNewestFirst(t *testing.T) {
	s := newStage(t, automatic())
	for i := range 300 {
		s.now = s.now.Add(time.Second)
		_ = s.d.Pin("", 1+i%2, time.Time{})
	}
	history := s.d.Status().History
	if len(history) != 100 || !history[0].At.Equal(s.now) || history[0].Cause != "pin" || history[0].ToName != "spare" {
		t.Errorf("%d moves, the first: %+v", len(history), history[0])
	}
	if len(s.moves) != 300 {
		t.Errorf("told of %d moves, want every one", len(s.moves))
	}
}

func TestIdle(t *testing.T) {
	s := newStage(t, automatic())
	s.load(5*time.Second, 0, 0)
	if s.d.Idle() {
		t.Error("idle, though nothing is known yet")
	}
	s.d.Observe(dial.Load{}, dial.Load{})
	if s.d.Idle() {
		t.Error("idle without workers")
	}
	s.load(10*time.Second, 0.2, 0)
	if !s.d.Idle() {
		t.Error("not idle")
	}
	s.load(10*time.Second, 0.9, 0)
	if s.d.Idle() {
		t.Error("idle under load")
	}
}

func TestParseWindowRefuses(t *testing.T) {
	for _, w := range [][3]string{
		{"", "", ""},
		{"18:00", "2026-03-01T12:00", ""},
		{"2026-03-01T12:00", "18:00", ""},
		{"2026-03-01T12:00", "2026-03-01T12:00", ""},
		{"2026-03-01T12:00:00+09:00", "2026-03-01T03:00:00Z", ""},
		{"18:00", "25:00", ""},
		{"18:00", "19:00", "Mars/Olympus"},
		{"18:00", "19:00", "Local"},
		{"18:00", "19:00", "../../etc/passwd"},
	} {
		if _, err := dial.ParseWindow("x", w[0], w[1], w[2], 1); err == nil {
			t.Errorf("%v was taken", w)
		} else if len(err.Error()) < 20 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v", w, err)
		}
	}
}

// FuzzParseWindow: whatever is written there, nothing panics, and what is taken
// can be asked.
func FuzzParseWindow(f *testing.F) {
	f.Add("18:00", "02:00", "Asia/Tokyo")
	f.Add("2026-03-29T02:30", "2026-03-29T03:30", "Europe/Berlin")
	f.Add("2026-08-01T18:00:00+09:00", "2026-08-02T18:00:00Z", "")
	f.Fuzz(func(t *testing.T, from, to, zone string) {
		w, err := dial.ParseWindow("x", from, to, zone, 1)
		if err != nil {
			return
		}
		settings := automatic()
		settings.Windows = []dial.Window{w}
		s := newStage(t, settings)
		s.load(3*time.Second, 0, 0)
	})
}
