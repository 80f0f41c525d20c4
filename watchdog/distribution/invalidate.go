package distribution

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront/types"
)

// CloudFront's quotas of invalidations in progress, for each distribution.
const (
	maxPaths     = 3000
	maxWildcards = 15
)

// Invalidate removes paths from the edge and returns the ids of the
// invalidations made. Paths begin with a slash; a star may end one. More than the
// quotas (3,000 paths, 15 of them with a star) go in batches, each after the one
// before it was completed, so that the call may take DeployTimeout a batch; the
// last batch is not waited for.
func (c *Client) Invalidate(ctx context.Context, paths []string) ([]string, error) {
	batches, err := batch(paths)
	if err != nil {
		return nil, err
	}
	var made []string
	for i, paths := range batches {
		if i > 0 {
			if err := c.WaitInvalidated(ctx, made[i-1]); err != nil {
				return made, err
			}
		}
		id, err := c.invalidate(ctx, paths)
		if err != nil {
			return made, err
		}
		made = append(made, id)
	}
	return made, nil
}

func (c *Client) invalidate(ctx context.Context, paths []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.CallTimeout)
	defer cancel()
	const action = "cloudfront:CreateInvalidation"
	out, err := c.cloudfront.CreateInvalidation(ctx, &cloudfront.CreateInvalidationInput{
		DistributionId: &c.target.DistributionID,
		InvalidationBatch: &types.InvalidationBatch{
			// One for all retries: CloudFront makes only one invalidation of it.
			CallerReference: aws.String("karui-" + rand.Text()),
			Paths:           &types.Paths{Quantity: aws.Int32(int32(len(paths))), Items: paths}, //nolint:gosec // at most maxPaths
		},
	})
	if err != nil {
		return "", c.explain(ctx, action, c.target.ARN(), err)
	}
	if out.Invalidation == nil || aws.ToString(out.Invalidation.Id) == "" {
		return "", &Error{
			Kind: KindDocument, Action: action, On: c.target.ARN(), Message: "the answer holds no invalidation",
			Hint: "look at the distribution's invalidations in the CloudFront console",
		}
	}
	return *out.Invalidation.Id, nil
}

// WaitInvalidated waits until an invalidation is completed, as WaitDeployed does
// and with its limit.
func (c *Client) WaitInvalidated(ctx context.Context, id string) error {
	return c.poll(ctx, "Completed", func(ctx context.Context) (string, error) {
		out, err := c.cloudfront.GetInvalidation(ctx, &cloudfront.GetInvalidationInput{DistributionId: &c.target.DistributionID, Id: &id})
		if err != nil {
			return "", c.explain(ctx, "cloudfront:GetInvalidation", c.target.ARN(), err)
		}
		if out.Invalidation == nil {
			return "", nil
		}
		status := aws.ToString(out.Invalidation.Status)
		if strings.EqualFold(status, "Completed") { // some emulators shout
			return "Completed", nil
		}
		return status, nil
	})
}

// batch checks paths and cuts them by the quotas.
func batch(paths []string) ([][]string, error) {
	if len(paths) == 0 {
		return nil, fmt.Errorf("invalidate: no path: expected at least one, as /images/*")
	}
	var out [][]string
	var current []string
	wildcards := 0
	for _, p := range paths {
		if !strings.HasPrefix(p, "/") || strings.Contains(strings.TrimSuffix(p, "*"), "*") || strings.ContainsAny(p, " \t\r\n") {
			return nil, fmt.Errorf("invalidate %q: expected a path as /images/*, with at most one star, at the end", p)
		}
		star := 0
		if strings.HasSuffix(p, "*") {
			star = 1
		}
		if len(current) == maxPaths || wildcards+star > maxWildcards {
			out, current, wildcards = append(out, current), nil, 0
		}
		current, wildcards = append(current, p), wildcards+star
	}
	return append(out, current), nil
}
