package backlog

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// fill puts 100,000 entries of ten sites on a list.
func fill(q *queue) {
	for i := range 100_000 {
		q.add(key(fmt.Sprintf("site%d", i%10), fmt.Sprintf("/catalogue/2026/summer/%08d/picture-%d-large.jpg", i, i%7)), 1, true, epoch.Add(time.Duration(i)*time.Millisecond))
	}
}

// What the limit of bytes counts is no less than what entries take.
func TestMemoryOfAnEntry(t *testing.T) {
	var before, after runtime.MemStats
	q := newQueue(DefaultLimits())
	runtime.GC()
	runtime.ReadMemStats(&before)
	fill(q)
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / float64(q.entries)
	t.Logf("%.0f bytes an entry, %d counted", each, q.bytes/int64(q.entries))
	if q.entries != 100_000 || each > float64(q.bytes)/float64(q.entries) {
		t.Errorf("%d entries of %.0f bytes each, counted as %d", q.entries, each, q.bytes/int64(q.entries))
	}
	runtime.KeepAlive(q)
}

func BenchmarkNext(b *testing.B) {
	q := newQueue(DefaultLimits())
	fill(q)
	now := epoch.Add(time.Hour)
	for b.Loop() {
		it := q.next(now, anySite)
		q.rest(it, now, 0)
	}
}

func BenchmarkAddToAFullList(b *testing.B) {
	q := newQueue(DefaultLimits())
	fill(q)
	now := epoch.Add(time.Hour)
	for i := 0; b.Loop(); i++ {
		q.add(key("site3", fmt.Sprintf("/new/%d.jpg", i)), 1, true, now)
	}
}

func BenchmarkAsk(b *testing.B) {
	l := Open(Options{Limits: DefaultLimits()})
	k := key("shop", "/catalogue/2026/summer/00000001/picture-1-large.jpg")
	for b.Loop() {
		l.Ask(k, Missing)
	}
}

func BenchmarkOpen(b *testing.B) {
	file := b.TempDir() + "/backlog.journal"
	l := Open(Options{File: file, Limits: DefaultLimits(), Now: func() time.Time { return epoch }})
	fill(l.queue)
	if err := l.Flush(); err != nil {
		b.Fatal(err)
	}
	l.Close()
	for b.Loop() {
		again := Open(Options{File: file, Limits: DefaultLimits(), Now: func() time.Time { return epoch.Add(time.Hour) }})
		if again.queue.entries != 100_000 {
			b.Fatal(again.queue.entries)
		}
		again.Close()
	}
}

func BenchmarkSnapshot(b *testing.B) {
	l := Open(Options{Limits: DefaultLimits()})
	fill(l.queue)
	for b.Loop() {
		b.SetBytes(int64(len(l.snapshot())))
	}
}
