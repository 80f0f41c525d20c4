package cache

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"karui/cache/purge"
	"karui/internal/sabotage"
)

const (
	// maxPurges bounds how many purges are remembered, beside one for each site. More
	// become fewer that hit more: see purge.Limit.
	maxPurges = 10_000
	// PurgeHold is how long a purge is remembered at least, for what was fetched
	// before it and is still on its way to the cache. origin.total is an hour at most,
	// a conversion waits and takes less than another, in each of its two attempts.
	PurgeHold = 3 * time.Hour
	// purgeWait is how long Purge waits for the disks.
	purgeWait = 10 * time.Second
)

// errPurged is for a Put of what was fetched before a purge.
var errPurged = fmt.Errorf("%w: purged since it was fetched", ErrSuperseded)

// purges are those that hold. Whether an entry is hit follows from its key and from
// when its body was fetched, both of which lie in its file: so every Get can tell, and
// what is left on a disk cannot come back while the purge is remembered. It is
// remembered until every volume has been swept.
//
// Locks: saving before mu; mu is never held over a call to a file system, and no other
// lock is taken with it held.
type purges struct {
	// set are those that hit; what a Get asks. nil without any.
	set     atomic.Pointer[purge.Set]
	now     func() time.Time
	volumes volumes
	ghosts  []ghost // volumes that are not configured, and may return

	mu      sync.Mutex
	list    map[purgeID]*remembered
	cursors map[*volume]int // the folder that is swept next
	removed uint64          // files, by sweeps
}

// purgeID is what there is one purge of, the latest.
type purgeID struct{ site, prefix string }

func idOf(p purge.Purge) purgeID { return purgeID{p.Site, p.Prefix} }

// remembered is a purge and how far it has got.
type remembered struct {
	purge.Purge
	noted   time.Time       // since when it is known here
	swept   map[*volume]int // folders that have been looked through, the last one before the cursor
	removed int64
}

func newPurges(now func() time.Time) *purges {
	return &purges{now: now, list: map[purgeID]*remembered{}, cursors: map[*volume]int{}}
}

// hit tells whether an entry was purged after its body was fetched.
func (p *purges) hit(key *Key, meta *Meta) bool {
	set := p.set.Load()
	if sabotage.OldPicture && key.Form != "original" {
		return false
	}
	return set != nil && set.Hits(key.Site, key.Path, meta.Born())
}

// sweptAll tells whether every volume that is configured has been looked through.
func (p *purges) sweptAll(r *remembered) bool {
	return !slices.ContainsFunc(p.volumes, func(v *volume) bool { return r.swept[v] < folders })
}

// settled tells whether the purge has nothing left to hit in the volumes that are
// configured, nor in what may still be on its way to them.
func (p *purges) settled(r *remembered, now time.Time) bool {
	return now.Sub(r.noted) >= PurgeHold && p.sweptAll(r)
}

// refresh has Gets ask about the purges that the list holds now. Called with mu held.
func (p *purges) refresh() {
	now := p.now()
	var active []purge.Purge
	for _, r := range p.list {
		if !p.settled(r, now) { // else it waits for a volume that is not configured
			active = append(active, r.Purge)
		}
	}
	p.set.Store(purge.NewSet(active))
}

// add takes purges into the list, in place of those that they cover.
func (p *purges) add(list []purge.Purge) {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh := map[purgeID]bool{}
	for _, one := range list {
		fresh[idOf(one)] = true
		if old := p.list[idOf(one)]; old != nil && old.At.After(one.At) {
			one.At = old.At
		}
		p.list[idOf(one)] = &remembered{Purge: one, noted: now, swept: map[*volume]int{}}
	}
	added := purge.NewSet(list)
	for id, r := range p.list {
		if !fresh[id] && added.Covers(r.Purge) {
			delete(p.list, id)
		}
	}
	p.bound(now)
	p.refresh()
}

