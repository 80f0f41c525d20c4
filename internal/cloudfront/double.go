// Package cloudfront is a double of the three AWS services that karui talks to
// about a distribution: CloudFront's control plane (REST and XML), STS (query
// protocol) and SES v2 (REST and JSON). It speaks real HTTP to the real SDK,
// so that tests and the demonstration need no AWS account.
//
// Guaranteed: distributions are kept as the XML documents that came, byte for
// byte, never through a struct, so an element that a client forgets is gone and
// one that a client sends back survives. It is stricter than AWS: every
// request's signature is verified over its body, If-Match is required and
// compared, a document that breaks one of the rules that matter to an origin
// group is refused, and every action is checked against the policies of the
// user or role that signed it. What AWS does in its bad moments (throttling,
// latency, connections cut before or after the work was done, denied actions,
// namespace prefixes, slow deployments) can be set while it runs.
//
// Not guaranteed: it knows the actions listed in action.go and no others, it
// checks only part of what AWS checks in a distribution, evaluates no
// conditions in policies, keeps everything in memory, and its error messages
// follow those of AWS only where one is known. It serves no viewers: package
// edge does, which reads what it needs through DeployedAt, CachePolicy,
// OriginRequestPolicy, Function and InvalidationsAfter.
package cloudfront

import (
	"sync"
	"time"
)

const (
	// Namespace is the XML namespace of the API version that is served.
	Namespace = "http://cloudfront.amazonaws.com/doc/2020-05-31/"

	// apiVersion is the first segment of every CloudFront path.
	apiVersion = "2020-05-31"

	// defaultAccount is the account that AWS uses in its own examples.
	defaultAccount = "111122223333"
)

// Options are the settings that a Double starts with. The zero value works.
type Options struct {
	// Account is the 12-digit account that owns users, roles and
	// distributions. Default: 111122223333.
	Account string

	// Now is the clock by which signatures, sessions, deployments and
	// throttling are judged. Default: time.Now.
	Now func() time.Time

	// DeployDelay is how long a change stays InProgress. Default: none.
	DeployDelay time.Duration

	// InvalidationDelay is how long an invalidation stays InProgress.
	// Default: none.
	InvalidationDelay time.Duration
}

// Double is the state of the three services. It is an http.Handler; Start gives
// it an address. All methods may be called at any time from any goroutine.
type Double struct {
	account string
	now     func() time.Time

	// mu guards everything below. It is never held while a hook runs, while
	// latency passes or while bytes go to a client.
	mu             sync.Mutex
	distributions  map[string]*distribution
	policies       map[string]CachePolicy
	originPolicies map[string]OriginRequestPolicy
	functions      map[string]Function
	invalidations  map[string][]*invalidation
	iam            iamState
	mail           mailState
	faults         faultState
	calls          callLog
	deployDelay    time.Duration
	purgeDelay     time.Duration
	readLag        time.Duration
	prefix         string
}

// New makes a Double without users, roles or distributions.
func New(o Options) *Double {
	if o.Account == "" {
		o.Account = defaultAccount
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Double{
		account:        o.Account,
		now:            o.Now,
		distributions:  make(map[string]*distribution),
		policies:       make(map[string]CachePolicy),
		originPolicies: make(map[string]OriginRequestPolicy),
		functions:      make(map[string]Function),
		invalidations:  make(map[string][]*invalidation),
		iam:            newIAMState(),
		faults:         newFaultState(),
		deployDelay:    o.DeployDelay,
		purgeDelay:     o.InvalidationDelay,
	}
}

// Account is the 12-digit account that owns everything here.
func (d *Double) Account() string { return d.account }

// SetDeployDelay sets how long changes made from now on stay InProgress.
func (d *Double) SetDeployDelay(delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deployDelay = delay
}

// SetInvalidationDelay sets how long invalidations made from now on stay
// InProgress.
func (d *Double) SetInvalidationDelay(delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.purgeDelay = delay
}

// SetReadLag makes GetDistributionConfig answer with the version before the
// newest for so long after each change, as a store with lagging copies does.
func (d *Double) SetReadLag(lag time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readLag = lag
}

// SetPrefix makes CloudFront's answers use this namespace prefix, as in
// <cf:Distribution xmlns:cf="...">. Empty (the default) means the documents go
// out as they came in.
func (d *Double) SetPrefix(prefix string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prefix = prefix
}
