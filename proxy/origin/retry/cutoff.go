package retry

// The bounds of the cut-off: retries at a peak make it worse.
const (
	// CutTries is how many tries of the last minute the cut-off needs.
	CutTries = 20
	// CutAbove is the share of failed tries, in percent, over which retries end.
	CutAbove = 20
	// CutBelow is the share, in percent, under which they begin again. Half of
	// CutAbove, so that a rate near the bound does not switch to and fro.
	CutBelow = 10
)

// CutOff switches retries off while too many tries fail.
type CutOff struct{ cut bool }

// Judge takes the tries of the last minute at all places in use, and tells
// whether retries are off. Fewer than CutTries cut nothing off, and take nothing
// back either: retries begin again when less than CutBelow percent failed, however
// many those were, or when nothing was tried.
func (c *CutOff) Judge(lastMinute Counts) bool {
	failed, tries := 100*lastMinute.Failed(), lastMinute.Tries
	switch {
	case tries == 0, failed < CutBelow*tries:
		c.cut = false
	case tries >= CutTries && failed > CutAbove*tries:
		c.cut = true
	}
	return c.cut
}
