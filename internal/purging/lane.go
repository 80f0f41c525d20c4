package purging

import (
	"slices"
	"time"

	"karui/internal/invalidation"
)

// lane is what is left to do at one distribution, whose quotas all its sites share.
type lane struct {
	distribution string
	records      []*record // unfinished
	wake         chan struct{}

	// resume is when to go on after trouble that may pass, troubled since when there
	// has been some, zero for none.
	resume, troubled time.Time
	pause            time.Duration
	// admit and full are the same about invalidations that find no room beside those
	// of others.
	admit, full time.Time
	wait        time.Duration
}

// After trouble that may pass, a lane rests for minPause and then longer and longer.
const (
	minPause = 2 * time.Second
	maxPause = 30 * time.Second
)

// step is what a lane does next: make a part, look at one, or neither before a time.
type step struct {
	record *record
	part   *part
	make   bool
	until  time.Time // zero where there is nothing to wait for
}

// next decides what is to be done now. What is in progress is looked at when it is
// due; parts are made as there is room, of the records with the fewest made first.
func (l *lane) next(now time.Time) step {
	if now.Before(l.resume) {
		return step{until: l.resume}
	}
	look, used := l.inProgress()
	if look.part != nil && !look.part.due.After(now) {
		return look
	}
	wait := step{}
	if look.part != nil {
		wait.until = look.part.due
	}
	if now.Before(l.admit) {
		if wait.until.IsZero() || l.admit.Before(wait.until) {
			wait.until = l.admit
		}
		return wait
	}
	if r, p := l.candidate(used); p != nil {
		return step{record: r, part: p, make: true}
	}
	return wait
}

// inProgress gives the part that is to be looked at first, and what all of them use.
func (l *lane) inProgress() (first step, used invalidation.Use) {
	for _, r := range l.records {
		for _, p := range r.Parts {
			if !p.inProgress() {
				continue
			}
			used = used.Plus(invalidation.UseOf(p.Paths))
			if first.part == nil || p.due.Before(first.part.due) {
				first = step{record: r, part: p}
			}
		}
	}
	return first, used
}

// candidate gives a part to be made beside what is in progress. One that finds no room
// is not overtaken by those that want the same, or small ones would hold a large one
// up for ever.
func (l *lane) candidate(used invalidation.Use) (*record, *part) {
	slices.SortStableFunc(l.records, func(a, b *record) int { return a.made() - b.made() })
	var awaited invalidation.Use
	for _, r := range l.records {
		i := slices.IndexFunc(r.Parts, func(p *part) bool { return p.Invalidation == "" })
		if i < 0 {
			continue
		}
		use := invalidation.UseOf(r.Parts[i].Paths)
		if use.Wildcards > 0 && awaited.Wildcards > 0 || use.Exact > 0 && awaited.Exact > 0 {
			continue
		}
		if used.Plus(use).Fits() {
			return r, r.Parts[i]
		}
		awaited = awaited.Plus(use)
	}
	return nil, nil
}

// passing notes trouble that may pass, and gives since when there has been some.
func (l *lane) passing(now time.Time) time.Time {
	if l.troubled.IsZero() {
		l.troubled = now
	}
	l.pause = min(max(2*l.pause, minPause), maxPause)
	l.resume = now.Add(l.pause)
	return l.troubled
}

// crowded notes that there is no room for an invalidation, and gives since when.
func (l *lane) crowded(now time.Time) time.Time {
	if l.full.IsZero() {
		l.full = now
	}
	l.wait = min(max(2*l.wait, minPause), maxPause)
	l.admit = now.Add(l.wait)
	return l.full
}

// through notes that a call went through.
func (l *lane) through(made bool) {
	l.resume, l.troubled, l.pause = time.Time{}, time.Time{}, 0
	if made {
		l.admit, l.full, l.wait = time.Time{}, time.Time{}, 0
	}
	for _, r := range l.records {
		if made || l.full.IsZero() {
			r.Edge.Waits = ""
		}
	}
}

// drop takes those out that have ended, and tells of each.
func (l *lane) drop(ended func(*record)) {
	l.records = slices.DeleteFunc(l.records, func(r *record) bool {
		if r.State == Running {
			return false
		}
		ended(r)
		return true
	})
}

// nudge lets it look again at once what there is to do.
func (l *lane) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
