package cloudfront

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// AllowAll is a policy that permits everything.
const AllowAll = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`

// Credentials sign requests. SessionToken is empty for a user's own.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string
	Expires         time.Time // zero for a user's own
}

// Role is an IAM role as far as the double knows one.
type Role struct {
	// Name, without path; the ARN follows from it and the account.
	Name string

	// ExternalID has to be given on AssumeRole. Empty means the trust policy
	// has no such condition and takes any or none.
	ExternalID string

	// Trusted are ARNs of users and roles that may assume it. Empty means every
	// principal of the double may.
	Trusted []string

	// Policy is the role's identity policy, see policy.go for what is
	// understood. Empty allows nothing.
	Policy string

	// MaxSession bounds DurationSeconds. Default 1 h, as in IAM.
	MaxSession time.Duration
}

type role struct {
	Role
	policy *policy // nil allows nothing
}

type user struct {
	name   string
	policy *policy
}

// session is what one AssumeRole gave out.
type session struct {
	secret, token string
	role, name    string
	policy        *policy // nil: none was passed, the role's is all
	expires       time.Time
	chained       bool
}

type key struct {
	secret string
	user   string
}

type iamState struct {
	users    map[string]*user
	keys     map[string]key
	roles    map[string]*role
	sessions map[string]*session
	denials  map[string][]string // principal or role ARN -> actions
}

func newIAMState() iamState {
	return iamState{
		users: make(map[string]*user), keys: make(map[string]key), roles: make(map[string]*role),
		sessions: make(map[string]*session), denials: make(map[string][]string),
	}
}

// principal is who signed a request.
type principal struct {
	arn     string // of the user, or of the assumed role with its session name
	userID  string
	role    string  // name; empty for a user
	session string  // name; empty for a user
	user    string  // name; empty for a role
	policy  *policy // of the session; nil for a user or when none was passed
}

var roleName = regexp.MustCompile(`^[A-Za-z0-9+=,.@_-]{1,64}$`)

// AddUser makes an IAM user with this policy and gives it an access key.
func (d *Double) AddUser(name, policyDocument string) (Credentials, error) {
	if !roleName.MatchString(name) {
		return Credentials{}, fmt.Errorf("user name %q: expected 1 to 64 letters, digits or +=,.@_-", name)
	}
	p, err := parsePolicy(policyDocument)
	if err != nil {
		return Credentials{}, fmt.Errorf("policy of user %s: %w", name, err)
	}
	c := Credentials{AccessKeyID: newID("AKIA", 16), SecretAccessKey: newID("", 40)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.iam.users[name] = &user{name: name, policy: p}
	d.iam.keys[c.AccessKeyID] = key{secret: c.SecretAccessKey, user: name}
	return c, nil
}

// PutRole makes or replaces a role and returns its ARN. Sessions of a replaced
// role go on under the new policy, as in IAM.
func (d *Double) PutRole(r Role) (string, error) {
	if !roleName.MatchString(r.Name) {
		return "", fmt.Errorf("role name %q: expected 1 to 64 letters, digits or +=,.@_-", r.Name)
	}
	if r.ExternalID != "" && !validExternalID(r.ExternalID) {
		return "", errors.New("external id: expected 2 to 1224 letters, digits or +=,.@:/-")
	}
	if r.MaxSession == 0 {
		r.MaxSession = time.Hour
	}
	stored := &role{Role: r}
	if r.Policy != "" {
		p, err := parsePolicy(r.Policy)
		if err != nil {
			return "", fmt.Errorf("policy of role %s: %w", r.Name, err)
		}
		stored.policy = p
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.iam.roles[r.Name] = stored
	return d.roleARN(r.Name), nil
}

func (d *Double) roleARN(name string) string { return "arn:aws:iam::" + d.account + ":role/" + name }

// Deny takes an action ("cloudfront:UpdateDistribution") away from a role or user
// (by ARN), as if its policy had never allowed it.
func (d *Double) Deny(arn, action string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.iam.denials[arn] = append(d.iam.denials[arn], action)
}

// Allow ends what Deny began.
func (d *Double) Allow(arn, action string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.iam.denials[arn] = slices.DeleteFunc(d.iam.denials[arn], func(a string) bool { return a == action })
}

// principalFor finds who an access key and session token belong to, and the
// secret that the signature has to be made with.
func (d *Double) principalFor(accessKey, token string) (principal, string, *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	invalid := failf(http.StatusForbidden, "InvalidClientTokenId", "The security token included in the request is invalid.")
	if k, ok := d.iam.keys[accessKey]; ok {
		if token != "" {
			return principal{}, "", invalid
		}
		return principal{arn: "arn:aws:iam::" + d.account + ":user/" + k.user, userID: "AIDA" + k.user, user: k.user}, k.secret, nil
	}
	s, ok := d.iam.sessions[accessKey]
	if !ok || s.token != token {
		return principal{}, "", invalid
	}
	if !d.now().Before(s.expires) {
		return principal{}, "", failf(http.StatusForbidden, "ExpiredToken", "The security token included in the request is expired")
	}
	return principal{
		arn:    "arn:aws:sts::" + d.account + ":assumed-role/" + s.role + "/" + s.name,
		userID: "AROA" + s.role + ":" + s.name, role: s.role, session: s.name, policy: s.policy,
	}, s.secret, nil
}

// authorize asks the identity policy, the session policy and Deny whether a
// principal may do this. Messages are those of IAM.
func (d *Double) authorize(by principal, action, resource, service string) *failure {
	if action == serviceSTS+":"+actionGetCallerIdentity {
		return nil // needs no permission, and cannot be denied
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var identity *policy
	ownARN := by.arn
	if by.role != "" {
		ownARN = d.roleARN(by.role)
		if r := d.iam.roles[by.role]; r != nil {
			identity = r.policy
		}
	} else if u := d.iam.users[by.user]; u != nil {
		identity = u.policy
	}
	verdictOf := func(p *policy) verdict {
		if p == nil {
			return silent
		}
		return p.evaluate(action, resource)
	}
	why := ""
	switch {
	case slices.Contains(d.iam.denials[ownARN], action):
		why = "because no identity-based policy allows the " + action + " action"
	case verdictOf(identity) == denied:
		why = "with an explicit deny in an identity-based policy"
	case by.policy != nil && verdictOf(by.policy) == denied:
		why = "with an explicit deny in a session policy"
	case verdictOf(identity) != allowed:
		why = "because no identity-based policy allows the " + action + " action"
	case by.policy != nil && verdictOf(by.policy) != allowed:
		why = "because no session policy allows the " + action + " action"
	}
	if why == "" {
		return nil
	}
	return accessDenied(by, action, resource, service, why)
}

func accessDenied(by principal, action, resource, service, why string) *failure {
	code := "AccessDenied"
	if service == serviceSES {
		code = "AccessDeniedException"
	}
	return failf(http.StatusForbidden, code, "%s", strings.TrimSpace(fmt.Sprintf(
		"User: %s is not authorized to perform: %s on resource: %s %s", by.arn, action, resource, why)))
}
