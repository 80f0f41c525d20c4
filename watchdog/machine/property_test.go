package machine_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"karui/watchdog/event"
	"karui/watchdog/machine"
)

// world is what the machine is let loose on: anything may happen between and
// during rounds, killing included.
type world struct {
	t     *rapid.T
	now   time.Time
	rules machine.Rules
	disk  []byte // the state as last written down
	order event.Order
	round int

	swaps []time.Time    // the watchdog's own that took effect
	told  map[string]int // by ID
	kinds map[event.Kind]int
}

func (w *world) load() machine.State {
	var s machine.State
	if len(w.disk) == 0 {
		return s
	}
	if err := json.Unmarshal(w.disk, &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) save(s machine.State) {
	b, err := json.Marshal(s)
	if err != nil {
		w.t.Fatal(err)
	}
	w.disk = b
}

func (w *world) tell(notices []machine.Notice) {
	for _, n := range notices {
		if n.ID == "" || n.Actor == "" {
			w.t.Fatalf("a notice without ID or actor: %+v", n)
		}
		w.told[n.ID]++
		w.kinds[n.Kind]++
	}
}

// observation is any round.
func (w *world) observation(verdict machine.Verdict, lives, read bool) machine.Observation {
	w.round++
	o := machine.Observation{ID: fmt.Sprintf("r%d", w.round), At: w.now, Began: w.now.Add(-25 * time.Second), Verdict: verdict, OriginLives: lives, Read: read}
	if read {
		o.Order = w.order
	}
	return o
}

// play runs one round; troubles lets swaps fail and processes die.
func (w *world) play(o machine.Observation, troubles bool) {
	t := w.t
	before := w.load()
	s, plan := machine.Decide(before, o, w.rules)
	if again, plan2 := machine.Decide(before, o, w.rules); !reflect.DeepEqual(s, again) || !reflect.DeepEqual(plan, plan2) {
		t.Fatal("the same observation, decided in two ways")
	}
	if o.Verdict == machine.Inconclusive && (len(plan.Tell) > 0 || plan.Swap != event.OrderUnknown) {
		t.Fatalf("acts while inconclusive: %+v", plan)
	}
	if plan.Swap == event.OrderDirect && (!o.OriginLives || !w.rules.AutoDegrade || o.Verdict != machine.VerdictDown) {
		t.Fatalf("degrades although it must not: %+v, %+v", o, w.rules)
	}
	if plan.Swap == event.OrderProxy && (!w.rules.AutoRestore || o.Verdict != machine.VerdictUp || s.Good < s.Need(w.rules)) {
		t.Fatalf("restores although it must not: %+v, %+v", o, w.rules)
	}
	if plan.Swap == event.OrderProxy && s.Own()+2 > w.rules.MaxSwapsPerDay {
		t.Fatal("restores with no swap left for another degrade")
	}
	if (plan.Swap != event.OrderUnknown) && (s.Intent == nil || s.Intent.To != plan.Swap) {
		t.Fatalf("a swap without intent: %+v", s.Intent)
	}
	w.save(s)
	w.tell(plan.Tell)
	if plan.Swap == event.OrderUnknown {
		return
	}
	out := machine.Outcome{At: w.now}
	took, dies := true, false
	if troubles {
		switch rapid.SampledFrom([]string{"ok", "ok", "ok", "denied", "lost", "unsure", "killed before", "killed after"}).Draw(t, "swap") {
		case "denied":
			took, out.Failure = false, "denied"
		case "lost":
			out.Failure, out.Unsure = "unreachable", true
		case "unsure":
			took, out.Failure, out.Unsure = false, "unreachable", true
		case "killed before":
			took, dies = false, true
		case "killed after":
			dies = true
		}
	}
	if took && w.order != plan.Swap {
		out.Changed = out.Failure == ""
		w.order = plan.Swap
		w.swaps = append(w.swaps, w.now)
	}
	if dies {
		return
	}
	s, told := machine.Finish(s, out)
	w.save(s)
	w.tell(told)
}

func newWorld(t *rapid.T) *world {
	return &world{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), order: event.OrderProxy,
		told: map[string]int{}, kinds: map[event.Kind]int{},
		rules: machine.Rules{
			AutoDegrade: rapid.Bool().Draw(t, "auto degrade"), AutoRestore: rapid.Bool().Draw(t, "auto restore"),
			RestoreAfter:   rapid.IntRange(1, 12).Draw(t, "restore_after"),
			MaxSwapsPerDay: rapid.IntRange(2, 14).Draw(t, "max_swaps_per_day"),
		},
	}
}

