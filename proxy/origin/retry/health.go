package retry

// When a place is left.
const (
	// OutAfter is how many tries in a row find an address unavailable before it is
	// out of use.
	OutAfter = 3
	// SickFrom is the share of timeouts, in percent, from which a place is sick.
	SickFrom = 10
	// FailingFrom is the share of failed tries of any kind, in percent, from which a
	// place is sick as well: one of two places alone would otherwise bring the cut-off
	// about, and with it failures that the other place could have prevented.
	FailingFrom = 2 * CutAbove
	// failingLeast is how many failures that needs: as many as the cut-off needs at
	// least, so that one of two places is left first.
	failingLeast = CutTries*CutAbove/100 + 1
	// recent is a span in seconds, short enough that a place that worked well for
	// the rest of the minute is still left in time.
	recent = 10
	// sickTimeouts is how many timeouts make a place sick below LevelLeave: one
	// alone is chance.
	sickTimeouts = 2
)

// Health is what the traffic to one place says of it.
type Health struct {
	level     int
	window    Window
	addresses []condition
}

type condition struct {
	row int // of tries that found it unavailable
	out bool
}

// NewHealth gives the health of a place with so many addresses, none out of use,
// at a level of retry.level.
func NewHealth(addresses, level int) *Health {
	return &Health{level: level, addresses: make([]condition, addresses)}
}

// Record counts a try at an address that ended in the second now. It tells
// whether the address went out of use by it, or came back.
func (h *Health) Record(now int64, address int, f Fate) (out, back bool) {
	h.Count(now, f)
	a := &h.addresses[address]
	switch f {
	case Unavailable:
		a.row++
		if a.row >= OutAfter && !a.out {
			a.out = true
			return true, false
		}
	case Answered, Overloaded:
		a.row = 0
		return false, h.Back(address)
	}
	return false, false
}

// Back puts an address in use again, and tells whether it was out. The last
// minute still counts: a place that only answers heartbeats well stays sick.
func (h *Health) Back(address int) bool {
	a := &h.addresses[address]
	was := a.out
	*a = condition{}
	return was
}

// AddressOut tells whether an address is out of use.
func (h *Health) AddressOut(address int) bool { return h.addresses[address].out }

// Out tells whether all addresses are out of use.
func (h *Health) Out() bool {
	for _, a := range h.addresses {
		if !a.out {
			return false
		}
	}
	return true
}

// Sick tells whether so many tries of the last minute timed out, or failed in any
// way, that new requests should go elsewhere.
func (h *Health) Sick(now int64) bool { return h.sickly(h.window.Sum(now, Minute)) }

func (h *Health) sickly(c Counts) bool {
	least := sickTimeouts
	if h.level >= LevelLeave {
		least = 1
	}
	late := c.TimedOut >= least && 100*c.TimedOut >= SickFrom*c.Tries
	failing := c.Failed() >= failingLeast && 100*c.Failed() >= FailingFrom*c.Tries
	return h.level >= LevelAnotherPlace && (late || failing)
}

// Count is Record where no address can go out of use: a sole one is never left.
func (h *Health) Count(now int64, f Fate) {
	h.window.Add(now, f)
	// How well the rest of the minute went says nothing of a place that has just
	// begun to fail.
	if f != Answered && f != Void && h.sickly(h.window.Sum(now, recent)) {
		h.window.Keep(now, recent)
	}
}

// LastMinute counts the tries that ended within the last minute, or since shortly
// before the place became sick.
func (h *Health) LastMinute(now int64) Counts { return h.window.Sum(now, Minute) }
