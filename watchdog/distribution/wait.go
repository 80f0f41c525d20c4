package distribution

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront"
)

// Deployment is what WaitDeployed saw.
type Deployment struct {
	Took  time.Duration // until Deployed was seen
	ETag  string        // the version that is deployed
	Looks int           // how often was asked
}

// WaitDeployed waits until the newest configuration has reached the whole edge.
// It looks at once and then every PollEvery, for DeployTimeout at most
// (KindTimeout). Passing trouble (no network, throttling) does not end the wait.
func (c *Client) WaitDeployed(ctx context.Context) (Deployment, error) {
	start := c.opt.Now()
	var d Deployment
	err := c.poll(ctx, "Deployed", func(ctx context.Context) (string, error) {
		d.Looks++
		const action = "cloudfront:GetDistribution"
		out, err := c.cloudfront.GetDistribution(ctx, &cloudfront.GetDistributionInput{Id: &c.target.DistributionID})
		if err != nil {
			return "", c.explain(ctx, action, c.target.ARN(), err)
		}
		if out.Distribution == nil || out.Distribution.Status == nil {
			return "", &Error{
				Kind: KindDocument, Action: action, On: c.target.ARN(), Message: "the answer holds no status",
				Hint: "look at the distribution in the CloudFront console",
			}
		}
		d.ETag = aws.ToString(out.ETag)
		return *out.Distribution.Status, nil
	})
	d.Took = c.opt.Now().Sub(start)
	return d, err
}

// poll asks until the wanted status comes.
func (c *Client) poll(ctx context.Context, want string, status func(context.Context) (string, error)) error {
	waiting, cancel := context.WithTimeout(ctx, c.opt.DeployTimeout)
	defer cancel()
	tick := time.NewTicker(c.opt.PollEvery)
	defer tick.Stop()
	last := ""
	for {
		got, err := c.ask(waiting, status)
		switch {
		case err == nil && got == want:
			return nil
		case err == nil:
			last = fmt.Sprintf("the status is %q", got)
		case waiting.Err() == nil && !again(err):
			return err
		case waiting.Err() == nil:
			last = err.Error()
		}
		select {
		case <-tick.C:
		case <-waiting.Done():
			if ctx.Err() != nil {
				return c.explain(ctx, "", "", ctx.Err())
			}
			return &Error{
				Kind: KindTimeout, Message: fmt.Sprintf("not %s within %s: %s", want, c.opt.DeployTimeout, last), Err: context.DeadlineExceeded,
				Hint: "CloudFront sometimes takes longer; nothing needs to be undone. See the distribution's status in the console, or raise deploy_timeout",
			}
		}
	}
}

func (c *Client) ask(ctx context.Context, status func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.CallTimeout)
	defer cancel()
	return status(ctx)
}
