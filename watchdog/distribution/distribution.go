// Package distribution reads and rewrites one CloudFront distribution: which of
// the two members of an origin group comes first, and nothing else.
//
// Guaranteed: the configuration is changed in the XML as CloudFront sent it. The
// two OriginGroupMember elements of one group change places; every other byte,
// known to the SDK or not, goes back as it came, under the If-Match of the
// version it came with and under a signature that covers it. A document that is
// not understood is refused, never guessed at. Writing is idempotent: a
// distribution that is in the wanted order is left alone, a lost answer is
// cleared up by reading again, somebody else's change in between is kept. The
// session that does this can touch no other distribution.
//
// Not guaranteed: that nobody changes the order afterwards, that the change has
// reached the edge (WaitDeployed waits for that), or that CloudFront answers at
// all; every call has a limit in time. Deciding when to swap, a lock against a
// second instance and the records of what was done are the caller's.
package distribution

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Order is who comes first in the origin group.
type Order string

const (
	// OrderUnknown means the group does not hold exactly the two configured
	// origins.
	OrderUnknown Order = ""
	// OrderProxy is the normal order: karui first.
	OrderProxy Order = "proxy"
	// OrderDirect is the degraded order: the true origin first.
	OrderDirect Order = "direct"
)

// Target is one origin group of one distribution and the role that may change
// it, as configured for a site.
type Target struct {
	DistributionID string // distribution_id
	GroupID        string // origin_group_id
	ProxyOrigin    string // proxy_origin_id
	DirectOrigin   string // direct_origin_id
	RoleARN        string // role_arn
	ExternalID     string // external_id; empty sends none
}

var (
	roleARN        = regexp.MustCompile(`^arn:(aws|aws-cn|aws-us-gov):iam::([0-9]{12}):role/[A-Za-z0-9+=,.@_/-]{1,512}$`)
	distributionID = regexp.MustCompile(`^[A-Z0-9]{2,32}$`)
	externalID     = regexp.MustCompile(`^[A-Za-z0-9_+=,.@:/-]*$`)
)

// Validate finds every mistake in the target at once.
func (t Target) Validate() error {
	var errs []error
	if !distributionID.MatchString(t.DistributionID) {
		errs = append(errs, fmt.Errorf("distribution id %q: expected 2 to 32 upper-case letters and digits, as E2QWRUHAPOMQZL", t.DistributionID))
	}
	for _, key := range []struct{ name, id string }{
		{"origin group id", t.GroupID}, {"proxy origin id", t.ProxyOrigin}, {"direct origin id", t.DirectOrigin},
	} {
		if key.id == "" || key.id != strings.TrimSpace(key.id) {
			errs = append(errs, fmt.Errorf("%s %q: expected an id without spaces around it", key.name, key.id))
		}
	}
	if t.ProxyOrigin == t.DirectOrigin {
		errs = append(errs, fmt.Errorf("proxy and direct origin id are both %q: expected two different origins", t.ProxyOrigin))
	}
	if !roleARN.MatchString(t.RoleARN) {
		errs = append(errs, fmt.Errorf("role %q: expected an ARN as arn:aws:iam::111122223333:role/karui-watchdog", t.RoleARN))
	}
	if n := len(t.ExternalID); t.ExternalID != "" && (n < 2 || n > 1224 || !externalID.MatchString(t.ExternalID)) {
		errs = append(errs, errors.New("external id: expected 2 to 1224 letters, digits or _+=,.@:/-"))
	}
	return errors.Join(errs...)
}

// partition and account of the role, and so of the distribution.
func (t Target) partition() (partition, account string) {
	if m := roleARN.FindStringSubmatch(t.RoleARN); m != nil {
		return m[1], m[2]
	}
	return "aws", ""
}

// ARN of the distribution.
func (t Target) ARN() string {
	partition, account := t.partition()
	return "arn:" + partition + ":cloudfront::" + account + ":distribution/" + t.DistributionID
}

// Members are the two origin ids in this order.
func (t Target) Members(o Order) (first, second string) {
	if o == OrderDirect {
		return t.DirectOrigin, t.ProxyOrigin
	}
	return t.ProxyOrigin, t.DirectOrigin
}

// OrderOf tells who comes first in the target's group of a document.
func (t Target) OrderOf(doc Document) Order {
	g, ok := doc.Group(t.GroupID)
	if !ok || len(g.Members) != 2 {
		return OrderUnknown
	}
	for _, o := range []Order{OrderProxy, OrderDirect} {
		if first, second := t.Members(o); g.Members[0] == first && g.Members[1] == second {
			return o
		}
	}
	return OrderUnknown
}

// Snapshot is a distribution's configuration at one moment.
type Snapshot struct {
	Raw       []byte // as received
	ETag      string // its version
	RequestID string // of the answer that brought it
	Document  Document
	Order     Order
}

// Step is one call that was made, for an audit log.
type Step struct {
	Time      time.Time `json:"time"`
	Action    string    `json:"action"` // "cloudfront:UpdateDistribution"
	IfMatch   string    `json:"if_match,omitempty"`
	ETag      string    `json:"etag,omitempty"` // of the answer
	RequestID string    `json:"request_id,omitempty"`
	Outcome   string    `json:"outcome"` // "ok" or the error in words
}

// Result says what a write did. It is filled as far as things went when the
// write fails.
type Result struct {
	Want    Order     `json:"want,omitempty"`   // empty for an unchanged write
	Was     Order     `json:"was"`              // before the first write
	Changed bool      `json:"changed"`          // our write took effect
	Unsure  bool      `json:"unsure,omitempty"` // a write was sent and its fate is not known
	ETagWas string    `json:"etag_was"`         // of Before
	ETag    string    `json:"etag"`             // of what was read last
	As      string    `json:"as"`               // who did it: the role's ARN
	Steps   []Step    `json:"steps"`            // oldest first
	Warning []Finding `json:"warnings,omitempty"`

	// Difference is the place of the first difference, apart from the order,
	// between what was sent and what was read back; empty if there is none.
	Difference string `json:"difference,omitempty"`

	Before []byte `json:"-"` // the document as it was read for the last write
	After  []byte `json:"-"` // the document as sent; as read if nothing was sent
}
