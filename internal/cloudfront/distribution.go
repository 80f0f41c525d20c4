package cloudfront

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// version is one configuration of a distribution and when it takes effect at
// the edge.
type version struct {
	raw      []byte
	root     *node
	config   *Config
	etag     string
	made     time.Time
	deployed time.Time
}

// distribution keeps the versions that are not yet superseded at the edge,
// oldest first: the first is what the edge serves by now or did last, the last
// is the newest.
type distribution struct {
	id       string
	domain   string
	versions []version
	before   version // the one before the newest, for reads that lag behind
}

func (x *distribution) newest() version { return x.versions[len(x.versions)-1] }

// settle forgets versions that later ones have replaced at the edge and returns
// the one in effect.
func (x *distribution) settle(now time.Time) version {
	for len(x.versions) > 1 && !x.versions[1].deployed.After(now) {
		x.versions = x.versions[1:]
	}
	return x.versions[0]
}

func (x *distribution) status(now time.Time) string {
	x.settle(now)
	if len(x.versions) > 1 {
		return "InProgress"
	}
	return "Deployed"
}

// add appends a version. Versions propagate in order, so none takes effect
// before the one made before it.
func (x *distribution) add(raw []byte, root *node, now time.Time, delay time.Duration) version {
	v := version{raw: slices.Clone(raw), root: root, config: configOf(root), etag: newID("E", 13), made: now, deployed: now.Add(delay)}
	if n := len(x.versions); n > 0 && x.versions[n-1].deployed.After(v.deployed) {
		v.deployed = x.versions[n-1].deployed
	}
	x.before = v
	if n := len(x.versions); n > 0 {
		x.before = x.versions[n-1]
	}
	x.versions = append(x.versions, v)
	return v
}

// Snapshot is a distribution at one moment.
type Snapshot struct {
	ID       string
	Domain   string // *.cloudfront.net
	ETag     string
	Status   string // "InProgress" or "Deployed"
	Newest   []byte // the configuration as last received
	Deployed []byte // the one in effect at the edge
	Modified time.Time
}

var (
	distributionID = regexp.MustCompile(`^[A-Z0-9]{2,32}$`)
	etagPattern    = regexp.MustCompile(`^E[A-Z0-9]{6,31}$`)
)

// PutDistribution makes a distribution, deployed at once, or changes an existing
// one as somebody else would: with a new ETag and the usual delay. The
// configuration is checked as one that came over the network.
func (d *Double) PutDistribution(id string, config []byte) error {
	if !distributionID.MatchString(id) {
		return fmt.Errorf("distribution id %q: expected 2 to 32 upper-case letters and digits", id)
	}
	root, err := parseDocument(config, "DistributionConfig")
	if err != nil {
		return fmt.Errorf("distribution %s: %w", id, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if fail := d.validate(root); fail != nil {
		return fmt.Errorf("distribution %s: %w", id, fail)
	}
	x, delay := d.distributions[id], d.deployDelay
	if x == nil {
		x = &distribution{id: id, domain: "d" + strings.ToLower(newID("", 13)) + ".cloudfront.net"}
		d.distributions[id] = x
		delay = 0
	}
	x.add(config, root, d.now(), delay)
	return nil
}

// Distribution is the state of a distribution now.
func (d *Double) Distribution(id string) (Snapshot, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.distributions[id]
	if x == nil {
		return Snapshot{}, false
	}
	now := d.now()
	v := x.newest()
	return Snapshot{
		ID: id, Domain: x.domain, ETag: v.etag, Status: x.status(now),
		Newest: slices.Clone(v.raw), Deployed: slices.Clone(x.settle(now).raw), Modified: v.made,
	}, true
}

// Deployed is the configuration in effect at the edge now, for a data plane.
func (d *Double) Deployed(id string) ([]byte, bool) {
	s, ok := d.Distribution(id)
	return s.Deployed, ok
}

// find locks nothing: callers hold mu.
func (d *Double) find(id string) (*distribution, *failure) {
	if x := d.distributions[id]; x != nil {
		return x, nil
	}
	return nil, failf(http.StatusNotFound, "NoSuchDistribution", "The specified distribution does not exist.")
}

func (d *Double) getDistributionConfig(c *call) (reply, *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x, fail := d.find(c.id)
	if fail != nil {
		return reply{}, fail
	}
	v := x.newest()
	if d.now().Sub(v.made) < d.readLag {
		v = x.before
	}
	return reply{status: http.StatusOK, header: map[string]string{"ETag": v.etag}, body: v.raw}, nil
}

func (d *Double) getDistribution(c *call) (reply, *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x, fail := d.find(c.id)
	if fail != nil {
		return reply{}, fail
	}
	return d.distributionReply(x), nil
}

// distributionReply is the Distribution element, with the configuration inside
// as it was received.
func (d *Double) distributionReply(x *distribution) reply {
	v := x.newest()
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?>` + "\n")
	b.WriteString(`<Distribution xmlns="` + Namespace + `">` + d.summaryHead(x))
	fmt.Fprintf(&b, "<InProgressInvalidationBatches>%d</InProgressInvalidationBatches>", d.invalidating(x.id))
	b.Write(rootElement(v.raw))
	b.WriteString(`</Distribution>`)
	return reply{
		status: http.StatusOK, body: []byte(b.String()),
		header: map[string]string{"ETag": v.etag},
	}
}

func (d *Double) summaryHead(x *distribution) string {
	return "<Id>" + x.id + "</Id><ARN>" + distributionARN(d.account, x.id) + "</ARN><Status>" + x.status(d.now()) +
		"</Status><LastModifiedTime>" + xmlTime(x.newest().made) + "</LastModifiedTime><DomainName>" + x.domain + "</DomainName>"
}

// updateDistribution is the one that matters: the document replaces the whole
// configuration, or nothing happens.
func (d *Double) updateDistribution(c *call) (reply, *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x, fail := d.find(c.id)
	if fail != nil {
		return reply{}, fail
	}
	ifMatch := c.r.Header.Values("If-Match")
	if len(ifMatch) != 1 || !etagPattern.MatchString(ifMatch[0]) {
		return reply{}, failf(http.StatusBadRequest, "InvalidIfMatchVersion", "The If-Match version is missing or not valid for the resource.")
	}
	current := x.newest()
	if ifMatch[0] != current.etag {
		return reply{}, failf(http.StatusPreconditionFailed, "PreconditionFailed", "The request failed because it didn't meet the preconditions in one or more request-header fields.")
	}
	if len(c.body) == 0 {
		return reply{}, failf(http.StatusBadRequest, "MissingBody", "This operation requires a body. Ensure that the body is present and the Content-Type header is set.")
	}
	root, err := parseDocument(c.body, "DistributionConfig")
	if err != nil {
		return reply{}, malformed("%v", err)
	}
	if root.text("CallerReference") != current.root.text("CallerReference") {
		return reply{}, failf(http.StatusBadRequest, "IllegalUpdate", "The update contains modifications that are not allowed.")
	}
	if fail := d.validate(root); fail != nil {
		return reply{}, fail
	}
	x.settle(d.now())
	x.add(c.body, root, d.now(), d.deployDelay)
	return d.distributionReply(x), nil
}
