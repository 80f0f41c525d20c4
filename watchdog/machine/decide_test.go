package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"karui/watchdog/event"
	"karui/watchdog/machine"
)

const (
	proxy  = event.OrderProxy
	direct = event.OrderDirect
)

var rules = machine.Rules{AutoDegrade: true, AutoRestore: true, RestoreAfter: 1, MaxSwapsPerDay: 12}

// play is a site whose distribution, network and people do as a script says.
type play struct {
	now   time.Time
	rules machine.Rules
	state machine.State
	order event.Order // at the distribution
	fail  string      // how swaps fail
	round int
}

func begin() *play {
	return &play{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), rules: rules, order: proxy}
}

// step runs one round and says what was done: "swap:direct", "degrade", ...
// Words: up, down, gone (inconclusive), silent (down, and the origin too),
// unread (a suffix: the order cannot be read).
func (p *play) step(word string) string {
	p.round++
	verdicts := map[string]machine.Verdict{"up": machine.VerdictUp, "down": machine.VerdictDown, "silent": machine.VerdictDown, "gone": machine.Inconclusive}
	name, unread := strings.CutSuffix(word, "-unread")
	o := machine.Observation{
		ID: fmt.Sprintf("r%d", p.round), At: p.now, Began: p.now.Add(-20 * time.Second), Verdict: verdicts[name], OriginLives: name == "down",
		Read: !unread, Order: p.order,
	}
	if unread {
		o.Order, o.Unread = event.OrderUnknown, "denied"
	}
	var plan machine.Plan
	p.state, plan = machine.Decide(p.state, o, p.rules)
	done := names(plan.Tell)
	if plan.Swap != event.OrderUnknown {
		done = append(done, "swap:"+string(plan.Swap))
		done = append(done, p.finish()...)
	}
	p.now = p.now.Add(5 * time.Minute)
	return strings.Join(done, " ")
}

func (p *play) finish() []string {
	to := p.state.Intent.To
	out := machine.Outcome{At: p.now, Failure: strings.TrimPrefix(strings.TrimPrefix(p.fail, "lost:"), "unsure:"), Unsure: strings.Contains(p.fail, ":")}
	if p.fail == "" || strings.HasPrefix(p.fail, "lost:") {
		out.Changed = p.order != to
		p.order = to
	}
	s, told := machine.Finish(p.state, out)
	p.state = s
	return names(told)
}

func names(notices []machine.Notice) []string {
	var out []string
	for _, n := range notices {
		name := string(n.Kind)
		if n.Want != event.OrderUnknown {
			name += ":" + string(n.Want)
		}
		if n.FirstSight {
			name += ":first"
		}
		out = append(out, name)
	}
	return out
}

