package distribution

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

const (
	// sessionDuration is what every role allows, also one assumed by a role.
	sessionDuration = time.Hour

	// renewBefore is how long before its end a session is replaced.
	renewBefore = 5 * time.Minute
)

// assumer gets the role's sessions and keeps the current one.
type assumer struct {
	client  *sts.Client
	target  Target
	policy  string
	timeout time.Duration
	cache   *aws.CredentialsCache

	// The SDK's cache fetches on a goroutine of its own, with a context that
	// does not end with the caller's. life ends it, running waits for it.
	life    context.Context
	end     context.CancelFunc
	mu      sync.Mutex // guards closed, and that running does not grow after it
	closed  bool
	running sync.WaitGroup
}

var errClosed = errors.New("client is closed")

func newAssumer(client *sts.Client, t Target, policy string, o Options) *assumer {
	a := &assumer{client: client, target: t, policy: policy, timeout: o.CallTimeout}
	a.life, a.end = context.WithCancel(context.Background())
	provider := stscreds.NewAssumeRoleProvider(a, t.RoleARN, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = SessionName
		o.Duration = sessionDuration
		o.Policy = &policy
		if t.ExternalID != "" {
			o.ExternalID = &t.ExternalID
		}
	})
	a.cache = aws.NewCredentialsCache(provider, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = renewBefore })
	return a
}

// AssumeRole is what stscreds calls. It bounds the call and notes it.
func (a *assumer) AssumeRole(ctx context.Context, in *sts.AssumeRoleInput, opts ...func(*sts.Options)) (*sts.AssumeRoleOutput, error) {
	if !a.begin() {
		return nil, errClosed
	}
	defer a.running.Done()
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	defer context.AfterFunc(a.life, cancel)()
	out, err := a.client.AssumeRole(ctx, in, opts...)
	step := Step{Action: "sts:AssumeRole"}
	if err != nil {
		failure := a.target.explain(ctx, step.Action, a.target.RoleARN, err)
		note(ctx, step, failure)
		return nil, failure
	}
	step.RequestID, _ = awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
	note(ctx, step, nil)
	return out, nil
}

func (a *assumer) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.running.Add(1)
	}
	return !a.closed
}

func (a *assumer) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.end()
	a.running.Wait()
}

// TakesWrongExternalID tries to assume the role with an external id that cannot
// be right. True means that the role's trust has no condition on it, so that the
// configured id protects nothing. The session is thrown away.
func (c *Client) TakesWrongExternalID(ctx context.Context) (bool, error) {
	wrong := "karui-wrong-" + rand.Text()
	duration := int32(15 * 60) // the shortest there is
	name := SessionName
	a := c.assumer
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	_, err := a.client.AssumeRole(ctx, &sts.AssumeRoleInput{
		RoleArn: &a.target.RoleARN, RoleSessionName: &name, ExternalId: &wrong, DurationSeconds: &duration, Policy: &a.policy,
	})
	if err == nil {
		return true, nil
	}
	failure := a.target.explain(ctx, "sts:AssumeRole", a.target.RoleARN, err)
	if failure.Kind == KindAssume {
		return false, nil
	}
	return false, failure
}
