package purging

import (
	"fmt"
	"slices"
	"time"

	"karui/internal/invalidation"
)

// record is a purge with what is left to do at the edge, in the form of the file.
// Batches are dropped when nothing is left.
type record struct {
	Purge
	Parts []*part `json:"parts,omitempty"`
	// Numbers is how many numbers of parts have been given out.
	Numbers int `json:"numbers,omitempty"`
}

// part is one batch of a purge at the edge.
type part struct {
	// Number tells it from the others, and never stands for other paths.
	Number int      `json:"number"`
	Paths  []string `json:"paths"`
	// Invalidation is its id, once CloudFront has taken it, and Made when that was.
	Invalidation string    `json:"invalidation,omitempty"`
	Made         time.Time `json:"made,omitzero"`
	Completed    bool      `json:"completed,omitempty"`

	// due is when to look at it next, and looks how often that was done.
	due   time.Time
	looks int
}

func (p *part) inProgress() bool { return p.Invalidation != "" && !p.Completed }

// reference names a part to CloudFront, the same over restarts.
func (r *record) reference(p *part) string { return fmt.Sprintf("karui-%s-%d", r.ID, p.Number) }

// plan fills in the part at the edge.
func (r *record) plan(site Site) {
	r.Edge.Distribution = site.Target.Distribution
	paths := invalidation.Plan(r.Prefixes, r.Exact)
	texts := make([]string, len(paths))
	for i, p := range paths {
		texts[i] = p.Text
		if p.Wider {
			r.Edge.Remarks = appendNew(r.Edge.Remarks, fmt.Sprintf("the edge is told %s: it takes no path that is closer", shorten(p.Text)))
		}
	}
	if r.Exact && site.Queries {
		r.Edge.Remarks = append(r.Edge.Remarks,
			"what viewers ask for with a query that is not named stays at the edge until its lifetime is over, as exact paths leave it alone")
	}
	for _, batch := range invalidation.Batches(texts) {
		r.add(batch)
	}
	r.Edge.State, r.Edge.Paths, r.Edge.Batches = Running, len(texts), len(r.Parts)
}

func (r *record) add(paths []string) {
	r.Numbers++
	r.Parts = append(r.Parts, &part{Number: r.Numbers, Paths: paths})
}

// split halves a part that CloudFront has not taken for want of room, where that
// leaves something to win.
func (r *record) split(p *part) bool {
	if use := invalidation.UseOf(p.Paths); use.Wildcards < 2 && use.Exact < 200 {
		return false
	}
	r.Parts = slices.DeleteFunc(r.Parts, func(other *part) bool { return other == p })
	half := len(p.Paths) / 2
	r.add(p.Paths[:half])
	r.add(p.Paths[half:])
	r.Edge.Batches++
	return true
}

// made counts the parts that CloudFront has taken.
func (r *record) made() (n int) {
	for _, p := range r.Parts {
		if p.Invalidation != "" {
			n++
		}
	}
	return n
}

// maxRemarks bounds what is said about single paths.
const maxRemarks = 5

func appendNew(list []string, text string) []string {
	if len(list) >= maxRemarks || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// took notes that CloudFront has made a part.
func (r *record) took(p *part, v invalidation.Invalidation, now time.Time) {
	p.Invalidation, p.Made = v.ID, now
	if len(r.Edge.Invalidations) < shownInvalidations {
		r.Edge.Invalidations = append(r.Edge.Invalidations, v.ID)
	}
	r.saw(p, v, now)
}

// Looks begin soon, since small invalidations often take only seconds, and get rarer.
const (
	firstLook = 2 * time.Second
	lastLook  = 10 * time.Second
)

// saw notes how a part does.
func (r *record) saw(p *part, v invalidation.Invalidation, now time.Time) {
	if !v.Completed {
		p.due = now.Add(min(firstLook<<min(p.looks, 8), lastLook))
		p.looks++
		return
	}
	p.Completed = true
	r.Edge.Completed += len(p.Paths)
	if !slices.ContainsFunc(r.Parts, func(p *part) bool { return !p.Completed }) {
		r.end(Done, nil, now)
	}
}

// end closes the purge.
func (r *record) end(state State, why *Failure, now time.Time) {
	r.State, r.Edge.State, r.Edge.Failure, r.Edge.Waits = state, state, why, ""
	r.Edge.Ended = &now
	r.Parts = nil
	r.Purge = r.remembered()
}

// maxRemembered bounds the prefixes of a purge that has ended, in bytes.
const maxRemembered = 4 << 10

// remembered is the purge with the first of its prefixes, within a bound.
func (p Purge) remembered() Purge {
	p = p.brief()
	size := 0
	for i, text := range p.Prefixes {
		if size += len(text); size > maxRemembered && i > 0 {
			p.Prefixes = p.Prefixes[:i:i]
			break
		}
	}
	p.Prefixes = slices.Clone(p.Prefixes)
	return p
}

// copied is the purge as it is now, for somebody else.
func (r *record) copied() Purge {
	p := r.Purge
	p.Edge.Invalidations = slices.Clone(p.Edge.Invalidations)
	return p
}

// size is what a record holds of prefixes and paths, about, in bytes.
func (r *record) size() int {
	n := 0
	for _, p := range r.Prefixes {
		n += len(p)
	}
	for _, p := range r.Parts {
		for _, path := range p.Paths {
			n += len(path)
		}
	}
	return n
}
