package edge

import (
	"maps"
	"sync"
	"time"
)

// Results of requests, as X-Cache says them (with " from cloudfront").
const (
	Hit        = "Hit"
	Miss       = "Miss"
	RefreshHit = "RefreshHit"
	Error      = "Error"
	Redirect   = "Redirect"

	FunctionError     = "FunctionExecutionError"
	FunctionInvalid   = "FunctionValidationError"
	FunctionResponded = "FunctionGeneratedResponse"
)

// Event is what became of one request.
type Event struct {
	ID           string // X-Amz-Cf-Id
	Time         time.Time
	Took         time.Duration // until the last byte
	Distribution string        // empty when no distribution has the host
	Method       string
	Target       string // path and query as the viewer sent them
	Accept       string // after the function, as it stands in the key
	Pattern      string // of the behaviour
	Status       int
	Result       string // one of the constants above
	Stale        bool   // an expired object went out
	Joined       bool   // shared an answer that another request was waiting for
	Member       string // origin that the answer is from; of a hit, the one that filled it
	Tries        []Try  // requests to origins that this one waited for, in order
	FailedOver   string // why the first member was left; empty if it was not
	ContentType  string
	Bytes        int64
	Aborted      string // why the viewer's connection was cut; empty if it was not
}

// Counters count since the start of an Edge.
type Counters struct {
	Requests int64
	Results  map[string]int64 // by Result
	Statuses map[int]int64
	Members  map[string]int64 // answers by the origin they are from
	Failover map[string]int64 // requests that left the first member, by reason
	Stale    int64
	Joined   int64
	Aborted  int64
	Bytes    int64
	Asked    map[string]int64 // requests to each origin, background ones included
}

type counters struct {
	mu sync.Mutex
	c  Counters
}

func newCounters() counters {
	return counters{c: Counters{
		Results: map[string]int64{}, Statuses: map[int]int64{}, Members: map[string]int64{},
		Failover: map[string]int64{}, Asked: map[string]int64{},
	}}
}

func (c *counters) asked(tries []Try) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range tries {
		c.c.Asked[t.Origin]++
	}
}

func (c *counters) count(v Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.c.Requests++
	c.c.Results[v.Result]++
	c.c.Statuses[v.Status]++
	c.c.Bytes += v.Bytes
	if v.Member != "" {
		c.c.Members[v.Member]++
	}
	if v.FailedOver != "" {
		c.c.Failover[v.FailedOver]++
	}
	for flag, n := range map[*int64]bool{&c.c.Stale: v.Stale, &c.c.Joined: v.Joined, &c.c.Aborted: v.Aborted != ""} {
		if n {
			*flag++
		}
	}
}

// Counters are the numbers so far.
func (e *Edge) Counters() Counters {
	e.counters.mu.Lock()
	defer e.counters.mu.Unlock()
	out := e.counters.c
	out.Results, out.Statuses, out.Members = maps.Clone(out.Results), maps.Clone(out.Statuses), maps.Clone(out.Members)
	out.Failover, out.Asked = maps.Clone(out.Failover), maps.Clone(out.Asked)
	return out
}

func (e *Edge) observe(v Event) {
	e.counters.count(v)
	if e.observer != nil {
		e.observer(v)
	}
}

// failedOver tells why the first member was left, from the tries of one request.
func failedOver(tries []Try) string {
	for i := 1; i < len(tries); i++ {
		if tries[i].Origin != tries[0].Origin {
			return tries[i-1].Failure
		}
	}
	return ""
}
