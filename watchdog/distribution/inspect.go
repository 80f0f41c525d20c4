package distribution

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// CloudFront's defaults for what a document leaves out (API reference).
const (
	defaultAttempts    = 3
	defaultConnect     = 10 * time.Second
	defaultRead        = 30 * time.Second
	defaultKeepalive   = 5 * time.Second
	defaultDefaultTTL  = 24 * time.Hour
	defaultMaxTTL      = 365 * 24 * time.Hour
	defaultErrorTTL    = 10 * time.Second
	selectionByDefault = "default"

	// maxSeconds bounds lifetimes: a hundred years, CloudFront's own limit.
	maxSeconds = 100 * 365 * 24 * 3600
)

// Document is what of a configuration matters to a swap and its rehearsal.
// Numbers that a document leaves out have CloudFront's defaults.
type Document struct {
	Enabled        bool
	Staging        bool
	Comment        string
	Aliases        []string
	Origins        []Origin
	Groups         []Group
	Behaviors      []Behavior // in CloudFront's order of matching: the default one last
	ErrorResponses []ErrorResponse

	// Odd lists places with a number that could not be read. It was taken as
	// left out.
	Odd []string
}

// Origin is where CloudFront fetches from.
type Origin struct {
	ID, Domain         string
	ConnectionAttempts int
	ConnectionTimeout  time.Duration
	ReadTimeout        time.Duration // of a custom origin
	KeepaliveTimeout   time.Duration // of a custom origin
	HeaderNames        []string      // custom headers sent to it
}

// Group is an origin group.
type Group struct {
	ID        string
	Members   []string // origin ids, by priority
	Criteria  []int    // status codes that make CloudFront try the second member
	Selection string   // "default" or "media-quality-based"
}

// Behavior is a cache behaviour.
type Behavior struct {
	Path   string // "*" for the default behaviour
	Target string // origin or origin group

	// CachePolicyID is set, or the older settings below are.
	CachePolicyID              string
	MinTTL, DefaultTTL, MaxTTL time.Duration
	Headers                    []string // in the cache key and forwarded
	QueryForwarded             bool
	QueryKeys                  []string // of the forwarded query, in the key; empty means all
}

// ErrorResponse is a custom error response.
type ErrorResponse struct {
	Code       int
	CachingTTL time.Duration // ErrorCachingMinTTL
}

// Inspect reads a DistributionConfig document. It fails only for one that is
// not understood as a whole (ErrDocument); what is missing in it is for Check to
// say.
func Inspect(raw []byte) (Document, error) {
	root, err := parse(raw, "DistributionConfig")
	if err != nil {
		return Document{}, err
	}
	r := reader{}
	doc := Document{
		Enabled: root.value("Enabled") == "true",
		Staging: root.value("Staging") == "true",
		Comment: root.value("Comment"),
		Aliases: texts(root.items("Aliases", "CNAME")),
	}
	for _, o := range root.items("Origins", "Origin") {
		doc.Origins = append(doc.Origins, r.origin(o))
	}
	for _, g := range root.items("OriginGroups", "OriginGroup") {
		doc.Groups = append(doc.Groups, r.group(g))
	}
	for _, b := range root.items("CacheBehaviors", "CacheBehavior") {
		doc.Behaviors = append(doc.Behaviors, r.behavior(b, b.value("PathPattern")))
	}
	if b := root.first("DefaultCacheBehavior"); b != nil {
		doc.Behaviors = append(doc.Behaviors, r.behavior(b, "*"))
	}
	for _, e := range root.items("CustomErrorResponses", "CustomErrorResponse") {
		code := r.number("a custom error response", e, 0, 999, "ErrorCode")
		doc.ErrorResponses = append(doc.ErrorResponses, ErrorResponse{
			Code:       code,
			CachingTTL: r.seconds(fmt.Sprintf("the custom error response for %d", code), e, defaultErrorTTL, "ErrorCachingMinTTL"),
		})
	}
	doc.Odd = r.odd
	return doc, nil
}

// Group is the group of that id; false if there is none or more than one.
func (d Document) Group(id string) (Group, bool) {
	var out Group
	n := 0
	for _, g := range d.Groups {
		if g.ID == id {
			out, n = g, n+1
		}
	}
	return out, n == 1
}

