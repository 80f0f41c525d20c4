package invalidation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
)

const (
	// SessionName is what CloudTrail shows of who did it.
	SessionName = "karui-purge"

	// homeRegion signs CloudFront's requests: a global service that lives there.
	homeRegion      = "us-east-1"
	homeRegionChina = "cn-northwest-1"

	// attemptTimeout bounds one HTTP request and its answer, callTimeout a call with
	// its tries. What passes only later is the caller's to try again.
	attemptTimeout = 15 * time.Second
	callTimeout    = 45 * time.Second
	maxAttempts    = 3
	maxBackoff     = 3 * time.Second
)

// Target is a distribution, and who may invalidate there.
type Target struct {
	// Distribution is its id.
	Distribution string
	// RoleARN is the role to assume; without one karui's own credentials do it.
	RoleARN string
	// ExternalID goes with the role; empty for none.
	ExternalID string
}

// Account tells accounts apart, "" for that of karui's own credentials.
func (t Target) Account() string {
	if parts := strings.SplitN(t.RoleARN, ":", 6); len(parts) == 6 {
		return parts[4]
	}
	return ""
}

// arn is the distribution's, as far as the role tells the account.
func (t Target) arn() string {
	parts := strings.SplitN(t.RoleARN, ":", 6)
	if len(parts) != 6 {
		return "distribution " + t.Distribution
	}
	return fmt.Sprintf("arn:%s:cloudfront::%s:distribution/%s", parts[1], parts[4], t.Distribution)
}

// who names whose rights count.
func (t Target) who() string {
	if t.RoleARN == "" {
		return "karui's own AWS identity"
	}
	return t.RoleARN
}

// Invalidation is one that CloudFront has taken.
type Invalidation struct {
	ID string
	// Completed is whether the whole edge has forgotten.
	Completed bool
}

// Client invalidates at one target. It may be used from several goroutines. Close
// it.
type Client struct {
	target     Target
	cloudfront *cloudfront.Client
	session    *session
}

// Load finds karui's own credentials and region as every AWS program does:
// environment, shared files, container, instance. AWS_ENDPOINT_URL_CLOUDFRONT and
// _STS are honoured.
func Load(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithLogger(logging.Nop{}), // what it has to say is in the errors
		config.WithDefaultRegion(homeRegion),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(attemptTimeout)),
	)
	if err != nil {
		return aws.Config{}, fmt.Errorf("load AWS configuration: %w", err)
	}
	return cfg, nil
}

// New makes a client for a target. It asks AWS nothing yet.
func New(base aws.Config, t Target) *Client {
	base = base.Copy()
	if base.Region == "" {
		base.Region = homeRegion
	}
	// Of its own, since the SDK's token bucket would make one site's long trouble
	// that of all others.
	retryer := retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff, o.RateLimiter = maxAttempts, maxBackoff, ratelimit.None
	})
	c := &Client{target: t}
	if t.RoleARN != "" {
		asSelf := sts.NewFromConfig(base, func(o *sts.Options) { o.Retryer, o.RetryMaxAttempts = retryer, 0 })
		c.session = newSession(asSelf, t)
		base.Credentials = c.session.cache
	}
	c.cloudfront = cloudfront.NewFromConfig(base, func(o *cloudfront.Options) {
		o.Region = homeRegion
		if strings.HasPrefix(t.RoleARN, "arn:aws-cn:") {
			o.Region = homeRegionChina
		}
		o.Retryer, o.RetryMaxAttempts = retryer, 0
	})
	return c
}

// Close gives up what is under way to get a session, and waits for it.
func (c *Client) Close() {
	if c.session != nil {
		c.session.close()
	}
}

// Create begins an invalidation. The reference stands for the paths: with the same
// two, CloudFront makes only one invalidation however often it is asked. Errors are
// of type *Error.
func (c *Client) Create(ctx context.Context, reference string, paths []string) (Invalidation, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	const action = "cloudfront:CreateInvalidation"
	out, err := c.cloudfront.CreateInvalidation(ctx, &cloudfront.CreateInvalidationInput{
		DistributionId: &c.target.Distribution,
		InvalidationBatch: &types.InvalidationBatch{
			CallerReference: &reference,
			Paths:           &types.Paths{Quantity: aws.Int32(int32(len(paths))), Items: paths}, //nolint:gosec // a batch is at most MaxExact and MaxWildcards
		},
	})
	if err != nil {
		return Invalidation{}, c.target.explain(ctx, action, err)
	}
	return c.read(action, out.Invalidation)
}

// Get looks how an invalidation does. Errors are of type *Error.
func (c *Client) Get(ctx context.Context, id string) (Invalidation, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	const action = "cloudfront:GetInvalidation"
	out, err := c.cloudfront.GetInvalidation(ctx, &cloudfront.GetInvalidationInput{DistributionId: &c.target.Distribution, Id: &id})
	if err != nil {
		return Invalidation{}, c.target.explain(ctx, action, err)
	}
	return c.read(action, out.Invalidation)
}

func (c *Client) read(action string, v *types.Invalidation) (Invalidation, error) {
	if v == nil || aws.ToString(v.Id) == "" {
		return Invalidation{}, &Error{
			Kind: KindService, Action: action, On: c.target.arn(), Message: "the answer holds no invalidation",
			Hint: "look at the distribution's invalidations in the CloudFront console",
		}
	}
	// Some emulators shout.
	return Invalidation{ID: *v.Id, Completed: strings.EqualFold(aws.ToString(v.Status), "Completed")}, nil
}
