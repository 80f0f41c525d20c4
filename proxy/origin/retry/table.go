// Package retry holds the decisions behind fetching originals: which place gets a
// new request, when a place is left and used again, and whether a failed try is
// followed by another one, and where.
//
// Everything here is a function of its arguments: no clock, no network, no
// goroutine, no lock. Guaranteed: no call of this package ever allows more than
// one second try after a first one, none after an answer, and none while retries
// are off. Not guaranteed: safety for concurrent use; the caller holds a lock.
package retry

// Fate is how a try ended, as far as the decision goes.
type Fate uint8

const (
	// Answered: any answer but those of Overloaded.
	Answered Fate = iota + 1
	// Unavailable: no connection (refused, unreachable, DNS, TLS), or one that was
	// lost before the first byte of an answer.
	Unavailable
	// TimedOut: connected, and no first byte in time.
	TimedOut
	// Overloaded: 429 or 503.
	Overloaded
	// Void: given up by the caller, or not to be sent at all. It says nothing about
	// the place.
	Void
)

// String gives the stable word for metrics and reports.
func (f Fate) String() string {
	switch f {
	case Answered:
		return "answered"
	case Unavailable:
		return "unavailable"
	case TimedOut:
		return "timeout"
	case Overloaded:
		return "overloaded"
	case Void:
		return "void"
	default:
		return "unknown"
	}
}

// Next is what follows a try.
type Next uint8

const (
	// Stop: nothing; what came of the try is the result.
	Stop Next = iota + 1
	// SamePlace: one try at another address of the same place.
	SamePlace
	// AnotherPlace: one try at another place.
	AnotherPlace
)

// String gives the word for reports.
func (n Next) String() string {
	switch n {
	case Stop:
		return "stop"
	case SamePlace:
		return "same place"
	case AnotherPlace:
		return "another place"
	default:
		return "unknown"
	}
}

// The levels of retry.level.
const (
	// LevelNone: no second try, and no place is ever left.
	LevelNone = iota
	// LevelSamePlace: a second try at another address of the same place.
	LevelSamePlace
	// LevelAnotherPlace: also at another place; sick places are left.
	LevelAnotherPlace
	// LevelLeave: another place before another address, and a place is left at its
	// first timeout that makes it sick.
	LevelLeave
)

// Policy is what is allowed at the moment.
type Policy struct {
	// Level is retry.level, 0 to 3.
	Level int
	// Off: retries are switched off, by configuration, by hand or by the cut-off.
	Off bool
}

// Around is where a second try could go.
type Around struct {
	// URL: the place has another address that is in use.
	URL bool
	// Place: another place is in use.
	Place bool
}

// After decides what follows the first try, which ended with f at a place that
// is sick or not. There is no decision after a second try: nothing follows it.
func After(p Policy, f Fate, sick bool, a Around) Next {
	if p.Off || p.Level <= LevelNone {
		return Stop
	}
	var order []Next
	switch {
	case f == Unavailable:
		order = []Next{AnotherPlace, SamePlace}
	case f == TimedOut && sick:
		order = []Next{AnotherPlace}
	case f == TimedOut && p.Level >= LevelLeave:
		order = []Next{AnotherPlace, SamePlace}
	case f == TimedOut:
		order = []Next{SamePlace, AnotherPlace}
	case f == Overloaded:
		order = []Next{AnotherPlace}
	}
	for _, n := range order {
		switch {
		case n == SamePlace && a.URL, n == AnotherPlace && a.Place && p.Level >= LevelAnotherPlace:
			return n
		}
	}
	return Stop
}

// MayFollow tells whether any fate of the first try would be followed by a second
// one: then the first gets only a part of the time.
func MayFollow(p Policy, sick bool, a Around) bool {
	for _, f := range []Fate{Unavailable, TimedOut, Overloaded} {
		if After(p, f, sick, a) != Stop {
			return true
		}
	}
	return false
}
