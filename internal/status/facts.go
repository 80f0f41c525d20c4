// Package status is the page for people who run karui: how it does now, and how it
// did within the last hour.
//
// Guaranteed: it looks at karui through one function that copies, every two seconds
// and when somebody asks for the page, but never more often than once a second,
// however many look; nothing of karui is held while a page is made. What is kept is
// bounded: about 90 KiB, 5 KiB more for each of 2000 sites at most, and 200 events.
// A token for some sites sees what concerns these sites, and nothing about others or
// about the machine. What is not known is said to be, and never shown as 0.
//
// Not guaranteed: anything over a restart. All but the share of requests that were
// answered well begins anew with the process, and the page says since when. A state
// that lasts for less than two seconds may leave no event.
package status

import (
	"time"

	"karui/internal/api"
	"karui/proxy/origin"
)

// Facts is how karui stands at one instant. Pointers are nil for what is not known.
type Facts struct {
	At time.Time
	// Sites are those in force, with what was counted since the start, and Unrouted
	// counts the requests that belong to none.
	Sites    []api.SiteStats
	Unrouted map[string]uint64
	// Groups are those judged by their latency that have seen requests lately, or shed.
	Groups []Group
	// DiskFull: all requests are turned away for the disks. Ready is what /readyz says.
	DiskFull, Ready bool
	Dial            Dial
	// Shed are the shares that operators turn away, by site.
	Shed       map[string]Shed
	Workers    *api.WorkerStats
	Quarantine []api.Quarantined
	Cache      *api.CacheStats
	Writes     *Writes
	Flights    *api.FlightStats
	Places     []origin.PlacesStatus
	Backlog    *Backlog
	Limits     Limits
	// Reloaded is whether the configuration in force is the one that was read last,
	// and ReloadedAt since when it is in force.
	Reloaded   bool
	ReloadedAt time.Time
	// silent are the places that answer nothing, as the recorder has seen.
	silent map[placeName]bool
}

// Limits are the lines of the configuration.
type Limits struct {
	// Latency is stress.latency, and Window the time over which its mean is taken.
	Latency, Window time.Duration
	// High, Low and Stress are those of the disks, in percent.
	High, Low, Stress float64
}

// Group is how long requests of one group take to their first byte.
type Group struct {
	// Name is all, hits, or misses of Site.
	Name, Site string
	Shedding   bool
	Since      time.Time
	Mean       time.Duration
	Requests   int64
}

// Dial is how the dial stands.
type Dial struct {
	Level  int
	Levels []string
	// Mode is pinned, schedule, auto or fixed. Until ends a pin or a window, zero for
	// never; Window names that.
	Mode, Window string
	Until        time.Time
	// Pins are those of single sites.
	Pins map[string]Pin
	// Moves are the latest ones, newest first.
	Moves []Move
}

// Pin is a level that an operator set.
type Pin struct {
	Level int
	Until time.Time
}

// Move is one move of the dial.
type Move struct {
	At time.Time
	// Site is empty for all of them.
	Site, From, To, Cause, Detail string
	Level                         int
}

// Shed is a share of a site's requests that is turned away.
type Shed struct {
	Percent float64
	Until   time.Time
}

// Writes is what waits to be written to the volumes.
type Writes struct {
	Bytes, Max int64
	Dropped    uint64
}

// Backlog is the work that waits for idle workers.
type Backlog struct {
	// Waiting conversions by site.
	Waiting map[string]int
}

// Visitor tells what somebody may see; api.Visitor is one.
type Visitor interface {
	Whole() bool
	May(site string) bool
}

// seenBy gives what a visitor may see: of a token for some sites nothing about
// others, nor about the machine.
func (f *Facts) seenBy(v Visitor) *Facts {
	if v.Whole() {
		return f
	}
	g := &Facts{At: f.At, Reloaded: true, Ready: f.Ready, DiskFull: f.DiskFull, Dial: f.Dial, Limits: f.Limits, Shed: map[string]Shed{}, silent: f.silent}
	for _, s := range f.Sites {
		if v.May(s.ID) {
			g.Sites = append(g.Sites, s)
		}
	}
	for _, p := range f.Places {
		if v.May(p.Site) {
			g.Places = append(g.Places, p)
		}
	}
	for _, group := range f.Groups {
		if group.Site == "" || v.May(group.Site) {
			g.Groups = append(g.Groups, group)
		}
	}
	if f.Backlog != nil {
		g.Backlog = &Backlog{Waiting: map[string]int{}}
		for id, n := range f.Backlog.Waiting {
			if v.May(id) {
				g.Backlog.Waiting[id] = n
			}
		}
	}
	for id, share := range f.Shed {
		if v.May(id) {
			g.Shed[id] = share
		}
	}
	g.Dial.Pins, g.Dial.Moves = map[string]Pin{}, nil
	for id, pin := range f.Dial.Pins {
		if v.May(id) {
			g.Dial.Pins[id] = pin
		}
	}
	for _, m := range f.Dial.Moves {
		if m.Site == "" || v.May(m.Site) {
			g.Dial.Moves = append(g.Dial.Moves, m)
		}
	}
	return g
}

// level names a level of the dial.
func (d *Dial) level(n int) string {
	if n < 0 || n >= len(d.Levels) {
		return "not known"
	}
	return d.Levels[n]
}
