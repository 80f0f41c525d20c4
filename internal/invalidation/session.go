package invalidation

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

const (
	// sessionDuration is what every role allows, also one assumed by a role.
	sessionDuration = time.Hour
	// renewBefore is how long before its end a session is replaced.
	renewBefore = 5 * time.Minute
)

// session gets the role's sessions and keeps the current one.
type session struct {
	client *sts.Client
	target Target
	cache  *aws.CredentialsCache

	// The SDK's cache fetches on a goroutine of its own, with a context that does not
	// end with the caller's. life ends it, running waits for it.
	life    context.Context
	end     context.CancelFunc
	mu      sync.Mutex // guards closed, and that running does not grow after it
	closed  bool
	running sync.WaitGroup
}

var errClosed = errors.New("client is closed")

func newSession(client *sts.Client, t Target) *session {
	s := &session{client: client, target: t}
	s.life, s.end = context.WithCancel(context.Background())
	provider := stscreds.NewAssumeRoleProvider(s, t.RoleARN, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = SessionName
		o.Duration = sessionDuration
		o.Policy = aws.String(sessionPolicy(t))
		if t.ExternalID != "" {
			o.ExternalID = &t.ExternalID
		}
	})
	s.cache = aws.NewCredentialsCache(provider, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = renewBefore })
	return s
}

// sessionPolicy narrows the session to what is called, on the distribution alone.
func sessionPolicy(t Target) string {
	b, err := json.Marshal(map[string]any{
		"Version": "2012-10-17",
		"Statement": []map[string]any{{
			"Effect": "Allow", "Resource": t.arn(),
			"Action": []string{"cloudfront:CreateInvalidation", "cloudfront:GetInvalidation"},
		}},
	})
	if err != nil {
		panic(err) // maps of strings
	}
	return string(b)
}

// AssumeRole is what stscreds calls. It bounds the call.
func (s *session) AssumeRole(ctx context.Context, in *sts.AssumeRoleInput, opts ...func(*sts.Options)) (*sts.AssumeRoleOutput, error) {
	if !s.begin() {
		return nil, errClosed
	}
	defer s.running.Done()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	out, err := s.client.AssumeRole(ctx, in, opts...)
	if err != nil {
		return nil, s.target.explain(ctx, AssumeAction, err)
	}
	return out, nil
}

func (s *session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.running.Wait()
}
