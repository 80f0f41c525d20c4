package mail

import "time"

const (
	// firstRetry and lastRetry bound the wait between two tries.
	firstRetry = 15 * time.Second
	lastRetry  = 5 * time.Minute

	// pollEvery is how often the directory is looked at: other processes put
	// mails there as well, and may end before they are sent.
	pollEvery = time.Minute

	// lockPoll is how often a lock that another process holds is tried.
	lockPoll = 200 * time.Millisecond

	// refusedPatience is how long a recipient, or a mail, that the server refuses
	// for good is tried all the same: somebody may be putting it right.
	refusedPatience = 24 * time.Hour

	// maxAge is how long a mail waits at most.
	maxAge = 7 * 24 * time.Hour

	// orderPatience is how long a recipient's mails wait for an earlier one of the
	// same site that the server puts off.
	orderPatience = time.Hour

	// grace is what a mail under way has when Run is to end.
	grace = 5 * time.Second

	// keepSent is how long it is remembered that an event was told: as long as it
	// may be enqueued again or replied to.
	keepSent = 90 * 24 * time.Hour
)

const (
	// maxWaiting bounds the mails that wait; beyond it the oldest are given up.
	maxWaiting = 10_000
	// maxKept bounds the files in each of the other places.
	maxKept = 20_000
)

// backoff is the wait after so many failures in a row: 15 s, 30 s, 1, 2, 4, 5, 5
// ... min.
func backoff(failures int) time.Duration {
	d := firstRetry
	for range failures - 1 {
		if d *= 2; d >= lastRetry {
			return lastRetry
		}
	}
	return d
}

// trial is when something is to be tried next.
type trial struct {
	failures int
	last     time.Time // of the last failure
	due      time.Time
	reason   string // key of what was logged last
}

func (t *trial) failed(now time.Time) {
	t.failures++
	t.last, t.due = now, now.Add(backoff(t.failures))
}

// ready tells whether it is time. A clock that was set back does not stop it for
// longer than a wait lasts.
func (t *trial) ready(now time.Time) bool {
	return t == nil || t.failures == 0 || !now.Before(t.due) || now.Before(t.last)
}

// changed tells whether a reason is another than the last.
func (t *trial) changed(reason string) bool {
	before := t.reason
	t.reason = reason
	return before != reason
}
