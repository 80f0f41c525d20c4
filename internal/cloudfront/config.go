package cloudfront

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Defaults of CloudFront for what a DistributionConfig leaves out.
const (
	defaultConnectionAttempts = 3
	defaultConnectionTimeout  = 10 * time.Second
	defaultResponseTimeout    = 30 * time.Second
	defaultKeepaliveTimeout   = 5 * time.Second
	defaultErrorTTL           = 10 * time.Second
)

// Config is what a data plane reads of a DistributionConfig, with CloudFront's
// defaults filled in. It is shared between readers and never written to.
type Config struct {
	Enabled           bool
	Aliases           []string // lower case
	DefaultRootObject string
	Origins           map[string]Origin
	Groups            map[string]OriginGroup

	// Behaviors in the order in which they are tried; the last one is the
	// default behaviour, whose pattern is "*".
	Behaviors []Behavior

	errorTTLs map[int]time.Duration
}

// Origin is a server that a behaviour or a group leads to.
type Origin struct {
	ID      string
	Domain  string
	Path    string // before every requested path; "" or "/..."
	Headers []Header

	HTTPPort, HTTPSPort int
	Protocol            string // "http-only", "https-only" or "match-viewer"
	S3                  bool

	Attempts         int // of connecting; for GET and HEAD also of waiting for an answer
	ConnectTimeout   time.Duration
	ResponseTimeout  time.Duration // for the first byte, and between any two
	KeepaliveTimeout time.Duration
}

// Header is one line of a header.
type Header struct{ Name, Value string }

// OriginGroup is two origins, the first of which is asked first.
type OriginGroup struct {
	ID       string
	Members  []string
	Statuses []int // that send a request to the second member
}

// Behavior says what happens to requests for paths of a pattern.
type Behavior struct {
	Pattern        string
	Target         string // id of an origin or of a group
	ViewerProtocol string // "allow-all", "https-only" or "redirect-to-https"
	Allowed        []string
	Cached         []string
	Functions      map[string]string // ARN by event type, such as "viewer-request"

	CachePolicyID         string
	OriginRequestPolicyID string
	Legacy                *ForwardedValues // instead of the two policies
}

// ForwardedValues are the older settings of a behaviour.
type ForwardedValues struct {
	Headers                    []string // "*" is all
	Query                      bool
	QueryKeys                  []string // empty means all, if Query
	Cookies                    string   // "none", "whitelist" or "all"
	CookieNames                []string
	MinTTL, DefaultTTL, MaxTTL time.Duration
}

// ErrorTTL is the error caching minimum TTL of a status: 10 s unless set.
func (c *Config) ErrorTTL(status int) time.Duration {
	if ttl, ok := c.errorTTLs[status]; ok {
		return ttl
	}
	return defaultErrorTTL
}

// configOf reads a document that validate let pass.
func configOf(c *node) *Config {
	out := &Config{
		Enabled:           c.text("Enabled") == "true",
		DefaultRootObject: c.text("DefaultRootObject"),
		Origins:           make(map[string]Origin),
		Groups:            make(map[string]OriginGroup),
		errorTTLs:         make(map[int]time.Duration),
	}
	for _, name := range c.items("CNAME", "Aliases") {
		out.Aliases = append(out.Aliases, strings.ToLower(name.textContent()))
	}
	for _, o := range c.items("Origin", "Origins") {
		out.Origins[o.text("Id")] = originOf(o)
	}
	for _, g := range c.items("OriginGroup", "OriginGroups") {
		group := OriginGroup{ID: g.text("Id")}
		for _, m := range g.items("OriginGroupMember", "Members") {
			group.Members = append(group.Members, m.text("OriginId"))
		}
		for _, code := range g.items("StatusCode", "FailoverCriteria", "StatusCodes") {
			group.Statuses = append(group.Statuses, whole(code.textContent(), 0))
		}
		out.Groups[group.ID] = group
	}
	for _, b := range c.items("CacheBehavior", "CacheBehaviors") {
		out.Behaviors = append(out.Behaviors, behaviorOf(b))
	}
	last := behaviorOf(c.at("DefaultCacheBehavior"))
	last.Pattern = "*"
	out.Behaviors = append(out.Behaviors, last)
	for _, r := range c.items("CustomErrorResponse", "CustomErrorResponses") {
		if r.text("ErrorCachingMinTTL") != "" {
			out.errorTTLs[whole(r.text("ErrorCode"), 0)] = time.Duration(whole(r.text("ErrorCachingMinTTL"), 10)) * time.Second
		}
	}
	return out
}

