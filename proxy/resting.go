package proxy

import (
	"sync"
	"time"

	"karui/cache"
)

// maxResting bounds the keys that are remembered; what does not fit is tried
// again too early, which costs work and breaks nothing.
const maxResting = 10_000

// resting remembers what failed a moment ago and is not worth trying again yet:
// a refresh that the origin did not answer, a conversion that found no worker.
// Without it every viewer of a stale image would set off a request to an origin
// that is down.
type resting struct {
	now   func() time.Time
	mu    sync.Mutex
	until map[cache.Key]time.Time
}

func newResting(now func() time.Time) *resting {
	return &resting{now: now, until: map[cache.Key]time.Time{}}
}

// rest leaves the key alone for a while.
func (r *resting) rest(key cache.Key, d time.Duration) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.until) >= maxResting {
		for k, t := range r.until {
			if !t.After(now) {
				delete(r.until, k)
			}
		}
		if len(r.until) >= maxResting {
			return
		}
	}
	r.until[key] = now.Add(d)
}

// forget lets go of the keys that match.
func (r *resting) forget(match func(cache.Key) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.until {
		if match(key) {
			delete(r.until, key)
		}
	}
}

// rests tells whether the key is to be left alone.
func (r *resting) rests(key cache.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, found := r.until[key]
	if !found {
		return false
	}
	if until.After(r.now()) {
		return true
	}
	delete(r.until, key)
	return false
}