// bound keeps the list from growing. Called with mu held.
func (p *purges) bound(now time.Time) {
	var active, settled []purge.Purge
	for _, r := range p.list {
		if p.settled(r, now) {
			settled = append(settled, r.Purge)
		} else {
			active = append(active, r.Purge)
		}
	}
	for _, list := range [...][]purge.Purge{active, settled} {
		if len(list) <= maxPurges {
			continue
		}
		kept := map[purgeID]bool{}
		for _, one := range purge.Limit(list, maxPurges*9/10) {
			kept[idOf(one)] = true
			// Another of the two lists may have the like of it, with a later time.
			if old := p.list[idOf(one)]; old == nil || old.At.Before(one.At) {
				p.list[idOf(one)] = &remembered{Purge: one, noted: now, swept: map[*volume]int{}}
			}
		}
		for _, one := range list {
			if !kept[idOf(one)] {
				delete(p.list, idOf(one))
			}
		}
	}
}

func (p *purges) stats() (remembered int, removed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.list), p.removed
}

// Purge makes all entries of a site misses whose path begins with one of the prefixes
// (see package purge) and whose body was fetched before at, or up to purge.Margin
// after, whatever their Rest and Form: those that are stored, and those that are still
// on their way. That holds from the moment on at which Purge is called, and is on the
// disk of every volume that works when it returns, so that it holds over a restart: on a
// full one, the least recently used entries make room for it. The files go in the
// background.
//
// The error says that a prefix or the time cannot be, and nothing has happened; or,
// as an [ErrUnavailable], that no volume could be written, and then the purge holds in
// this process all the same and is written as soon as a volume works.
func (c *Cache) Purge(site string, prefixes []string, at time.Time) error {
	if c.closed.Load() {
		return ErrClosed
	}
	// A clock elsewhere that is ahead must not keep out what is fetched later.
	if latest := c.now().Add(purge.Margin); at.After(latest) {
		at = latest
	}
	list := make([]purge.Purge, len(prefixes))
	var errs []error
	for i, prefix := range prefixes {
		list[i] = purge.Purge{Site: site, Prefix: purge.Clean(prefix), At: at}
		errs = append(errs, list[i].Check(), Meta{FetchStart: at}.check())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cache: purge: %w", err)
	}
	if len(list) == 0 {
		return nil
	}
	c.purges.add(list)
	c.queue.purge()
	for _, v := range c.volumes {
		v.askSweep() // which makes room, too
	}
	if err := c.purges.save(); err != nil {
		return fmt.Errorf("cache: purge: it holds, but not over a restart before a volume works: %w", err)
	}
	return nil
}

// Purged tells whether any purge that is remembered hits a site's path, for something
// fetched at whatever time before it. Purges are remembered for PurgeHold at least.
func (c *Cache) Purged(site, path string) bool {
	return c.purges.set.Load().Hits(site, path, time.Unix(0, 0))
}

// PurgeState is a purge that is remembered, and how far the removal of what it hits
// has got.
type PurgeState struct {
	purge.Purge
	// Looked are the files that were looked at, of Files that there are, about.
	Looked, Files int64
	// Removed are the files that went because of it.
	Removed int64
	// Done: nothing that it hits is left in the volumes that are in use.
	Done bool
	// Waiting are the paths of volumes that are out of use or not configured, for which
	// it is remembered until they have been looked through.
	Waiting []string
}

// Purges gives the purges that are remembered, ordered by site and prefix.
func (c *Cache) Purges() []PurgeState {
	p := c.purges
	files := map[*volume]int64{}
	var out []string
	for _, v := range c.volumes {
		s := v.stats()
		files[v] = s.Files
		if s.State != StateOK {
			out = append(out, v.path)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]PurgeState, 0, len(p.list))
	for _, r := range p.list {
		s := PurgeState{Purge: r.Purge, Removed: r.removed, Done: true}
		for _, v := range c.volumes {
			s.Files += files[v]
			s.Looked += files[v] * int64(r.swept[v]) / folders
			if r.swept[v] == folders {
				continue
			}
			if slices.Contains(out, v.path) {
				s.Waiting = append(s.Waiting, v.path)
			} else {
				s.Done = false
			}
		}
		for _, g := range p.ghosts {
			s.Waiting = append(s.Waiting, g.path)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b PurgeState) int {
		if c := strings.Compare(a.Site, b.Site); c != 0 {
			return c
		}
		return strings.Compare(a.Prefix, b.Prefix)
	})
	return all
}
