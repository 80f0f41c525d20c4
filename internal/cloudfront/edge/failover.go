package edge

import (
	"context"
	"net/http"
	"slices"
	"time"

	"karui/internal/cloudfront"
)

// Try is one request to an origin.
type Try struct {
	Origin  string
	Status  int    // of the answer; 0 without one
	Failure string // one of the Fail constants; empty for an answer that was used
	Err     string // what the network said, if it did
	Took    time.Duration
}

// members lists the origins behind a behaviour in the order in which they are
// asked, and the statuses that lead on from the first.
func members(config *cloudfront.Config, target string) ([]cloudfront.Origin, []int) {
	g, ok := config.Groups[target]
	if !ok {
		return []cloudfront.Origin{config.Origins[target]}, nil
	}
	var out []cloudfront.Origin
	for _, id := range g.Members {
		out = append(out, config.Origins[id])
	}
	return out, g.Statuses
}

// leadsOn decides about failover. Documented: on the chosen statuses, without a
// connection and without an answer in time; only for GET, HEAD and OPTIONS.
// Concluded: also when the connection breaks before an answer.
func leadsOn(method string, status int, failure string, statuses []int) bool {
	if method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions {
		return false
	}
	return failure != "" || slices.Contains(statuses, status)
}

// tries is how often an origin that stays silent is asked. Documented: as often
// as it is connected to, for GET and HEAD; an S3 origin and other methods once.
func tries(o cloudfront.Origin, method string) int {
	if o.S3 || method != http.MethodGet && method != http.MethodHead {
		return 1
	}
	return max(o.Attempts, 1)
}

// answer is what the origins had to say.
type answer struct {
	resp    *http.Response // nil when none answered
	watch   *watch
	member  string
	failure string // without resp
	tries   []Try
}

// ask goes through the members behind a target. It remembers nothing: every
// request tries the first member first.
func (e *Edge) ask(ctx context.Context, config *cloudfront.Config, target string, a errand) answer {
	origins, statuses := members(config, target)
	var out answer
	for i, o := range origins {
		last := i == len(origins)-1
		out.member, out.failure = o.ID, ""
		for range tries(o, a.method) {
			begun := e.now()
			resp, w, err := e.trip(ctx, o, a)
			try := Try{Origin: o.ID, Took: e.now().Sub(begun)}
			if err != nil {
				try.Failure, try.Err = failureOf(err), err.Error()
				out.failure = try.Failure
				out.tries = append(out.tries, try)
				if try.Failure == FailResponseTimeout && ctx.Err() == nil {
					continue
				}
				break
			}
			try.Status = resp.StatusCode
			if !last && leadsOn(a.method, resp.StatusCode, "", statuses) {
				try.Failure = FailStatus
				out.tries = append(out.tries, try)
				resp.Body.Close()
				w.stop(context.Canceled)
				out.failure = FailStatus
				break
			}
			out.tries = append(out.tries, try)
			out.resp, out.watch, out.failure = resp, w, ""
			return out
		}
		if ctx.Err() != nil || last || !leadsOn(a.method, 0, out.failure, statuses) || a.body != nil {
			return out
		}
	}
	return out
}
