package distribution

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront"
)

// Read gets the configuration and who comes first in it. It fails for a
// configuration that is not understood; an order that is not one of the two is
// no failure but OrderUnknown.
func (c *Client) Read(ctx context.Context) (Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.CallTimeout)
	defer cancel()
	const action = "cloudfront:GetDistributionConfig"
	var doc received
	out, err := c.cloudfront.GetDistributionConfig(ctx, &cloudfront.GetDistributionConfigInput{Id: &c.target.DistributionID}, doc.catch)
	if err != nil {
		failure := c.explain(ctx, action, c.target.ARN(), err)
		note(ctx, Step{Action: action}, failure)
		return Snapshot{}, failure
	}
	s := Snapshot{Raw: doc.body, ETag: aws.ToString(out.ETag)}
	s.RequestID, _ = awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
	step := Step{Action: action, ETag: s.ETag, RequestID: s.RequestID}
	if s.Document, err = Inspect(doc.body); err == nil && s.ETag == "" {
		err = documentError("it came without an ETag")
	}
	if err != nil {
		failure := &Error{
			Kind: KindDocument, Action: action, On: c.target.ARN(), RequestID: s.RequestID, Message: err.Error(), Err: err,
			Hint: hintByHand,
		}
		note(ctx, step, failure)
		return Snapshot{}, failure
	}
	note(ctx, step, nil)
	s.Order = c.target.OrderOf(s.Document)
	return s, nil
}
