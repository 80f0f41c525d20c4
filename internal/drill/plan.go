package drill

import (
	"fmt"
	"time"

	"karui/proxy/origin"
	"karui/proxy/origin/retry"
)

// Site is what of a site's configuration decides about its fetches.
type Site struct {
	ID       string
	Deadline time.Duration
	Retry    origin.RetryConfig
	Places   []origin.PlaceConfig
}

// Step says what one fault at one place would lead to.
type Step struct {
	Site  string `json:"site"`
	Place string `json:"place"`
	Fault Fault  `json:"fault"`
	// Next is what follows the failed request: stop, same place or another place.
	Next string `json:"next"`
	// WhileSick is the same while the place times out in 10 % of all tries or more.
	WhileSick string `json:"while_sick"`
	// FirstTry is the time that the first try has to its first byte, in ms.
	FirstTry Millis `json:"first_try_ms"`
	// Then says what it means for the requests after it, if it goes on.
	Then string `json:"then"`
	// Viewer says what the viewer gets if nothing follows, or that fails as well.
	Viewer string `json:"viewer"`
}

// Plan says what each fault would do to each place, from the same decisions that
// karui takes, and without asking anybody.
func Plan(sites []Site) []Step {
	var steps []Step
	for _, s := range sites {
		addresses := 0
		for _, p := range s.Places {
			addresses += len(p.URLs)
		}
		for _, p := range s.Places {
			policy := retry.Policy{Level: s.Retry.Level, Off: s.Retry.Mode == "off"}
			around := retry.Around{URL: len(p.URLs) > 1, Place: len(s.Places) > 1}
			first := s.Deadline
			if retry.MayFollow(policy, false, around) {
				first /= 2
			}
			for _, f := range Faults() {
				steps = append(steps, Step{
					Site: s.ID, Place: p.Name, Fault: f, FirstTry: Millis(first),
					Next:      retry.After(policy, f.Fate(), false, around).String(),
					WhileSick: retry.After(policy, f.Fate(), true, around).String(),
					Then:      then(policy, f, addresses == 1, len(s.Places) == 1),
					Viewer:    viewer(f),
				})
			}
		}
	}
	return steps
}

// then says what becomes of the place.
func then(p retry.Policy, f Fault, soleAddress, solePlace bool) string {
	switch {
	case soleAddress:
		return "asked on: it is the only address"
	case p.Level <= retry.LevelNone:
		return "asked on: level 0 leaves nobody"
	}
	switch f.Fate() {
	case retry.Unavailable:
		return fmt.Sprintf("address out of use after %d in a row, until a heartbeat succeeds", retry.OutAfter)
	case retry.TimedOut:
		if p.Level >= retry.LevelAnotherPlace && !solePlace {
			return fmt.Sprintf("from %d %% timeouts on it gets %g %% of new requests", retry.SickFrom, 100*retry.Trickle)
		}
	}
	return "asked on"
}

// viewer says what is left when fetching fails.
func viewer(f Fault) string {
	switch f {
	case CutLate:
		return "a broken connection, never half an image that looks whole"
	default:
		return "a stale variant if there is one, else 503 and the edge asks the true origin"
	}
}