func TestTable(t *testing.T) {
	manual := func(p *play) { p.rules.AutoDegrade, p.rules.AutoRestore = false, false }
	for name, test := range map[string]struct {
		with func(*play)
		// script holds "observation -> what is done"; "!proxy" is somebody else
		// setting the order, "+24h" time that passes, "fail=x" how swaps fail.
		script string
	}{
		"well":                     {nil, "up; up; up"},
		"down and back":            {nil, "up; down -> swap:direct degrade; down; up -> swap:proxy restore; up"},
		"down at the first look":   {nil, "down -> swap:direct degrade; down"},
		"own network gone":         {nil, "up; gone; gone; up"},
		"gone while down":          {nil, "down -> swap:direct degrade; gone; up -> swap:proxy restore"},
		"gone at the first look":   {nil, "gone; gone; up"},
		"origin silent":            {nil, "up; silent -> origin_silent; silent; down -> swap:direct degrade; silent; up -> swap:proxy restore"},
		"origin silent, again":     {nil, "silent -> origin_silent; up; silent -> origin_silent"},
		"silent, then well":        {nil, "up; silent -> origin_silent; up; up"},
		"manual both ways":         {manual, "down -> manual_awaited:direct; down; !direct; down -> drift; up -> manual_awaited:proxy; up; !proxy; up -> drift; up"},
		"manual degrade, silent":   {manual, "silent -> origin_silent; silent; down -> manual_awaited:direct; silent"},
		"manual degrade, recovers": {manual, "down -> manual_awaited:direct; up; down -> manual_awaited:direct"},
		"manual restore only":      {func(p *play) { p.rules.AutoRestore = false }, "down -> swap:direct degrade; up -> manual_awaited:proxy; up; down; up -> manual_awaited:proxy"},
		"restore_after 3":          {func(p *play) { p.rules.RestoreAfter = 3 }, "down -> swap:direct degrade; up; up; down; up; up; up -> swap:proxy restore"},
		"lost restore, then denied": {
			nil, "down -> swap:direct degrade; fail=lost:unreachable; up -> swap:proxy swap_failed:proxy; fail=denied; down-unread -> swap:direct swap_failed:direct;" +
				"fail=; down -> restore swap:direct degrade; down",
		},
		"gone does not count": {func(p *play) { p.rules.RestoreAfter = 2 }, "down -> swap:direct degrade; up; gone; up -> swap:proxy restore"},
		"flaps double the patience": {nil, "down -> swap:direct degrade; up -> swap:proxy restore; down -> swap:direct degrade; up; up -> swap:proxy restore;" +
			"down -> swap:direct degrade flapping; up; up; up; up -> swap:proxy restore; down -> swap:direct degrade; up; up; up; up; up; up; up; up -> swap:proxy restore"},
		"cap leaves it degraded": {
			func(p *play) { p.rules.MaxSwapsPerDay = 3 },
			"down -> swap:direct degrade; up -> swap:proxy restore; down -> swap:direct degrade; up; up -> capped:proxy; up; down; up; up; +24h; up -> swap:proxy restore",
		},
		"cap reached by people": {
			func(p *play) { p.rules.MaxSwapsPerDay = 2 },
			"down -> swap:direct degrade; up -> capped:proxy; !proxy; up -> drift; down -> swap:direct degrade; !proxy; up -> drift; down -> capped:direct; down; +24h; down -> swap:direct degrade",
		},
		"drift while up, not fought":   {nil, "up; !direct; up -> drift; up; up; down; up -> swap:proxy restore"},
		"drift while down, not fought": {nil, "down -> swap:direct degrade; !proxy; down -> drift; down; up; down -> swap:direct degrade"},
		"drift there and back":         {nil, "up; !direct; up -> drift; !proxy; up -> drift; down -> swap:direct degrade"},
		"drift with a change":          {nil, "down -> swap:direct degrade; up -> swap:proxy restore; !direct; down -> drift; up -> swap:proxy restore; up"},
		"drift unseen":                 {nil, "up; !direct; up-unread; !proxy; up; down -> swap:direct degrade"},
		"degraded at the first look":   {nil, "!direct; up -> drift:first; up; down; up -> swap:proxy restore"},
		"first look, down":             {nil, "!direct; down -> drift:first; down; up -> swap:proxy restore"},
		"group is wrong":               {nil, "up; !; up -> drift; up; fail=refused; down -> swap:direct swap_failed:direct; down -> swap:direct; fail=; !proxy; down -> drift swap:direct degrade"},
		"group wrong from the start":   {nil, "!; up -> drift:first; up; !proxy; up -> drift; down -> swap:direct degrade"},
		"reminder":                     {nil, "down -> swap:direct degrade; +23h; down; +1h; down -> reminder; down; +24h; down -> reminder; up -> swap:proxy restore; +24h; up"},
		"reminder of drift":            {nil, "up; !direct; up -> drift; +24h; up -> reminder; up"},
		"none while gone":              {nil, "down -> swap:direct degrade; +30h; gone; down -> reminder"},
		"failed swap is told once":     {nil, "fail=denied; down -> swap:direct swap_failed:direct; down -> swap:direct; fail=throttled; down -> swap:direct swap_failed:direct; fail=denied; down -> swap:direct; fail=; down -> swap:direct degrade"},
		"failed restore":               {nil, "down -> swap:direct degrade; fail=denied; up -> swap:proxy swap_failed:proxy; up -> swap:proxy; down; up -> swap:proxy swap_failed:proxy; fail=; up -> swap:proxy restore"},
		"answer lost, swap done":       {nil, "fail=lost:unreachable; down -> swap:direct swap_failed:direct; down -> degrade; down; fail=; up -> swap:proxy restore"},
		"answer lost, not done":        {nil, "fail=unsure:unreachable; down -> swap:direct swap_failed:direct; fail=; down -> swap:direct degrade"},
		"lost and unread":              {nil, "fail=lost:unreachable; down -> swap:direct swap_failed:direct; fail=; down-unread -> swap:direct degrade; down"},
		"lost restore, down, unread":   {nil, "down -> swap:direct degrade; fail=lost:timeout; up -> swap:proxy swap_failed:proxy; fail=; down-unread -> swap:direct degrade; down"},
		"unread does not stop it":      {nil, "up; down-unread -> swap:direct degrade; down-unread; up-unread -> swap_failed:proxy; up -> swap:proxy restore"},
		"restore held up, unread": {
			nil, "down -> swap:direct degrade; up-unread -> swap_failed:proxy; up-unread; fail=denied; up -> swap:proxy; down-unread; up-unread -> swap_failed:proxy; +24h;" +
				"up-unread -> reminder; up-unread; fail=; up -> swap:proxy restore",
		},
		"unread before it is time":     {func(p *play) { p.rules.RestoreAfter = 3 }, "down -> swap:direct degrade; up-unread; up-unread; up-unread -> swap_failed:proxy; up -> swap:proxy restore"},
		"unread, and left to a person": {manual, "down -> manual_awaited:direct; !direct; down -> drift; up-unread -> manual_awaited:proxy; up-unread; up; !proxy; up -> drift"},
		"unread, not the watchdog's":   {nil, "up; !direct; up -> drift; up-unread; up-unread; up"},
		"reminder of a failed restore": {nil, "down -> swap:direct degrade; fail=denied; up -> swap:proxy swap_failed:proxy; +24h; up -> swap:proxy reminder; up -> swap:proxy; +24h; up -> swap:proxy reminder; fail=; up -> swap:proxy restore"},
		"unread, and others were first": {
			nil, "up; !direct; down-unread -> swap:direct drift; down; up -> swap:proxy restore",
		},
		"clock back a year": {nil, "down -> swap:direct degrade; -8760h; down; up -> swap:proxy restore; down -> swap:direct degrade; +24h; down -> reminder; up -> swap:proxy restore"},
		"clock ahead":       {nil, "down -> swap:direct degrade; +8760h; down -> reminder; -8760h; down; up -> swap:proxy restore"},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin()
			if test.with != nil {
				test.with(p)
			}
			for line := range strings.SplitSeq(test.script, ";") {
				line = strings.TrimSpace(line)
				if order, others := strings.CutPrefix(line, "!"); others {
					p.order = event.Order(order)
					continue
				}
				if fail, sets := strings.CutPrefix(line, "fail="); sets {
					p.fail = fail
					continue
				}
				if d, err := time.ParseDuration(line); err == nil {
					p.now = p.now.Add(d)
					continue
				}
				word, want, _ := strings.Cut(line, " -> ")
				if got := p.step(strings.TrimSpace(word)); got != want {
					t.Fatalf("round %d, %s: %q, want %q\nstate %+v", p.round, word, got, want, p.state)
				}
			}
		})
	}
}