func originOf(o *node) Origin {
	out := Origin{
		ID: o.text("Id"), Domain: o.text("DomainName"), Path: strings.TrimSuffix(o.text("OriginPath"), "/"),
		HTTPPort:         whole(o.text("CustomOriginConfig", "HTTPPort"), 80),
		HTTPSPort:        whole(o.text("CustomOriginConfig", "HTTPSPort"), 443),
		Protocol:         o.text("CustomOriginConfig", "OriginProtocolPolicy"),
		S3:               o.at("CustomOriginConfig") == nil,
		Attempts:         whole(o.text("ConnectionAttempts"), defaultConnectionAttempts),
		ConnectTimeout:   secondsOf(o.text("ConnectionTimeout"), defaultConnectionTimeout),
		ResponseTimeout:  secondsOf(o.text("CustomOriginConfig", "OriginReadTimeout"), defaultResponseTimeout),
		KeepaliveTimeout: secondsOf(o.text("CustomOriginConfig", "OriginKeepaliveTimeout"), defaultKeepaliveTimeout),
	}
	for _, h := range o.items("OriginCustomHeader", "CustomHeaders") {
		out.Headers = append(out.Headers, Header{Name: h.text("HeaderName"), Value: h.text("HeaderValue")})
	}
	return out
}

func behaviorOf(b *node) Behavior {
	out := Behavior{
		Pattern: b.text("PathPattern"), Target: b.text("TargetOriginId"), ViewerProtocol: b.text("ViewerProtocolPolicy"),
		Allowed:       texts(b.items("Method", "AllowedMethods")),
		Cached:        texts(b.items("Method", "AllowedMethods", "CachedMethods")),
		Functions:     make(map[string]string),
		CachePolicyID: b.text("CachePolicyId"), OriginRequestPolicyID: b.text("OriginRequestPolicyId"),
	}
	if len(out.Allowed) == 0 {
		out.Allowed = []string{"GET", "HEAD"}
	}
	for _, f := range b.items("FunctionAssociation", "FunctionAssociations") {
		out.Functions[f.text("EventType")] = f.text("FunctionARN")
	}
	if out.CachePolicyID == "" {
		v := b.at("ForwardedValues")
		out.Legacy = &ForwardedValues{
			Headers: texts(v.items("Name", "Headers")), Query: v.text("QueryString") == "true",
			QueryKeys: texts(v.items("Name", "QueryStringCacheKeys")),
			Cookies:   v.text("Cookies", "Forward"), CookieNames: texts(v.items("Name", "Cookies", "WhitelistedNames")),
			MinTTL:     secondsOf(b.text("MinTTL"), 0),
			DefaultTTL: secondsOf(b.text("DefaultTTL"), 24*time.Hour),
			MaxTTL:     secondsOf(b.text("MaxTTL"), 365*24*time.Hour),
		}
	}
	return out
}

func texts(nodes []*node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.textContent())
	}
	return out
}

// whole reads a number that validation has seen, or that only a data plane
// looks at; what is none counts as absent.
func whole(text string, absent int) int {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return n
	}
	return absent
}

func secondsOf(text string, absent time.Duration) time.Duration {
	if n := whole(text, -1); n >= 0 {
		return time.Duration(n) * time.Second
	}
	return absent
}

// Deployment is what an edge has of a distribution at one moment.
type Deployment struct {
	ID     string
	Domain string // *.cloudfront.net
	Config *Config
}

// DeployedAt finds the distribution that serves a host name (lower case, without
// port), by its own domain or one of its aliases, with the configuration in
// effect at the edge now. An exact alias wins over one with a wildcard.
func (d *Double) DeployedAt(host string) (Deployment, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	var wildcard *distribution
	_, parent, _ := strings.Cut(host, ".")
	for _, x := range d.distributions {
		config := x.settle(now).config
		if x.domain == host || slices.Contains(config.Aliases, host) {
			return Deployment{ID: x.id, Domain: x.domain, Config: config}, true
		}
		if parent != "" && slices.Contains(config.Aliases, "*."+parent) {
			wildcard = x
		}
	}
	if wildcard == nil {
		return Deployment{}, false
	}
	return Deployment{ID: wildcard.id, Domain: wildcard.domain, Config: wildcard.settle(now).config}, true
}

// Deployment is the configuration of a distribution in effect at the edge now.
func (d *Double) Deployment(id string) (Deployment, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.distributions[id]
	if x == nil {
		return Deployment{}, false
	}
	return Deployment{ID: x.id, Domain: x.domain, Config: x.settle(d.now()).config}, true
}
