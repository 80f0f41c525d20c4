package dial

import "time"

// Load is how busy workers of one class are.
type Load struct {
	// Workers is the number of conversions that may run at a time.
	Workers int
	// BusyTime is the time that workers have spent on conversions since the start.
	BusyTime time.Duration
	// Wait is how long the longest waiting conversion has waited.
	Wait time.Duration
}

// Times and shares of the automatic.
const (
	// over is the time over which the share of busy worker time is taken.
	over = 10 * time.Second
	// busy is the share that is taken for all of it: between two conversions a worker
	// is not busy, for as long as it takes to hand pictures over.
	busy = 0.95
	// calm is the share below which a level may be taken back, after calmFor.
	calm    = 0.60
	calmFor = 60 * time.Second
	// again is the time between two levels taken back while it stays calm.
	again = 20 * time.Second
	// idle is the share below which work that can wait is begun.
	idle = 0.50
)

// seen is the load at a time.
type seen struct {
	at   time.Time
	busy time.Duration
}

// class follows the load of the workers of one class.
type class struct {
	seen    []seen // within the last `over`, oldest first, and one before
	workers int
	wait    time.Duration
}

func (c *class) observe(now time.Time, l Load) {
	c.workers, c.wait = l.Workers, l.Wait
	if n := len(c.seen); n > 0 {
		last := c.seen[n-1]
		if l.BusyTime < last.busy || now.Before(last.at) {
			c.seen = c.seen[:0] // another pool, or a clock that was set back
		} else if now.Equal(last.at) {
			return
		}
	}
	c.seen = append(c.seen, seen{now, l.BusyTime})
	for len(c.seen) > 2 && !c.seen[1].at.After(now.Add(-over)) {
		c.seen = append(c.seen[:0], c.seen[1:]...)
	}
}

// share gives the share of busy worker time, 0 to 1; known is whether it was looked
// at for long enough.
func (c *class) share() (share float64, known bool) {
	if len(c.seen) < 2 || c.workers <= 0 {
		return 0, false
	}
	first, last := c.seen[0], c.seen[len(c.seen)-1]
	span := last.at.Sub(first.at)
	return float64(last.busy-first.busy) / (float64(span) * float64(c.workers)), span >= over-over/20
}

// restart forgets what was before a change of the level.
func (c *class) restart() {
	if n := len(c.seen); n > 1 {
		c.seen = append(c.seen[:0], c.seen[n-1])
	}
}

// automatic moves by the load: up one level when the workers of a class are busy all
// the time and something waits longer than the limit, down one when it has been calm
// for a while.
type automatic struct {
	classes [2]class
	level   int
	calm    time.Time // since when it is calm, zero while it is not
	moved   time.Time // the last step down
}

// step takes in the load, and moves. From is the level in force, which may be above
// the automatic's own by the schedule.
func (a *automatic) step(now time.Time, loads [2]Load, wait time.Duration, from, top int) (why cause, moved bool) {
	pressed, quiet := false, true
	for i := range a.classes {
		c := &a.classes[i]
		c.observe(now, loads[i])
		share, known := c.share()
		pressed = pressed || known && share >= busy && c.wait > wait
		quiet = quiet && (share < calm || c.workers == 0)
	}
	switch {
	case !quiet:
		a.calm = time.Time{}
	case a.calm.IsZero():
		a.calm = now
	}
	switch {
	case pressed && from < top:
		a.level = from + 1
		a.restart()
		return byLoad, true
	case a.level > 0 && !a.calm.IsZero() && now.Sub(a.calm) >= calmFor && now.Sub(a.moved) >= again:
		a.level--
		a.moved = now
		return byCalm, true
	}
	return "", false
}

// restart lets the next judgement begin with the present.
func (a *automatic) restart() {
	for i := range a.classes {
		a.classes[i].restart()
	}
	a.calm = time.Time{}
}

// idle tells whether the workers have time for what can wait.
func (a *automatic) idle() bool {
	some := false
	for i := range a.classes {
		share, known := a.classes[i].share()
		if a.classes[i].workers > 0 && (!known || share >= idle || a.classes[i].wait > 0) {
			return false
		}
		some = some || a.classes[i].workers > 0
	}
	return some
}
