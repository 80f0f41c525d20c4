package warm

import "time"

// The pauses that a proxy under stress gets: the first is as long as it takes a
// shedding group to let its next sample through, the last long enough for an outage.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// slowest is the least share of the rate, and recovery what each good answer adds to
// it: requests are cut by half at once, and come back over some minutes.
const (
	slowest  = 1.0 / 32
	recovery = 1.0 / 64
)

// pressure is how hard the proxy may be asked. It looks at no clock.
type pressure struct {
	share float64 // of the rate
	pause time.Duration
	until time.Time
	// since is the first bad answer after the last good one, zero while all is well.
	since time.Time
	// good is when the last good answer came.
	good   time.Time
	reason string
	// served is when the origin last gave an image, as far as can be seen, and unserved
	// how many images in turn it did not give since.
	served   time.Time
	unserved int
}

// chance is how many images in turn the origin may not give before it counts as unwell.
// In a site of which a third is missing, four in turn are so one time in a hundred.
const chance = 3

func newPressure() *pressure { return &pressure{share: 1} }

// bad takes note of an answer to a request that began then. Those that were under way
// when a pause began are no news.
func (p *pressure) bad(began, now time.Time, reason string) {
	p.reason = reason
	if p.since.IsZero() {
		p.since = now
	}
	if began.Before(p.until) {
		return
	}
	p.pause = min(max(2*p.pause, firstPause), lastPause)
	p.until = now.Add(p.pause)
	p.share = max(p.share/2, slowest)
}

// well takes note of a good answer.
func (p *pressure) well(now time.Time) {
	p.good, p.since, p.pause, p.until = now, time.Time{}, 0, time.Time{}
	p.share = min(p.share+recovery, 1)
}

// allowed is how many requests may be under way: of a proxy that answers badly, one.
// Zero is until when nobody asks.
func (p *pressure) allowed(now time.Time, most int) int {
	switch {
	case now.Before(p.until):
		return 0
	case !p.since.IsZero():
		return 1
	}
	return most
}

// bears tells for how long there has been no good answer.
func (p *pressure) bears(now time.Time) time.Duration {
	if p.since.IsZero() {
		return 0
	}
	return now.Sub(p.since)
}

// serves takes note of an answer for which the origin was asked.
func (p *pressure) serves(now time.Time) { p.served, p.unserved = now, 0 }

// quicken lets the rate be such a share at least.
func (p *pressure) quicken(share float64) { p.share = max(p.share, share) }
