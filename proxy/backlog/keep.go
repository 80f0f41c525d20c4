package backlog

import (
	"context"
	"math"
	"time"
)

// Flush writes what is new to the journal. While that fails, it is tried again every
// ten seconds, and in between the last error is given again.
func (b *Backlog) Flush() error {
	b.fileMu.Lock()
	defer b.fileMu.Unlock()
	j := &b.journal
	now := b.now()
	out, whole := b.due(now)
	switch {
	case len(out) == 0:
		return j.err
	case whole:
		j.err = j.replace(out)
	default:
		j.err = j.append(out)
	}
	if j.err != nil {
		j.retry = now.Add(repairAfter)
	}
	return j.err
}

// due gives what is to be written now, and whether that is the whole list. The file's
// lock is held.
func (b *Backlog) due(now time.Time) (out []byte, whole bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take()
	// What cannot be written now is part of the whole list that is written later.
	defer func() {
		for _, it := range b.dirty {
			it.dirty, it.written = false, float32(it.heat)
		}
		clear(b.dirty)
		b.dirty = b.dirty[:0]
	}()
	j := &b.journal
	if j.name == "" || j.err != nil && now.Before(j.retry) {
		return nil, false
	}
	if j.file == nil && j.err == nil && len(b.dirty) == 0 {
		return nil, false // a list that never was needs no file
	}
	if j.file == nil || j.size > 2*b.written()+slack {
		return b.snapshot(), true
	}
	for _, it := range b.dirty {
		out = appendRecord(out, it.record())
	}
	return out, false
}

// written is about what the list takes in a journal, in bytes: recordFrame is what a
// record has besides the entry's key.
func (b *Backlog) written() int64 {
	return b.queue.bytes - int64(b.queue.entries)*(overhead-recordFrame)
}

// snapshot gives the whole list as a journal. The lock is held.
func (b *Backlog) snapshot() []byte {
	out := make([]byte, 0, b.queue.bytes/2+int64(len(magic)))
	out = append(out, magic...)
	for _, s := range b.queue.sites {
		for _, it := range s.items {
			out = appendRecord(out, it.record())
		}
	}
	return out
}

// Keep writes the journal once a second until ctx ends, and then for the last time.
// What cannot be written is logged once until it works again.
func (b *Backlog) Keep(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	failing := false
	flush := func() {
		err := b.Flush()
		if err != nil && !failing {
			b.log.Warn("conversions that are to be made later are remembered only until the next restart", "error", err)
		}
		failing = err != nil
	}
	for {
		select {
		case <-tick.C:
			flush()
		case <-ctx.Done():
			flush()
			return
		}
	}
}

// Close ends the use of the journal; what was not flushed is lost. Call it when Keep
// and Work have returned.
func (b *Backlog) Close() {
	b.fileMu.Lock()
	defer b.fileMu.Unlock()
	b.journal.drop()
}

// restore takes in what a journal says, as far as it makes sense at this time.
func (q *queue) restore(r record, now time.Time) {
	if s := q.sites[r.site]; s != nil {
		if it := s.items[r.name]; it != nil {
			q.remove(it)
		}
	}
	if r.kind != recordPut || len(r.name) > q.limits.Key || int(r.tries) >= q.limits.Tries {
		return
	}
	// What is from the future is from a clock that was wrong.
	present := now.Unix()
	it := &item{
		name: r.name, first: min(r.first, present), last: min(r.last, present),
		after: min(r.after, present+int64(q.limits.Age/time.Second)), tries: r.tries,
		heat: min(max(r.heat, 0), heatAt(now, math.MaxUint32)),
	}
	it.written = float32(it.heat)
	if q.old(it, now) {
		return
	}
	q.insert(r.site, it, now)
	if q.entries > 2*q.limits.Entries || q.bytes > 2*q.limits.Bytes {
		q.shrink() // records of entries that leave later may follow
	}
}
