package convert

import (
	"encoding/binary"
	"testing"
	"time"

	"karui/convert/header"
)

func digestOf(n int) Digest {
	var d Digest
	binary.BigEndian.PutUint64(d[:], uint64(n))
	return d
}

func TestQuarantine(t *testing.T) {
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	q := newQuarantine(func() time.Time { return now })
	a, b := digestOf(1), digestOf(2)
	if _, held := q.check(a); held {
		t.Error("held before anything happened")
	}
	if !q.strike(a, CauseCrash) {
		t.Error("a crash does not count at once")
	}
	if q.strike(b, CauseTimeout) {
		t.Error("a first timeout counts")
	}
	if _, held := q.check(b); held {
		t.Error("held after one timeout")
	}
	if !q.strike(b, CauseTimeout) {
		t.Error("a second timeout does not count")
	}
	if c := q.counts(); c[CauseCrash] != 1 || c[CauseTimeout] != 1 {
		t.Errorf("counts: %v", c)
	}

	fresh := newQuarantine(func() time.Time { return now })
	kept := q.snapshot()
	forged := append(kept, Quarantine{Digest: digestOf(3), Cause: CauseCrash, Until: now.Add(1000 * time.Hour), Strikes: 1})
	fresh.restore(forged)
	if item, held := fresh.check(a); !held || item.Cause != CauseCrash {
		t.Errorf("after a restart: %+v", item)
	}
	if _, held := fresh.check(digestOf(3)); held {
		t.Error("an entry of a thousand hours was taken over")
	}

	now = now.Add(quarantineFor)
	if _, held := q.check(a); held {
		t.Error("held for more than a day")
	}
	if len(q.snapshot()) != 0 || len(q.counts()) != 0 {
		t.Error("what is over still counts")
	}
	if q.strike(b, CauseTimeout) {
		t.Error("a timeout a day later is a second one")
	}
	if !q.release(b) || q.release(b) {
		t.Error("release does not say whether it was there")
	}
}

func TestQuarantineIsBounded(t *testing.T) {
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	q := newQuarantine(func() time.Time { return now })
	for i := range quarantineMost + 500 {
		now = now.Add(time.Millisecond)
		q.strike(digestOf(i), CauseCrash)
		if len(q.items) > quarantineMost {
			t.Fatalf("%d entries", len(q.items))
		}
	}
	if _, held := q.check(digestOf(quarantineMost + 499)); !held {
		t.Error("the newest one went")
	}
	if _, held := q.check(digestOf(0)); held {
		t.Error("the oldest one stayed")
	}
}

func TestUsage(t *testing.T) {
	u, err := parseStat([]byte("12 (a ) b (c) R 1 12 12 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 5 0 100 1000000 256 18446744073709551615 0"))
	if err != nil || u.cpu != 2*time.Second || u.rss != 256*4096 {
		t.Errorf("%+v, %v", u, err)
	}
	for _, s := range []string{"", "12 (a", "12 (a) R 1 2 3", "12 (a) R 1 12 12 0 -1 4194304 100 0 0 0 x 50 0 0 20 0 5 0 100 1000000 256"} {
		if _, err := parseStat([]byte(s)); err == nil {
			t.Errorf("%q passes", s)
		}
	}
	if n, err := parseVmData([]byte("Name:\tx\nVmSize:\t 5 kB\nVmData:\t  123 kB\n")); err != nil || n != 123<<10 {
		t.Errorf("%d, %v", n, err)
	}
	for _, s := range []string{"", "VmData: 1 kB", "\nVmData: x kB", "\nVmData: 1 MB"} {
		if _, err := parseVmData([]byte(s)); err == nil {
			t.Errorf("%q passes", s)
		}
	}
}

func TestTally(t *testing.T) {
	now := time.Unix(0, 0)
	c := newTally(func() time.Time { return now })
	a, b := &request{source: make([]byte, 60)}, &request{source: make([]byte, 60)}
	one, small := &lane{class: Fast, most: 1, mostBytes: 1000}, &lane{class: Fast, most: 10, mostBytes: 100}
	waits := func(l *lane, r *request) bool { _, ok := c.wait(l, r); return ok }
	if !waits(one, a) || waits(one, b) || waits(small, b) {
		t.Error("what waits is not bounded in number and in bytes")
	}
	slow := &request{source: make([]byte, 60), job: job{Plan: Plan{Target: header.AVIF}}}
	if !waits(&lane{class: Slow, most: 1, mostBytes: 100}, slow) {
		t.Error("what waits for one class fills the other")
	}
	c.waited(slow)
	now = now.Add(time.Second)
	if s := c.stats(); s.Waiting != 1 || s.WaitingBytes != 60 || s.OldestWait != time.Second || s.Slow != (Load{}) {
		t.Errorf("%+v", s)
	}
	c.waited(a)
	c.begin(a)
	now = now.Add(3 * time.Second)
	if s := c.stats(); s.Busy != 1 || s.Waiting != 0 || s.BusyTime != 3*time.Second {
		t.Errorf("running: %+v", s)
	}
	c.end(a, 2*time.Second)
	now = now.Add(time.Hour)
	c.decided(Result{Body: make([]byte, 3), Decision: Decide(Converted, "")}, 10)
	c.decided(Result{Decision: Decide(Broken, "")}, 100)
	s := c.stats()
	if s.Busy != 0 || s.BusyTime != 3*time.Second || s.CPU != 2*time.Second || s.BytesIn != 10 || s.BytesOut != 3 || s.Decisions[Broken] != 1 {
		t.Errorf("done: %+v", s)
	}
}