// anything runs rounds of anything.
func (w *world) anything(rounds int, people bool) {
	t := w.t
	for range rounds {
		verdict := rapid.SampledFrom([]machine.Verdict{machine.VerdictUp, machine.VerdictUp, machine.VerdictDown, machine.VerdictDown, machine.Inconclusive}).Draw(t, "verdict")
		if people {
			switch rapid.IntRange(0, 19).Draw(t, "people") {
			case 0:
				w.order = rapid.SampledFrom([]event.Order{event.OrderProxy, event.OrderDirect, event.OrderUnknown}).Draw(t, "order")
			case 1:
				w.disk = nil // the state file is lost
			}
		}
		w.play(w.observation(verdict, rapid.Bool().Draw(t, "origin lives"), rapid.IntRange(0, 4).Draw(t, "read") > 0), true)
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "minutes")) * time.Minute)
	}
}

func TestNeverOftenerThanAllowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.rules.AutoDegrade, w.rules.AutoRestore = true, true
		for range rapid.IntRange(1, 150).Draw(t, "rounds") {
			verdict := rapid.SampledFrom([]machine.Verdict{machine.VerdictUp, machine.VerdictDown}).Draw(t, "verdict")
			w.play(w.observation(verdict, true, true), rapid.Bool().Draw(t, "troubles"))
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "minutes")) * time.Minute)
		}
		for i := range w.swaps {
			if j := i + w.rules.MaxSwapsPerDay; j < len(w.swaps) && w.swaps[j].Sub(w.swaps[i]) < 24*time.Hour {
				t.Fatalf("more than %d swaps from %s to %s", w.rules.MaxSwapsPerDay, w.swaps[i], w.swaps[j])
			}
		}
	})
}

func TestAnythingGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.anything(rapid.IntRange(1, 120).Draw(t, "rounds"), true)
		for id, n := range w.told {
			if n > 1 {
				t.Fatalf("%s was told %d times", id, n)
			}
		}
	})
}

// Whatever happened before: once the proxy stays down, the origin lives and
// nobody interferes, the true origin comes first and it is told.
func TestEndsDegraded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.rules.AutoDegrade = true
		w.anything(rapid.IntRange(0, 120).Draw(t, "rounds"), false)
		for range 2 { // a lost answer is settled by the next round
			w.play(w.observation(machine.VerdictDown, true, true), false)
			w.now = w.now.Add(5 * time.Minute)
		}
		if w.order != event.OrderDirect {
			t.Fatalf("not degraded: %s", w.disk)
		}
		if s := w.load(); s.Episode == nil || w.told[s.Episode.ID] == 0 || s.Intent != nil {
			t.Fatalf("degraded and not told: %s", w.disk)
		}
	})
}

// And once it stays up for long enough, it is restored, with auto.
func TestEndsRestored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.rules.AutoDegrade, w.rules.AutoRestore = true, true
		w.anything(rapid.IntRange(0, 60).Draw(t, "rounds"), false)
		for range 14 + 25 { // the cap may need a day
			w.play(w.observation(machine.VerdictUp, true, true), false)
			w.now = w.now.Add(time.Hour)
		}
		if s := w.load(); w.order != event.OrderProxy || s.Episode != nil {
			t.Fatalf("not restored: %s %s", w.order, w.disk)
		}
	})
}

// The clock may jump: it still ends degraded, unless the cap is reached.
func TestClockJumps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.rules.AutoDegrade = true
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			w.anything(1, false)
			w.now = w.now.Add(time.Duration(rapid.IntRange(-100, 100).Draw(t, "hours")) * time.Hour)
		}
		for range 2 {
			w.play(w.observation(machine.VerdictDown, true, true), false)
			w.now = w.now.Add(5 * time.Minute)
		}
		if w.order != event.OrderDirect {
			// Swaps that were clamped to now count for a whole day again.
			if s := w.load(); s.Own()+1 <= w.rules.MaxSwapsPerDay {
				t.Fatalf("not degraded: %s", w.disk)
			}
		}
	})
}