func TestNoticesSayWhatTheyBelongTo(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o := machine.Observation{ID: "one", At: at, Began: at.Add(-30 * time.Second), Verdict: machine.VerdictDown, OriginLives: true, Read: true, Order: proxy}
	s, plan := machine.Decide(machine.State{}, o, rules)
	if plan.Swap != direct || s.Intent == nil || s.Intent.ID != "one-degrade" || !s.Since.Equal(o.Began) {
		t.Fatalf("%+v %+v", plan, s)
	}
	s, told := machine.Finish(s, machine.Outcome{At: at, Changed: true})
	if len(told) != 1 || told[0].ID != "one-degrade" || told[0].Before != proxy || told[0].After != direct || told[0].Actor != event.ActorAuto {
		t.Fatalf("%+v", told)
	}
	o = machine.Observation{ID: "two", At: at.Add(5 * time.Minute), Verdict: machine.VerdictUp, Read: true, Order: direct}
	s, _ = machine.Decide(s, o, rules)
	s, told = machine.Finish(s, machine.Outcome{At: o.At, Changed: true})
	if len(told) != 1 || told[0].ID != "two-restore" || told[0].ReplyTo != "one-degrade" || !told[0].DegradedSince.Equal(at) {
		t.Fatalf("%+v", told)
	}
	if s.Episode != nil || s.Intent != nil || s.Own() != 2 {
		t.Errorf("%+v", s)
	}
}

