package retry

// Minute is the longest span of a Window, in seconds.
const Minute = 60

// Counts are tries that ended within some span of time.
type Counts struct {
	Tries, Unavailable, TimedOut, Overloaded int
}

// Failed counts the tries that brought no answer to hand on.
func (c Counts) Failed() int { return c.Unavailable + c.TimedOut + c.Overloaded }

// Add gives the sum of both.
func (c Counts) Add(d Counts) Counts {
	return Counts{c.Tries + d.Tries, c.Unavailable + d.Unavailable, c.TimedOut + d.TimedOut, c.Overloaded + d.Overloaded}
}

func (c Counts) less(d Counts) Counts {
	return Counts{c.Tries - d.Tries, c.Unavailable - d.Unavailable, c.TimedOut - d.TimedOut, c.Overloaded - d.Overloaded}
}

func (c *Counts) count(f Fate) {
	c.Tries++
	switch f {
	case Unavailable:
		c.Unavailable++
	case TimedOut:
		c.TimedOut++
	case Overloaded:
		c.Overloaded++
	}
}

// Window counts tries second by second over the last minute. The zero value is
// empty. Seconds are of any clock that does not run backwards.
type Window struct {
	seconds [Minute]Counts
	minute  Counts // all of them, which is asked for the most
	last    int64  // the second that was written last
	begun   bool
}

// Add counts a try that ended in the second now. Void is not counted.
func (w *Window) Add(now int64, f Fate) {
	if f == Void {
		return
	}
	w.advance(now)
	w.seconds[index(w.last)].count(f)
	w.minute.count(f)
}

// Sum counts the tries of the last span seconds, the current one included.
func (w *Window) Sum(now int64, span int) Counts {
	w.advance(now)
	if span >= Minute {
		return w.minute
	}
	var sum Counts
	for i := range int64(span) {
		sum = sum.Add(w.seconds[index(w.last-i)])
	}
	return sum
}

// Keep forgets all but the last span seconds.
func (w *Window) Keep(now int64, span int) {
	w.advance(now)
	for i := int64(span); i < Minute; i++ {
		w.forget(w.last - i)
	}
}

// advance empties the seconds that nothing happened in.
func (w *Window) advance(now int64) {
	if !w.begun {
		w.last, w.begun = now, true
		return
	}
	if now-w.last >= Minute {
		w.seconds, w.minute, w.last = [Minute]Counts{}, Counts{}, now
	}
	for w.last < now {
		w.last++
		w.forget(w.last)
	}
}

// forget empties the place of a second.
func (w *Window) forget(second int64) {
	one := &w.seconds[index(second)]
	w.minute = w.minute.less(*one)
	*one = Counts{}
}

func index(second int64) int64 { return ((second % Minute) + Minute) % Minute }
