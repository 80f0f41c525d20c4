package purge

import (
	"slices"
	"strings"
)

// Limit brings a list of purges down to at most `most`, by making them hit more and
// never less: of the site that has most, those that are deepest in the tree of folders
// become purges of their folders, of which several are one, with the latest time. It
// ends at one purge of everything for each site, and gives as many if that is more
// than most. Purges that need not change stay as they are.
func Limit(list []Purge, most int) []Purge {
	if len(list) <= most {
		return list
	}
	sites := map[string]map[string]Purge{}
	total := 0
	for _, p := range list {
		if sites[p.Site] == nil {
			sites[p.Site] = map[string]Purge{}
		}
		total += keepLatest(sites[p.Site], p)
	}
	for total > most {
		largest := largestOf(sites)
		if largest == nil {
			break // one for each site
		}
		total -= coarsen(largest)
	}
	result := make([]Purge, 0, total)
	for _, of := range sites {
		for _, p := range of {
			result = append(result, p)
		}
	}
	slices.SortFunc(result, func(a, b Purge) int {
		if c := strings.Compare(a.Site, b.Site); c != 0 {
			return c
		}
		return strings.Compare(a.Prefix, b.Prefix)
	})
	return result
}

// keepLatest adds a purge, and gives by how many there are more.
func keepLatest(of map[string]Purge, p Purge) int {
	old, found := of[p.Prefix]
	if !found || p.At.After(old.At) {
		of[p.Prefix] = p
	}
	if found {
		return 0
	}
	return 1
}

// largestOf gives the site with most purges, nil if none has anything to make coarser.
func largestOf(sites map[string]map[string]Purge) (largest map[string]Purge) {
	for _, of := range sites {
		if _, whole := of["/"]; (len(of) > 1 || !whole) && len(of) > len(largest) {
			largest = of
		}
	}
	return largest
}

// coarsen makes the deepest purges of a site such of their folders, and gives by how
// many there are less.
func coarsen(of map[string]Purge) (less int) {
	depth := 0
	for prefix := range of {
		depth = max(depth, depthOf(prefix))
	}
	before := len(of)
	for prefix, p := range of {
		if depthOf(prefix) != depth || prefix == "/" {
			continue
		}
		delete(of, prefix)
		p.Prefix = prefix[:strings.LastIndexByte(strings.TrimSuffix(prefix, "/"), '/')+1]
		keepLatest(of, p) // of lesser depth, and so not met again to be changed
	}
	return before - len(of)
}

// depthOf orders prefixes: a folder stands above what is in it.
func depthOf(prefix string) int {
	n := 2 * strings.Count(prefix, "/")
	if strings.HasSuffix(prefix, "/") {
		n--
	}
	return n
}
