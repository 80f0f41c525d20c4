package distribution

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// reach is the way to AWS. It remembers why the last request got no answer: a call
// that is tried until its time is over fails for that alone, and the SDK forgets
// what each try failed for.
type reach struct {
	next aws.HTTPClient

	mu   sync.Mutex
	last error
}

// Do makes one request.
func (r *reach) Do(req *http.Request) (*http.Response, error) {
	res, err := r.next.Do(req)
	// A request that was given up says nothing about the way.
	if err == nil || req.Context().Err() == nil && !errors.Is(err, context.Canceled) {
		r.mu.Lock()
		r.last = err
		r.mu.Unlock()
	}
	return res, err
}

// trouble says why the last request got no answer; empty if it got one.
func (r *reach) trouble() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		return ""
	}
	var with *url.Error
	if errors.As(r.last, &with) {
		return with.Err.Error()
	}
	return r.last.Error()
}

// explain is the Target's, with what the way to AWS was like when time ran out.
func (c *Client) explain(ctx context.Context, action, on string, err error) *Error {
	e := c.target.explain(ctx, action, on, err)
	if e.Kind != KindTimeout {
		return e
	}
	if why := c.reach.trouble(); why != "" {
		told := *e
		told.Message += "; the last try got no answer: " + why
		return &told
	}
	return e
}
