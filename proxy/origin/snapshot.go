package origin

import (
	"time"

	"karui/proxy/origin/retry"
)

// State is how a place stands.
type State string

const (
	// StateIn: the place gets its share of new requests.
	StateIn State = "in"
	// StateSick: it times out, or fails, so often that it gets a trickle.
	StateSick State = "sick"
	// StateDown: it is out of use until a heartbeat succeeds.
	StateDown State = "down"
	// StateOut: an operator took it out.
	StateOut State = "out"
)

// States lists all states, for metrics.
func States() []State { return []State{StateIn, StateSick, StateDown, StateOut} }

// PlaceStatus is how one place stands and what it did.
type PlaceStatus struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight"`
	State  State   `json:"state"`
	// Until is when an operator's word runs out, if it does.
	Until time.Time `json:"until,omitzero"`
	// InUse is whether new requests go there at the moment: the last usable place
	// is never left, whatever its state.
	InUse bool `json:"in_use"`
	// Addresses counts its urls, AddressesDown those that are out of use.
	Addresses     int `json:"addresses"`
	AddressesDown int `json:"addresses_down"`
	// UnderWay counts requests that are waited for or read from.
	UnderWay int64 `json:"under_way"`
	// The tries that ended within the last minute.
	Tries       int `json:"tries"`
	Unavailable int `json:"unavailable"`
	TimedOut    int `json:"timed_out"`
	Overloaded  int `json:"overloaded"`
	// LastFailure says in a few words why the last of them that failed did; empty if
	// none failed.
	LastFailure string `json:"last_failure,omitempty"`
	// Total has all tries by how they ended.
	Total map[string]int64 `json:"total"`
}

// PlacesStatus is how the fetching of one site stands.
type PlacesStatus struct {
	Site string `json:"site"`
	// Retries is on, off (by configuration or by hand) or cut (too many tries fail).
	Retries string `json:"retries"`
	// Until is when an operator's word about retries runs out, if it does.
	Until time.Time `json:"until,omitzero"`
	Level int       `json:"level"`
	// SecondTries counts them by where they went: same_place, another_place.
	SecondTries map[string]int64 `json:"second_tries"`
	Places      []PlaceStatus    `json:"places"`
}

// Status looks at everything at one instant.
func (p *Places) Status() PlacesStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	p.judge(now)
	s := p.standing(now)
	set, _ := p.switches.Retry(p.site)
	out := PlacesStatus{
		Site: p.site, Retries: "on", Until: set.Until, Level: p.retry.Level,
		SecondTries: map[string]int64{
			"same_place":    p.second[retry.SamePlace-retry.Stop].Load(),
			"another_place": p.second[retry.AnotherPlace-retry.Stop].Load(),
		},
	}
	switch {
	case p.retry.Level <= retry.LevelNone, p.mode() == "off":
		out.Retries = "off"
	case p.cut:
		out.Retries = "cut"
	}
	for i, pl := range p.places {
		c := pl.health.LastMinute(now)
		status := PlaceStatus{
			Name: pl.name, Weight: pl.weight, State: StateIn, InUse: s.usable[i], Addresses: len(pl.clients),
			UnderWay: pl.active.Load(), Tries: c.Tries, Unavailable: c.Unavailable, TimedOut: c.TimedOut, Overloaded: c.Overloaded,
			Total: make(map[string]int64),
		}
		if last := pl.failure.Load(); last != nil && c.Failed() > 0 {
			status.LastFailure = *last
		}
		for a := range pl.clients {
			if pl.health.AddressOut(a) {
				status.AddressesDown++
			}
		}
		for f := retry.Answered; f <= retry.Void; f++ {
			status.Total[f.String()] = pl.fates[f].Load()
		}
		word, taken := p.switches.Out(p.site, pl.name)
		switch {
		case taken:
			status.State, status.Until = StateOut, word.Until
		case pl.health.Out():
			status.State = StateDown
		case s.sick[i] && !p.sole:
			status.State = StateSick
		}
		out.Places = append(out.Places, status)
	}
	return out
}
