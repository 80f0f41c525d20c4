package proxy

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"karui/proxy/rules"
)

// pardons remembers which originals operators let out of quarantine, and when.
type pardons struct {
	mu sync.Mutex
	at map[rules.Digest]time.Time
}

// maxPardons bounds what is remembered; the rest is tried again a day after.
const maxPardons = 10_000

func (p *pardons) since(d rules.Digest, noted time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, found := p.at[d]
	return found && at.After(noted)
}

// grant remembers a pardon. One that is older than any marker that it could be about
// is forgotten.
func (p *pardons) grant(d rules.Digest, at, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for other, granted := range p.at {
		if len(p.at) >= maxPardons || now.Sub(granted) > punishment {
			delete(p.at, other)
		}
	}
	p.at[d] = at
}

// Pardon lets originals with the SHA-256 be tried again: they were let out of
// quarantine. It holds for what is noted in the cache until now, whether the pool of
// workers still knows of it or not.
func (p *Proxy) Pardon(digest [32]byte) {
	now := p.now()
	p.pardoned.grant(rules.Digest(digest[:16]), now, now)
}

// Pardoned is one original that was let out of quarantine.
type Pardoned struct {
	// Digest is the first half of the SHA-256.
	Digest [16]byte
	At     time.Time
}

// Pardons gives what Pardon was told within the last day, ordered by the digest, so
// that it can be kept over a restart as the cache's notes are.
func (p *Proxy) Pardons() []Pardoned {
	now := p.now()
	p.pardoned.mu.Lock()
	defer p.pardoned.mu.Unlock()
	all := make([]Pardoned, 0, len(p.pardoned.at))
	for d, at := range p.pardoned.at {
		if now.Sub(at) <= punishment {
			all = append(all, Pardoned{Digest: d, At: at})
		}
	}
	slices.SortFunc(all, func(a, b Pardoned) int { return bytes.Compare(a.Digest[:], b.Digest[:]) })
	return all
}

// RestorePardons adds what Pardons of an earlier process gave, without what is over
// by now or lies in the future.
func (p *Proxy) RestorePardons(all []Pardoned) {
	now := p.now()
	for _, one := range all {
		if !one.At.After(now) && now.Sub(one.At) <= punishment {
			p.pardoned.grant(one.Digest, one.At, now)
		}
	}
}