// A process that is killed between the swap and its mail leaves an intent.
func TestKilledBetweenSwapAndMail(t *testing.T) {
	p := begin()
	p.step("up")
	o := machine.Observation{ID: "last", At: p.now, Verdict: machine.VerdictDown, OriginLives: true, Read: true, Order: proxy}
	p.state, _ = machine.Decide(p.state, o, rules)
	for name, test := range map[string]struct {
		order event.Order
		word  string
		want  string
	}{
		"swapped":               {direct, "down", "degrade"},
		"swapped, well by now":  {direct, "up", "degrade swap:proxy restore"},
		"not swapped":           {proxy, "down", "swap:direct degrade"},
		"not swapped, well":     {proxy, "up", ""},
		"own network gone":      {direct, "gone", ""},
		"swapped but not known": {direct, "down-unread", "swap:direct degrade"},
	} {
		t.Run(name, func(t *testing.T) {
			q := *p
			q.order = test.order
			if got := q.step(test.word); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			q.rules.AutoRestore = false
			if got := q.step("down"); name != "own network gone" && strings.HasPrefix(test.word, "down") && got != "" {
				t.Errorf("told again: %q", got)
			}
		})
	}
}

func TestPeople(t *testing.T) {
	by := func(p *play, to event.Order) string {
		p.state.Intent = &machine.Intent{ID: "person", To: to, At: p.now, By: event.ActorPerson, Person: "aki"}
		return strings.Join(p.finish(), " ")
	}
	expect := func(t *testing.T, got, want string) {
		t.Helper()
		if got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	t.Run("degraded for maintenance is left alone", func(t *testing.T) {
		p := begin()
		p.step("up")
		expect(t, by(p, direct), "degrade")
		expect(t, p.step("up"), "")
		expect(t, p.step("up"), "")
		expect(t, p.step("down"), "")
		expect(t, p.step("up"), "swap:proxy restore")
	})
	t.Run("before the first round", func(t *testing.T) {
		p := begin()
		expect(t, by(p, direct), "degrade")
		expect(t, p.step("up"), "")
	})
	t.Run("as asked for by a mail", func(t *testing.T) {
		p := begin()
		p.rules.AutoDegrade = false
		expect(t, p.step("down"), "manual_awaited:direct")
		expect(t, by(p, direct), "degrade")
		expect(t, p.step("down"), "")
		expect(t, p.step("up"), "swap:proxy restore")
	})
	t.Run("restored against advice", func(t *testing.T) {
		p := begin()
		expect(t, p.step("down"), "swap:direct degrade")
		expect(t, by(p, proxy), "restore")
		expect(t, p.step("down"), "")
		expect(t, p.step("up"), "")
		expect(t, p.step("down"), "swap:direct degrade")
	})
	t.Run("nothing to do is not told", func(t *testing.T) {
		p := begin()
		p.step("up")
		expect(t, by(p, proxy), "")
		expect(t, p.step("up"), "")
	})
	t.Run("a failure is told each time", func(t *testing.T) {
		p := begin()
		p.step("up")
		p.fail = "denied"
		expect(t, by(p, direct), "swap_failed:direct")
		expect(t, by(p, direct), "swap_failed:direct")
	})
	t.Run("their swaps do not use up the watchdog's", func(t *testing.T) {
		p := begin()
		p.rules.MaxSwapsPerDay = 3
		p.step("up")
		for range 5 {
			by(p, direct)
			by(p, proxy)
		}
		if p.state.Own() != 0 || len(p.state.Swaps) != 10 {
			t.Errorf("%+v", p.state)
		}
		expect(t, p.step("down"), "swap:direct degrade flapping")
	})
}

func TestKilledRehearsalIsPutRight(t *testing.T) {
	p := begin()
	p.step("up")
	p.state.Intent = &machine.Intent{ID: "rehearsal", To: direct, At: p.now, By: event.ActorRehearsal}
	p.order = direct
	if got := p.step("up"); got != "degrade swap:proxy restore" {
		t.Error(got)
	}
	p.state.Intent = &machine.Intent{ID: "rehearsal2", To: direct, At: p.now, By: event.ActorRehearsal}
	if got := p.step("up"); got != "" || p.state.Intent != nil {
		t.Error(got, p.state.Intent)
	}
}
