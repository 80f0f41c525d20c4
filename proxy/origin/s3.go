package origin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
)

// AWS are the ways to credentials that tests, or a program with its own, put in
// the place of the environment's. Nil fields mean the environment's.
type AWS struct {
	// Credentials are karui's own, which assume the role or read the bucket.
	Credentials aws.CredentialsProvider
	// STS assumes the role.
	STS stscreds.AssumeRoleAPIClient
}

// sessionName is what CloudTrail shows of who reads.
const sessionName = "karui"

// credentialTimeout bounds the wait for credentials; the fetch that waits for them
// has limits of its own.
const credentialTimeout = 5 * time.Second

// emptyHash is the SHA-256 of a request without a body.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// bucket makes signed requests for the objects of one bucket under one prefix.
// Only GET and HEAD of an object are ever sent, and OPTIONS, which S3 answers for
// browsers without a signature.
type bucket struct {
	name, prefix string
	region       string
	point        endpoint
	signer       *v4.Signer
	credentials  *aws.CredentialsCache
}

// newBucket finds the address of the bucket that a place's url names, and the way
// to credentials. It asks nobody.
func newBucket(raw string, p PlaceConfig, o *AWS) (*bucket, error) {
	name, prefix, err := parseS3(raw)
	if err != nil {
		return nil, err
	}
	if p.Region == "" {
		return nil, errors.New("needs the bucket's `region`")
	}
	cfg, err := awsconfig.LoadDefaultConfig(context.Background(),
		awsconfig.WithLogger(logging.Nop{}),
		awsconfig.WithRegion(p.Region),
		awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(credentialTimeout)),
		// This package decides what is tried again.
		awsconfig.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
	)
	if err != nil {
		return nil, fmt.Errorf("load AWS configuration: %w", err)
	}
	if o == nil {
		o = &AWS{}
	}
	if o.Credentials != nil {
		cfg.Credentials = o.Credentials
	}
	b := &bucket{name: name, prefix: prefix, region: p.Region, signer: v4.NewSigner(func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping = true // S3 signs the path as it is sent
	})}
	if b.point, err = b.resolve(cfg, p.Endpoint); err != nil {
		return nil, err
	}
	provider := cfg.Credentials
	if p.RoleARN != "" {
		assume := o.STS
		if assume == nil {
			assume = sts.NewFromConfig(cfg)
		}
		provider = stscreds.NewAssumeRoleProvider(assume, p.RoleARN, func(r *stscreds.AssumeRoleOptions) { r.RoleSessionName = sessionName })
	}
	b.credentials = aws.NewCredentialsCache(boundedProvider{provider}, func(c *aws.CredentialsCacheOptions) {
		// Renewed ahead of their end, so that no fetch meets it.
		c.ExpiryWindow, c.ExpiryWindowJitterFrac = 5*time.Minute, 0.5
	})
	return b, nil
}

// boundedProvider ends a request for credentials after credentialTimeout. The
// cache shares it between fetches, so it outlives the one that began it.
type boundedProvider struct{ next aws.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider.
func (p boundedProvider) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if p.next == nil {
		return aws.Credentials{}, errors.New("there are none in the environment")
	}
	ctx, cancel := context.WithTimeout(ctx, credentialTimeout)
	defer cancel()
	return p.next.Retrieve(ctx)
}

// resolve gives the address by the SDK's own rules. With an endpoint, configured
// or of the environment, the bucket is in the path.
func (b *bucket) resolve(cfg aws.Config, custom string) (endpoint, error) {
	opts := s3.NewFromConfig(cfg).Options()
	base := opts.BaseEndpoint
	if custom != "" {
		base = &custom
	}
	where, err := s3.NewDefaultEndpointResolverV2().ResolveEndpoint(context.Background(), s3.EndpointParameters{
		Bucket: &b.name, Region: &b.region, Endpoint: base, ForcePathStyle: aws.Bool(base != nil),
		UseFIPS:      aws.Bool(opts.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled),
		UseDualStack: aws.Bool(opts.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled),
	})
	if err != nil {
		return endpoint{}, fmt.Errorf("has no address: %w", err)
	}
	return parseEndpoint(where.URI.String(), "")
}

// request makes the signed request for a target.
func (b *bucket) request(ctx context.Context, r Request, fixed http.Header) (*http.Request, error) {
	if r.Body != nil {
		return nil, errors.New("a bucket is only read from")
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return nil, errors.New("a bucket is only read from")
	}
	if err := checkTarget(r.Method, r.Target); err != nil {
		return nil, err
	}
	key, err := objectKey(b.prefix, r.Target)
	if err != nil {
		return nil, err
	}
	path := b.point.base + "/" + escapeKey(key)
	h := objectHeaders(r.Header)
	for name, values := range fixed {
		h[name] = values
	}
	if r.Method != http.MethodOptions {
		if err := b.sign(ctx, r.Method, path, h); err != nil {
			return nil, err
		}
	}
	h["User-Agent"] = []string{""} // else net/http would send its own name
	point := b.point
	point.base = ""
	u, err := point.url(r.Method, path)
	if err != nil {
		return nil, err
	}
	return (&http.Request{Method: r.Method, URL: u, Host: b.point.host, Header: h}).WithContext(ctx), nil
}

// sign adds what proves who asks.
func (b *bucket) sign(ctx context.Context, method, path string, h http.Header) error {
	creds, err := b.credentials.Retrieve(ctx)
	if err != nil {
		return &credentialsError{err}
	}
	clear, err := url.PathUnescape(path)
	if err != nil {
		return err // escapeKey wrote it
	}
	h["X-Amz-Content-Sha256"] = []string{emptyHash}
	signed := &http.Request{
		Method: method, Host: b.point.host, Header: h,
		URL: &url.URL{Scheme: b.point.scheme, Host: b.point.host, Path: clear, RawPath: path},
	}
	if err := b.signer.SignHTTP(ctx, creds, signed, emptyHash, "s3", b.region, time.Now()); err != nil {
		return &credentialsError{err}
	}
	return nil
}

// credentialsError is a request that could not be signed.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }
