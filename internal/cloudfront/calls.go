package cloudfront

import (
	"slices"
	"time"
)

// maxCalls bounds the log of calls; the oldest go first.
const maxCalls = 10000

// Call is one request as it was answered (or would have been, had the
// connection not been dropped afterwards).
type Call struct {
	Time      time.Time
	Service   string // "cloudfront", "sts" or "ses"; empty if not understood
	Action    string // "UpdateDistribution"; empty if not understood
	ID        string // distribution or cache policy
	Principal string // ARN of who signed it; empty before a good signature
	Session   string // session name of an assumed role
	IfMatch   string
	ETag      string // of the answer
	RequestID string
	Status    int
	Code      string // of an error; empty for success
}

type callLog struct{ list []Call }

func (d *Double) note(c *call, a reply, code string) {
	entry := Call{
		Time: d.now(), Service: c.service, Action: c.name, ID: c.id,
		Principal: c.by.arn, Session: c.by.session, IfMatch: c.r.Header.Get("If-Match"),
		ETag: a.header["ETag"], RequestID: c.requestID, Status: a.status, Code: code,
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.calls.list) >= maxCalls {
		d.calls.list = slices.Delete(d.calls.list, 0, maxCalls/10)
	}
	d.calls.list = append(d.calls.list, entry)
}

// Calls lists the requests so far, oldest first, of the named actions or, without
// any, all.
func (d *Double) Calls(actions ...string) []Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Call
	for _, c := range d.calls.list {
		if len(actions) == 0 || slices.Contains(actions, c.Action) {
			out = append(out, c)
		}
	}
	return out
}
