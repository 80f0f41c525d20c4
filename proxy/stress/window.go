package stress

// slots is how many parts the window is counted in.
const slots = 64

// sum is a number of things and what they amount to, in microseconds.
type sum struct{ n, total int64 }

func (s *sum) add(o sum) { s.n, s.total = s.n+o.n, s.total+o.total }
func (s *sum) sub(o sum) { s.n, s.total = s.n-o.n, s.total-o.total }

// window is what happened within the last slots x width microseconds: how long
// took what has ended, by its end, and what has begun and not ended, by its start.
// What waits for longer than the window is kept in one sum.
type window struct {
	width int64
	// cap bounds what one of them counts for.
	cap      int64
	slot     int64 // of the latest time
	done     [slots]sum
	begun    [slots]sum
	finished sum // of done
	older    sum // begun before the window
}

// advance makes room for the time, in microseconds. The other methods take no time
// before that of the slot.
func (w *window) advance(now int64) {
	next := now / w.width
	if next <= w.slot {
		return // also for a clock that stands still, or was set back
	}
	for i := max(w.slot+1, next-slots+1); i <= next; i++ {
		at := i % slots
		w.finished.sub(w.done[at])
		w.older.add(w.begun[at])
		w.done[at], w.begun[at] = sum{}, sum{}
	}
	w.slot = next
}

// begin counts in what starts now.
func (w *window) begin(now int64) {
	w.advance(now)
	w.begun[w.slot%slots].add(sum{1, now})
}

// leave counts out what started then.
func (w *window) leave(start, now int64) {
	w.advance(now)
	if i := start / w.width; i > w.slot-slots {
		w.begun[i%slots].sub(sum{1, start})
	} else {
		w.older.sub(sum{1, start})
	}
}

// end counts what started then as finished now.
func (w *window) end(start, now int64) {
	w.leave(start, now)
	took := sum{1, min(max(now-start, 0), w.cap)}
	w.done[w.slot%slots].add(took)
	w.finished.add(took)
}

// judged gives how many count and their mean: all that have finished, and those
// still waiting whose age exceeds the mean of the finished. Present are those that
// do not count yet among them.
func (w *window) judged(now int64) (n, mean, present int64) {
	now = max(now, w.slot*w.width)
	w.advance(now)
	all, most := w.finished, int64(0)
	if all.n > 0 {
		most = all.total / all.n
	}
	present = all.n
	count := func(waiting *sum) {
		present += waiting.n
		if age := waiting.n*now - waiting.total; age > most*waiting.n {
			all.n += waiting.n
			all.total += min(age, w.cap*waiting.n)
		}
	}
	count(&w.older)
	for i := range w.begun {
		if w.begun[i].n > 0 {
			count(&w.begun[i])
		}
	}
	if all.n == 0 {
		return 0, 0, present
	}
	return all.n, all.total / all.n, present
}

// without takes out what another window of the same width counted too.
func (w *window) without(o *window, now int64) {
	now = max(now, w.slot*w.width, o.slot*o.width)
	w.advance(now)
	o.advance(now)
	for i := range slots {
		w.done[i].sub(o.done[i])
		w.begun[i].sub(o.begun[i])
	}
	w.finished.sub(o.finished)
	w.older.sub(o.older)
}

// reset forgets everything.
func (w *window) reset() { *w = window{width: w.width, cap: w.cap, slot: w.slot} }
