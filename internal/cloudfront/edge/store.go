package edge

import (
	"container/list"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// object is one answer as it is kept. It never changes; a refreshed one takes its
// place, with the same body.
type object struct {
	key          string
	distribution string
	target       string // path and keyed query, as invalidations name them
	status       int
	header       http.Header // of the origin, without hop-by-hop fields
	body         *spool
	length       int64 // from Content-Length; -1 without one
	member       string
	stored       time.Time
	age          time.Duration // that it had when it came
	expires      time.Time
	lifetime     lifetime
	quiet        time.Time // until then an expired one goes out without a question
}

func (o *object) failed() bool { return o.status >= http.StatusBadRequest }

// fresh tells whether it goes out as it is.
func (o *object) fresh(now time.Time) bool { return now.Before(o.expires) }

// whileRefreshing tells whether it goes out although it expired, and is
// refreshed behind the viewer's back.
func (o *object) whileRefreshing(now time.Time) bool {
	return !o.failed() && now.Before(o.expires.Add(o.lifetime.swr))
}

// onError tells whether an expired one goes out instead of an error. Documented:
// any does; stale-if-error bounds it, and 0 forbids it.
func (o *object) onError(now time.Time) bool {
	return !o.failed() && (o.lifetime.sie < 0 || now.Before(o.expires.Add(o.lifetime.sie)))
}

// weight is what an object takes of the budget beside its body.
func (o *object) weight() int { return 2048 + len(o.key) + len(o.target) }

// store keeps whole answers, the least recently used ones going first, within a
// budget of bytes that bodies still coming in share.
//
// Locks: a spool that grows asks take under its own lock, so mu may be taken
// under the lock of a growing spool, and the lock of a spool in the store under
// mu; a spool in the store never grows.
type store struct {
	budget int64
	used   atomic.Int64

	mu     sync.Mutex
	byKey  map[string]*list.Element
	recent *list.List // of *object, most recent first
	purges []purge    // the last ones, oldest first
	purged uint64     // how many there ever were
}

type purge struct {
	distribution string
	paths        []string
}

// maxPurges is how many invalidations are remembered for answers on their way.
const maxPurges = 1000

func newStore(budget int64) *store {
	return &store{budget: budget, byKey: make(map[string]*list.Element), recent: list.New()}
}

// take reserves bytes, making room if it must and can.
func (s *store) take(n int) bool {
	for {
		used := s.used.Load()
		if used+int64(n) <= s.budget {
			if s.used.CompareAndSwap(used, used+int64(n)) {
				return true
			}
			continue
		}
		if !s.evict() {
			return false
		}
	}
}

func (s *store) give(n int) { s.used.Add(int64(-n)) }

func (s *store) evict() bool {
	s.mu.Lock()
	last := s.recent.Back()
	if last == nil {
		s.mu.Unlock()
		return false
	}
	o := s.remove(last)
	s.mu.Unlock()
	o.body.drop()
	return true
}

// remove takes an element out; callers hold mu and drop the body.
func (s *store) remove(e *list.Element) *object {
	o := s.recent.Remove(e).(*object)
	delete(s.byKey, o.key)
	s.give(o.weight())
	return o
}

func (s *store) get(key string) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byKey[key]
	if e == nil {
		return nil
	}
	s.recent.MoveToFront(e)
	return e.Value.(*object)
}

// position is given to put, which refuses what an invalidation since then covers.
func (s *store) position() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.purged
}

// put keeps an object whose body is whole, in the place of the one before.
func (s *store) put(o *object, since uint64) bool {
	if !s.take(o.weight()) {
		return false
	}
	s.mu.Lock()
	if s.covered(o, since) {
		s.mu.Unlock()
		s.give(o.weight())
		return false
	}
	var old *object
	if e := s.byKey[o.key]; e != nil {
		old = s.remove(e)
	}
	s.byKey[o.key] = s.recent.PushFront(o)
	s.mu.Unlock()
	o.body.keep()
	if old != nil && old.body != o.body {
		old.body.drop()
	}
	return true
}

// replace changes an object's times or header, if it is still there.
func (s *store) replace(old, o *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byKey[old.key]; e != nil && e.Value.(*object) == old {
		e.Value = o
	}
}

func (s *store) covered(o *object, since uint64) bool {
	missed := s.purged - since
	if missed > uint64(len(s.purges)) {
		return true // forgotten: rather not kept than wrongly
	}
	for _, p := range s.purges[uint64(len(s.purges))-missed:] {
		if p.covers(o.distribution, o.target) {
			return true
		}
	}
	return false
}

func (p purge) covers(distribution, target string) bool {
	if p.distribution != distribution {
		return false
	}
	for _, path := range p.paths {
		if invalidated(path, target) {
			return true
		}
	}
	return false
}

// invalidate drops what an invalidation covers, all variants by header alike.
func (s *store) invalidate(p purge) {
	var dropped []*object
	s.mu.Lock()
	for _, e := range s.byKey {
		if o := e.Value.(*object); p.covers(o.distribution, o.target) {
			dropped = append(dropped, s.remove(e))
		}
	}
	s.purges = append(s.purges, p)
	if len(s.purges) > maxPurges {
		s.purges = s.purges[1:]
	}
	s.purged++
	s.mu.Unlock()
	for _, o := range dropped {
		o.body.drop()
	}
}

func (s *store) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recent.Len()
}