// Origin is the origin of that id.
func (d Document) Origin(id string) (Origin, bool) {
	i := slices.IndexFunc(d.Origins, func(o Origin) bool { return o.ID == id })
	if i < 0 {
		return Origin{}, false
	}
	return d.Origins[i], true
}

// BehaviorsOf lists the behaviours that send requests to this origin or group.
func (d Document) BehaviorsOf(target string) []Behavior {
	var out []Behavior
	for _, b := range d.Behaviors {
		if b.Target == target {
			out = append(out, b)
		}
	}
	return out
}

// ErrorTTL is how long the edge keeps an error of this status at least, and
// whether the distribution sets that or leaves it at CloudFront's 10 s.
func (d Document) ErrorTTL(code int) (time.Duration, bool) {
	for _, e := range d.ErrorResponses {
		if e.Code == code {
			return e.CachingTTL, true
		}
	}
	return defaultErrorTTL, false
}

// reader takes numbers and notes those it cannot take.
type reader struct{ odd []string }

func (r *reader) number(at string, e *element, fallback, limit int, names ...string) int {
	found := e.first(names...)
	if found == nil || found.text == "" {
		return fallback
	}
	v, err := strconv.Atoi(found.text)
	if err != nil || v < 0 || v > limit {
		r.odd = append(r.odd, fmt.Sprintf("%s: %s is %q", at, names[len(names)-1], found.text))
		return fallback
	}
	return v
}

func (r *reader) seconds(at string, e *element, fallback time.Duration, names ...string) time.Duration {
	return time.Duration(r.number(at, e, int(fallback/time.Second), maxSeconds, names...)) * time.Second
}

func (r *reader) origin(e *element) Origin {
	id := e.value("Id")
	at := fmt.Sprintf("origin %q", id)
	o := Origin{
		ID: id, Domain: e.value("DomainName"),
		ConnectionAttempts: r.number(at, e, defaultAttempts, 100, "ConnectionAttempts"),
		ConnectionTimeout:  r.seconds(at, e, defaultConnect, "ConnectionTimeout"),
		ReadTimeout:        r.seconds(at, e, defaultRead, "CustomOriginConfig", "OriginReadTimeout"),
		KeepaliveTimeout:   r.seconds(at, e, defaultKeepalive, "CustomOriginConfig", "OriginKeepaliveTimeout"),
	}
	for _, h := range e.items("CustomHeaders", "OriginCustomHeader") {
		o.HeaderNames = append(o.HeaderNames, h.value("HeaderName"))
	}
	return o
}

func (r *reader) group(e *element) Group {
	g := Group{ID: e.value("Id"), Selection: selectionByDefault}
	for _, m := range e.items("Members", "OriginGroupMember") {
		g.Members = append(g.Members, m.value("OriginId"))
	}
	for _, c := range e.first("FailoverCriteria").items("StatusCodes", "StatusCode") {
		code, err := strconv.Atoi(c.text)
		if err != nil {
			r.odd = append(r.odd, fmt.Sprintf("origin group %q: StatusCode is %q", g.ID, c.text))
			continue
		}
		g.Criteria = append(g.Criteria, code)
	}
	if s := e.value("SelectionCriteria"); s != "" {
		g.Selection = s
	}
	return g
}

func (r *reader) behavior(e *element, path string) Behavior {
	b := Behavior{Path: path, Target: e.value("TargetOriginId"), CachePolicyID: e.value("CachePolicyId")}
	if b.CachePolicyID != "" {
		return b
	}
	at := fmt.Sprintf("behaviour %q", path)
	b.MinTTL = r.seconds(at, e, 0, "MinTTL")
	b.DefaultTTL = r.seconds(at, e, defaultDefaultTTL, "DefaultTTL")
	b.MaxTTL = r.seconds(at, e, defaultMaxTTL, "MaxTTL")
	forwarded := e.first("ForwardedValues")
	b.Headers = texts(forwarded.items("Headers", "Name"))
	b.QueryForwarded = forwarded.value("QueryString") == "true"
	b.QueryKeys = texts(forwarded.items("QueryStringCacheKeys", "Name"))
	return b
}

func texts(list []*element) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.text)
	}
	return out
}
