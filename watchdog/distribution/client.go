package distribution

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
)

const (
	// SessionName is what CloudTrail shows of who did it.
	SessionName = "karui-watchdog"

	// homeRegion signs CloudFront's requests: a global service that lives there.
	homeRegion      = "us-east-1"
	homeRegionChina = "cn-northwest-1"

	// attemptTimeout bounds one HTTP request and its answer.
	attemptTimeout = 30 * time.Second

	// maxAttempts and maxBackoff of one call. A throttled call waits 1, 2, 4, 8,
	// 16, 20, 20 ... s, each jittered: over the minute that CloudFront's throttling
	// lasts with near certainty.
	maxAttempts = 15
	maxBackoff  = 20 * time.Second
)

// Options are the limits of a Client. Zero values mean the defaults.
type Options struct {
	// CallTimeout bounds one API call with its retries. Default 3 min.
	CallTimeout time.Duration

	// WriteTimeout bounds a whole swap: read, write, read back, and again after
	// conflicts. Default 10 min.
	WriteTimeout time.Duration

	// DeployTimeout bounds WaitDeployed (deploy_timeout). Default 15 min.
	DeployTimeout time.Duration

	// PollEvery is how often a wait looks. Default 5 s.
	PollEvery time.Duration

	// Now stamps the steps of a result. Default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, fallback time.Duration) {
		if *d <= 0 {
			*d = fallback
		}
	}
	set(&o.CallTimeout, 3*time.Minute)
	set(&o.WriteTimeout, 10*time.Minute)
	set(&o.DeployTimeout, 15*time.Minute)
	set(&o.PollEvery, 5*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Client reads and changes one Target. It may be used from several goroutines.
// Close it when done.
type Client struct {
	target     Target
	opt        Options
	cloudfront *cloudfront.Client
	asRole     *sts.Client // with the role's session
	assumer    *assumer
	reach      *reach
}

// Load finds the watchdog's own credentials and region as every AWS program does:
// environment, shared files, container, instance. AWS_ENDPOINT_URL_CLOUDFRONT,
// _STS and _SESV2 are honoured. One result serves all clients.
//
// The SDK's own log is left out: what it has to say about a failure is in the
// errors, and it writes lines of its own making.
func Load(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithLogger(logging.Nop{}),
		config.WithDefaultRegion(homeRegion),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(attemptTimeout)),
	)
	if err != nil {
		return aws.Config{}, fmt.Errorf("load AWS configuration: %w", err)
	}
	return cfg, nil
}

// New makes a client for a target. It asks AWS nothing yet; mistakes in the
// target are all reported at once.
func New(base aws.Config, t Target, o Options) (*Client, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	policy, err := SessionPolicy(t)
	if err != nil {
		return nil, err
	}
	if base.Region == "" {
		base.Region = homeRegion
	}
	if base.HTTPClient == nil {
		base.HTTPClient = awshttp.NewBuildableClient().WithTimeout(attemptTimeout)
	}
	base = base.Copy()
	way := &reach{next: base.HTTPClient}
	base.HTTPClient = way
	retryer := newRetryer()
	asSelf := sts.NewFromConfig(base, func(o *sts.Options) { o.Retryer, o.RetryMaxAttempts = retryer, 0 })
	a := newAssumer(asSelf, t, policy, o)
	session := base.Copy()
	session.Credentials = a.cache
	c := &Client{target: t, opt: o, assumer: a, reach: way}
	c.asRole = sts.NewFromConfig(session, func(o *sts.Options) { o.Retryer, o.RetryMaxAttempts = retryer, 0 })
	c.cloudfront = cloudfront.NewFromConfig(session, func(o *cloudfront.Options) {
		o.Region = homeRegion
		if partition, _ := t.partition(); partition == "aws-cn" {
			o.Region = homeRegionChina
		}
		o.Retryer, o.RetryMaxAttempts = retryer, 0
	})
	return c, nil
}

// newRetryer is the SDK's, with more patience. Its token bucket is left out: it
// would make the calls of one site, long in trouble, spend those of a later one.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = maxAttempts
		o.MaxBackoff = maxBackoff
		o.RateLimiter = ratelimit.None
	})
}

// Target is what the client was made for.
func (c *Client) Target() Target { return c.target }

// Close gives up an AssumeRole still under way and waits for it. The client is of
// no use afterwards.
func (c *Client) Close() { c.assumer.close() }

// Identity is the ARN of the session that acts, as AWS sees it.
func (c *Client) Identity(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.CallTimeout)
	defer cancel()
	out, err := c.asRole.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", c.explain(ctx, "sts:GetCallerIdentity", "", err)
	}
	return aws.ToString(out.Arn), nil
}

// trace collects the steps of one operation.
type trace struct {
	mu    sync.Mutex
	now   func() time.Time
	steps []Step
}

type traceKey struct{}

// traced gives a context a trace, so that what happens deep inside the SDK
// (AssumeRole) can be noted in its place.
func (c *Client) traced(ctx context.Context) (context.Context, *trace) {
	t := &trace{now: c.opt.Now}
	return context.WithValue(ctx, traceKey{}, t), t
}

// note adds a step to the context's trace, if it has one.
func note(ctx context.Context, s Step, err error) {
	t, ok := ctx.Value(traceKey{}).(*trace)
	if !ok {
		return
	}
	s.Outcome = "ok"
	if err != nil {
		s.Outcome = err.Error()
		var e *Error
		if errors.As(err, &e) && s.RequestID == "" {
			s.RequestID = e.RequestID
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Time = t.now()
	t.steps = append(t.steps, s)
}

func (t *trace) list() []Step {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Step(nil), t.steps...)
}
