package purge

import (
	"slices"
	"strings"
	"time"
)

// Set answers whether any of some purges hits an entry. It never changes, and may be
// asked by many goroutines. The nil Set has no purges.
type Set struct {
	list  []Purge
	sites map[string]*ordered
}

// ordered are the prefixes of a site in all their spellings, sorted, so that every
// prefix stands after those that it begins with. The longest that a path begins with
// is then the one before the path's place, or one that this begins with.
type ordered struct {
	prefixes []string
	// until is up to when, exclusive, fetches are hit by the prefix or by one that
	// it begins with: nanoseconds since 1970.
	until []int64
	// by is the purge that this comes from: its place in the list.
	by []int32
	// within is the longest other prefix that the prefix begins with, -1 for none.
	within []int32
}

// NewSet makes a Set of purges in any order. It gives nil for none.
func NewSet(list []Purge) *Set {
	if len(list) == 0 {
		return nil
	}
	latest := map[string]map[string]int32{}
	for i, p := range list {
		of := latest[p.Site]
		if of == nil {
			of = map[string]int32{}
			latest[p.Site] = of
		}
		for _, s := range spellings(p.Prefix) {
			if other, found := of[s]; !found || p.At.After(list[other].At) {
				of[s] = int32(i)
			}
		}
	}
	s := &Set{list: list, sites: make(map[string]*ordered, len(latest))}
	for site, of := range latest {
		s.sites[site] = order(list, of)
	}
	return s
}

// limit is the first start of a fetch that the purge does not hit.
func (p Purge) limit() int64 { return p.At.Add(Margin).UnixNano() }

func order(list []Purge, latest map[string]int32) *ordered {
	o := &ordered{
		prefixes: make([]string, 0, len(latest)),
		until:    make([]int64, len(latest)), by: make([]int32, len(latest)), within: make([]int32, len(latest)),
	}
	for prefix := range latest {
		o.prefixes = append(o.prefixes, prefix)
	}
	slices.Sort(o.prefixes)
	var open []int32 // those that the present one may begin with, each within the one before
	for i, prefix := range o.prefixes {
		for len(open) > 0 && !strings.HasPrefix(prefix, o.prefixes[open[len(open)-1]]) {
			open = open[:len(open)-1]
		}
		by := latest[prefix]
		o.by[i], o.until[i], o.within[i] = by, list[by].limit(), -1
		if len(open) > 0 {
			outer := open[len(open)-1]
			o.within[i] = outer
			if o.until[outer] > o.until[i] {
				o.by[i], o.until[i] = o.by[outer], o.until[outer]
			}
		}
		open = append(open, int32(i))
	}
	return o
}

// of gives up to when fetches are hit of what has this form, and by which purge; 0
// if nothing is.
func (o *ordered) of(form string) (until int64, by int32) {
	i, found := slices.BinarySearch(o.prefixes, form)
	if !found {
		i--
	}
	for ; i >= 0; i = int(o.within[i]) {
		if strings.HasPrefix(form, o.prefixes[i]) {
			return o.until[i], o.by[i]
		}
	}
	return 0, 0
}

// Hits tells whether what was fetched from a site's path is hit: the fetch began
// before a purge that names it, or up to Margin after.
func (s *Set) Hits(site, path string, began time.Time) bool {
	_, hit := s.Find(site, path, began)
	return hit
}

// Find is Hits, and gives a purge that hits.
func (s *Set) Find(site, path string, began time.Time) (by Purge, hit bool) {
	if s == nil {
		return Purge{}, false
	}
	o := s.sites[site]
	if o == nil {
		return Purge{}, false
	}
	start := began.UnixNano()
	hit = paths(path, func(form string) bool {
		until, i := o.of(form)
		if start >= until {
			return false
		}
		by = s.list[i]
		return true
	})
	return by, hit
}

// Covers tells whether everything that the purge hits is hit by the set as well.
func (s *Set) Covers(p Purge) bool {
	if s == nil || s.sites[p.Site] == nil {
		return false
	}
	for _, spelling := range spellings(p.Prefix) {
		if until, _ := s.sites[p.Site].of(spelling); until < p.limit() {
			return false
		}
	}
	return true
}
