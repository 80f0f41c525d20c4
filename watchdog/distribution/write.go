package distribution

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront"
	"github.com/cenkalti/backoff/v5"
)

// maxTries is how often a write is begun anew after a conflict or an answer that
// got lost, beyond the SDK's retries of each call.
const maxTries = 6

// staleTime is how long a read may go on showing the version before a write.
const staleTime = 30 * time.Second

// Swap puts the group into the wanted order: read, check, exchange, write under
// If-Match, read back and compare. In that order already, nothing is written.
// When somebody else changed the distribution in between, all of it is done again
// on the new document. The result is filled as far as things went, also on error.
//
// Each of still is asked before every request that writes; an error of one ends
// the swap with KindRefused, and nothing more is written.
//
// The kinds of error: KindRefused (nothing was written, the message says why),
// KindConflict, KindReadBack, and those of a call.
func (c *Client) Swap(ctx context.Context, want Order, purpose Purpose, still ...func(context.Context) error) (Result, error) {
	if want != OrderProxy && want != OrderDirect {
		return Result{}, fmt.Errorf("swap to order %q: expected %q or %q", want, OrderProxy, OrderDirect)
	}
	return c.write(ctx, want, purpose, still...)
}

// WriteUnchanged writes the configuration back as it is: the only proof that the
// role may write, since CloudFront knows no dry run.
func (c *Client) WriteUnchanged(ctx context.Context) (Result, error) {
	return c.write(ctx, OrderUnknown, ForDegrade)
}

func (c *Client) write(ctx context.Context, want Order, purpose Purpose, still ...func(context.Context) error) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.WriteTimeout)
	defer cancel()
	ctx, steps := c.traced(ctx)
	w := &writing{c: c, purpose: purpose, still: still, result: Result{Want: want, As: c.target.RoleARN}}
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.Multiplier, pause.MaxInterval = time.Second, 2, maxBackoff
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := w.try(ctx)
		if err != nil && !again(err) {
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxTries(maxTries), backoff.WithMaxElapsedTime(c.opt.WriteTimeout))
	w.result.Unsure = err != nil && w.unsure
	w.result.Steps = steps.list()
	if err == nil {
		return w.result, nil
	}
	var e *Error
	if !errors.As(err, &e) { // the context ended during a pause
		e = c.explain(ctx, "cloudfront:UpdateDistribution", c.target.ARN(), err)
	}
	return w.result, e
}

// again tells the errors of a call after which reading and trying anew makes sense.
func again(err error) bool {
	switch KindOf(err) {
	case KindConflict, KindThrottled, KindService, KindUnreachable, KindTimeout:
		return true
	default:
		return false
	}
}

// writing is one write with its tries.
type writing struct {
	c       *Client
	purpose Purpose
	still   []func(context.Context) error
	result  Result
	began   bool
	sent    []byte // by the last try
	unsure  bool   // an earlier try may have taken effect
}

// try is the chain once through.
func (w *writing) try(ctx context.Context) error {
	s, err := w.c.Read(ctx)
	if err != nil && !w.unsure {
		return backoff.Permanent(err) // the call itself was tried long enough
	}
	if err != nil {
		return err
	}
	if !w.began {
		w.began = true
		w.result.Was = s.Order
	}
	w.result.ETag = s.ETag
	body := s.Raw
	if w.result.Want != OrderUnknown {
		findings := Check(s.Raw, s.Document, w.c.target, w.purpose)
		w.result.Warning = findings
		if e := refusals(findings); e != nil {
			return e
		}
		if s.Order == w.result.Want {
			w.settled(s)
			return nil
		}
		first, second := w.c.target.Members(w.result.Want)
		if body, err = Exchange(s.Raw, w.c.target.GroupID, first, second); err != nil {
			return &Error{Kind: KindDocument, Message: err.Error(), Err: err, Hint: hintByHand}
		}
	} else if w.unsure && bytes.Equal(w.sent, s.Raw) && s.ETag != w.result.ETagWas {
		// The unchanged document under a new version: the lost write took effect.
		w.settled(s)
		return nil
	}
	w.result.Before, w.result.After, w.result.ETagWas = s.Raw, body, s.ETag
	w.sent = body
	etag, lost, err := w.c.put(ctx, &sent{body: body, still: w.still}, s.ETag)
	w.unsure = w.unsure || lost
	if err != nil {
		return err
	}
	w.unsure = false
	w.result.Changed = true
	w.result.ETag = etag
	return w.readBack(ctx, etag)
}

// settled is the end without a (further) write: the order is as wanted. If an
// earlier try was lost on its way, it was ours that made it so.
func (w *writing) settled(s Snapshot) {
	w.result.Changed = w.result.Changed || w.unsure
	w.unsure = false
	if w.sent == nil {
		w.result.Before, w.result.After, w.result.ETagWas = s.Raw, s.Raw, s.ETag
		return
	}
	w.compare(s)
}

// errStale is a read that does not know of our write yet.
var errStale = errors.New("the version before the write was read")

// readBack makes sure of what was written. After a good answer there is nothing
// to be tried anew: a failure here is reported, not repeated. Only a read that
// still shows the version before the write is, for half a minute.
func (w *writing) readBack(ctx context.Context, etag string) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = time.Second
	s, err := backoff.Retry(ctx, func() (Snapshot, error) {
		s, err := w.c.Read(ctx)
		switch {
		case err != nil:
			return s, backoff.Permanent(err)
		case s.ETag == w.result.ETagWas && s.Order == w.result.Was && w.result.Want != OrderUnknown:
			return s, errStale
		}
		return s, nil
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(staleTime))
	if err != nil {
		return &Error{
			Kind: KindReadBack, Err: err, Message: fmt.Sprintf("version %s was written but could not be read back: %v", etag, err),
			Hint: "the change most likely took effect; look at the distribution, or run the command again, which writes nothing if it did",
		}
	}
	w.result.ETag = s.ETag
	if want := w.result.Want; want != OrderUnknown && s.Order != want {
		return &Error{
			Kind: KindReadBack, Message: fmt.Sprintf("version %s was written with the order %s, but version %s has another", etag, want, s.ETag),
			Hint: "somebody else changed the order at the same time; find out who (CloudTrail, Terraform) before trying again",
		}
	}
	w.compare(s)
	return nil
}

// compare notes where what was read differs from what was sent.
func (w *writing) compare(s Snapshot) {
	w.result.ETag = s.ETag
	difference, err := Difference(w.sent, s.Raw)
	if err != nil {
		difference = err.Error()
	}
	w.result.Difference = difference
}

// put sends the document. lost means that it may have taken effect although
// there is an error.
func (c *Client) put(ctx context.Context, doc *sent, ifMatch string) (etag string, lost bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.CallTimeout)
	defer cancel()
	const action = "cloudfront:UpdateDistribution"
	out, err := c.cloudfront.UpdateDistribution(ctx, &cloudfront.UpdateDistributionInput{
		Id: &c.target.DistributionID, IfMatch: &ifMatch, DistributionConfig: placeholder(),
	}, doc.withDocument)
	step := Step{Action: action, IfMatch: ifMatch}
	if err != nil {
		failure := c.explain(ctx, action, c.target.ARN(), err)
		note(ctx, step, failure)
		return "", doc.lost, failure
	}
	step.ETag = aws.ToString(out.ETag)
	step.RequestID, _ = awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
	note(ctx, step, nil)
	return step.ETag, false, nil
}
