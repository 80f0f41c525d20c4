package cloudfront

import (
	"encoding/xml"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	stsVersion   = "2011-06-15"
	stsNamespace = "https://sts.amazonaws.com/doc/2011-06-15/"

	// Limits of AssumeRole: session duration, and that of a role assumed by a
	// role; characters of an inline session policy.
	minSession       = 15 * time.Minute
	maxSession       = 12 * time.Hour
	maxChained       = time.Hour
	maxSessionPolicy = 2048

	// Characters of what is given out, about as AWS's.
	secretLength = 40
	tokenLength  = 180
)

var (
	sessionName = regexp.MustCompile(`^[A-Za-z0-9_+=,.@-]{2,64}$`)
	externalID  = regexp.MustCompile(`^[A-Za-z0-9_+=,.@:/-]+$`)
)

func validExternalID(id string) bool {
	return len(id) >= 2 && len(id) <= 1224 && externalID.MatchString(id)
}

type callerIdentityXML struct {
	XMLName   xml.Name `xml:"GetCallerIdentityResponse"`
	Namespace string   `xml:"xmlns,attr"`
	Arn       string   `xml:"GetCallerIdentityResult>Arn"`
	UserID    string   `xml:"GetCallerIdentityResult>UserId"`
	Account   string   `xml:"GetCallerIdentityResult>Account"`
	RequestID string   `xml:"ResponseMetadata>RequestId"`
}

func (d *Double) getCallerIdentity(c *call) (reply, *failure) {
	return reply{status: http.StatusOK, body: mustXML(callerIdentityXML{
		Namespace: stsNamespace, Arn: c.by.arn, UserID: c.by.userID, Account: d.account, RequestID: c.requestID,
	})}, nil
}

type assumeRoleXML struct {
	XMLName       xml.Name `xml:"AssumeRoleResponse"`
	Namespace     string   `xml:"xmlns,attr"`
	Arn           string   `xml:"AssumeRoleResult>AssumedRoleUser>Arn"`
	AssumedRoleID string   `xml:"AssumeRoleResult>AssumedRoleUser>AssumedRoleId"`
	AccessKeyID   string   `xml:"AssumeRoleResult>Credentials>AccessKeyId"`
	Secret        string   `xml:"AssumeRoleResult>Credentials>SecretAccessKey"`
	Token         string   `xml:"AssumeRoleResult>Credentials>SessionToken"`
	Expiration    string   `xml:"AssumeRoleResult>Credentials>Expiration"`
	RequestID     string   `xml:"ResponseMetadata>RequestId"`
}

func validationError(format string, args ...any) *failure {
	return failf(http.StatusBadRequest, "ValidationError", "1 validation error detected: "+format, args...)
}

// assumeRole gives out a session. That the caller's own policy allows
// sts:AssumeRole was checked before; here the role's trust is asked.
func (d *Double) assumeRole(c *call) (reply, *failure) {
	form := c.form
	if !sessionName.MatchString(form.Get("RoleSessionName")) {
		return reply{}, validationError("Value '%s' at 'roleSessionName' failed to satisfy constraint: Member must satisfy regular expression pattern: [\\w+=,.@-]{2,64}", form.Get("RoleSessionName"))
	}
	if id, given := form.Get("ExternalId"), form.Has("ExternalId"); given && !validExternalID(id) {
		return reply{}, validationError("Value at 'externalId' failed to satisfy constraint: Member must satisfy regular expression pattern: [\\w+=,.@:\\/-]{2,1224}")
	}
	duration := time.Hour
	if text := form.Get("DurationSeconds"); text != "" {
		seconds, err := strconv.Atoi(text)
		duration = time.Duration(seconds) * time.Second
		if err != nil || duration < minSession || duration > maxSession {
			return reply{}, validationError("Value '%s' at 'durationSeconds' failed to satisfy constraint: Member must have value between 900 and 43200", text)
		}
	}
	var sessionPolicy *policy
	if text := form.Get("Policy"); text != "" {
		if len(text) > maxSessionPolicy {
			return reply{}, validationError("Value at 'policy' failed to satisfy constraint: Member must have length less than or equal to %d", maxSessionPolicy)
		}
		p, err := parsePolicy(text)
		if err != nil {
			return reply{}, failf(http.StatusBadRequest, "MalformedPolicyDocument", "%v", err)
		}
		sessionPolicy = p
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r, fail := d.trustedRole(c, duration)
	if fail != nil {
		return reply{}, fail
	}
	s := &session{
		secret: newID("", secretLength), token: newID("", tokenLength),
		role: r.Name, name: form.Get("RoleSessionName"), policy: sessionPolicy,
		expires: d.now().Add(duration).Truncate(time.Second), chained: c.by.role != "",
	}
	id := newID("ASIA", 16)
	d.dropExpiredSessions()
	d.iam.sessions[id] = s
	return reply{status: http.StatusOK, body: mustXML(assumeRoleXML{
		Namespace: stsNamespace, AssumedRoleID: "AROA" + r.Name + ":" + s.name,
		Arn:         "arn:aws:sts::" + d.account + ":assumed-role/" + r.Name + "/" + s.name,
		AccessKeyID: id, Secret: s.secret, Token: s.token,
		Expiration: s.expires.UTC().Format(time.RFC3339), RequestID: c.requestID,
	})}, nil
}

// trustedRole is the wanted role if its trust lets the caller in. An unknown
// role, an untrusted caller and a wrong external id look the same from outside,
// as they do at AWS.
func (d *Double) trustedRole(c *call, duration time.Duration) (*role, *failure) {
	arn := c.form.Get("RoleArn")
	no := accessDenied(c.by, "sts:"+actionAssumeRole, arn, serviceSTS, "")
	name, ok := strings.CutPrefix(arn, d.roleARN(""))
	r := d.iam.roles[name]
	if !ok || r == nil {
		return nil, no
	}
	caller := c.by.arn
	if c.by.role != "" {
		caller = d.roleARN(c.by.role)
	}
	if len(r.Trusted) > 0 && !slices.Contains(r.Trusted, caller) {
		return nil, no
	}
	if r.ExternalID != "" && c.form.Get("ExternalId") != r.ExternalID {
		return nil, no
	}
	if duration > r.MaxSession {
		return nil, failf(http.StatusBadRequest, "ValidationError", "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
	}
	if c.by.role != "" && duration > maxChained {
		return nil, failf(http.StatusBadRequest, "ValidationError", "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining.")
	}
	return r, nil
}

// dropExpiredSessions keeps the map from growing for ever. Sessions that ended
// within the last hour stay, so that they are told expired and not unknown.
func (d *Double) dropExpiredSessions() {
	limit := d.now().Add(-time.Hour)
	for id, s := range d.iam.sessions {
		if s.expires.Before(limit) {
			delete(d.iam.sessions, id)
		}
	}
}
