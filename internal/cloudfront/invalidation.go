package cloudfront

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Quotas of invalidations in progress, for each distribution.
const (
	maxPathsInProgress     = 3000
	maxWildcardsInProgress = 15

	// maxInvalidationPath is in bytes, all of which are ASCII.
	maxInvalidationPath = 4000
)

type invalidation struct {
	id, reference string
	paths         []string
	made, done    time.Time
}

func (v *invalidation) status(now time.Time) string {
	if v.done.After(now) {
		return "InProgress"
	}
	return "Completed"
}

// Invalidation is one purge of paths at the edge.
type Invalidation struct {
	ID    string
	Paths []string
	Made  time.Time
	Done  time.Time // when it is complete at the edge
}

// Invalidations lists those of a distribution so far, oldest first, for a data
// plane and for tests.
func (d *Double) Invalidations(id string) []Invalidation {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Invalidation
	for _, v := range d.invalidations[id] {
		out = append(out, Invalidation{ID: v.id, Paths: slices.Clone(v.paths), Made: v.made, Done: v.done})
	}
	return out
}

// InvalidationsAfter lists those of a distribution without the first n, for a
// data plane that has seen those.
func (d *Double) InvalidationsAfter(id string, n int) []Invalidation {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Invalidation
	for _, v := range d.invalidations[id][min(n, len(d.invalidations[id])):] {
		out = append(out, Invalidation{ID: v.id, Paths: slices.Clone(v.paths), Made: v.made, Done: v.done})
	}
	return out
}

type invalidationXML struct {
	XMLName   xml.Name `xml:"Invalidation"`
	Namespace string   `xml:"xmlns,attr"`
	ID        string   `xml:"Id"`
	Status    string   `xml:"Status"`
	Created   string   `xml:"CreateTime"`
	Quantity  int      `xml:"InvalidationBatch>Paths>Quantity"`
	Paths     []string `xml:"InvalidationBatch>Paths>Items>Path"`
	Reference string   `xml:"InvalidationBatch>CallerReference"`
}

// invalidating counts those in progress; callers hold mu.
func (d *Double) invalidating(id string) int {
	n := 0
	for _, v := range d.invalidations[id] {
		if v.done.After(d.now()) {
			n++
		}
	}
	return n
}

func (d *Double) createInvalidation(c *call) (reply, *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, fail := d.find(c.id); fail != nil {
		return reply{}, fail
	}
	if len(c.body) == 0 {
		return reply{}, failf(http.StatusBadRequest, "MissingBody", "This operation requires a body.")
	}
	root, err := parseDocument(c.body, "InvalidationBatch")
	if err != nil {
		return reply{}, malformed("%v", err)
	}
	if fail := checkQuantities(root); fail != nil {
		return reply{}, fail
	}
	v := &invalidation{id: newID("I", 13), reference: root.text("CallerReference"), made: d.now(), done: d.now().Add(d.purgeDelay)}
	for _, p := range root.items("Path", "Paths") {
		v.paths = append(v.paths, p.textContent())
	}
	if fail := checkBatch(v); fail != nil {
		return reply{}, fail
	}
	for _, old := range d.invalidations[c.id] {
		if old.reference != v.reference {
			continue
		}
		if !slices.Equal(old.paths, v.paths) {
			return reply{}, failf(http.StatusBadRequest, "InvalidationBatchAlreadyExists",
				"Your request contains a caller reference that was used for a previous invalidation batch for the same distribution.")
		}
		return d.invalidationReply(old, http.StatusCreated), nil
	}
	if fail := d.checkInProgress(c.id, v); fail != nil {
		return reply{}, fail
	}
	d.invalidations[c.id] = append(d.invalidations[c.id], v)
	return d.invalidationReply(v, http.StatusCreated), nil
}

// checkBatch checks what a batch says. Documented: a path begins with a slash, has
// 4,000 characters at most, a star at its end alone, no tilde, whether encoded or
// not, and whatever is unsafe or outside ASCII is encoded. Concluded: paths are
// compared as they are written.
func checkBatch(v *invalidation) *failure {
	if v.reference == "" {
		return invalidArgument("The parameter CallerReference is required.")
	}
	if len(v.paths) == 0 {
		return invalidArgument("The parameter Paths is required.")
	}
	if len(v.paths) > maxPathsInProgress+maxWildcardsInProgress {
		return failf(http.StatusRequestEntityTooLarge, "BatchTooLarge", "Your request contains too many invalidation paths.")
	}
	for _, p := range v.paths {
		if !validInvalidationPath(p) {
			return invalidArgument("Your request contains one or more invalid invalidation paths.")
		}
	}
	return nil
}

func validInvalidationPath(p string) bool {
	if !strings.HasPrefix(p, "/") || len(p) > maxInvalidationPath || strings.Contains(strings.ToLower(p), "%7e") {
		return false
	}
	p = strings.TrimSuffix(p, "*")
	for i := range len(p) {
		if p[i] <= ' ' || p[i] >= 0x7f || strings.IndexByte("\"<>#{}|\\^~[]`*", p[i]) >= 0 {
			return false
		}
	}
	return true
}

// checkInProgress counts what is in progress against the quotas; callers hold mu.
func (d *Double) checkInProgress(id string, v *invalidation) *failure {
	paths, wildcards := 0, 0
	count := func(list []string) {
		for _, p := range list {
			if strings.HasSuffix(p, "*") {
				wildcards++
			} else {
				paths++
			}
		}
	}
	count(v.paths)
	for _, old := range d.invalidations[id] {
		if old.done.After(d.now()) {
			count(old.paths)
		}
	}
	if paths > maxPathsInProgress || wildcards > maxWildcardsInProgress {
		return failf(http.StatusBadRequest, "TooManyInvalidationsInProgress", "Processing your request will cause you to exceed the maximum number of in-progress wildcard invalidations or paths.")
	}
	return nil
}

func (d *Double) invalidationReply(v *invalidation, status int) reply {
	out := invalidationXML{
		Namespace: Namespace, ID: v.id, Status: v.status(d.now()), Created: xmlTime(v.made),
		Quantity: len(v.paths), Paths: v.paths, Reference: v.reference,
	}
	return reply{status: status, body: mustXML(out)}
}

func (d *Double) getInvalidation(c *call) (reply, *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, fail := d.find(c.id); fail != nil {
		return reply{}, fail
	}
	for _, v := range d.invalidations[c.id] {
		if v.id == c.sub {
			return d.invalidationReply(v, http.StatusOK), nil
		}
	}
	return reply{}, failf(http.StatusNotFound, "NoSuchInvalidation", "The specified invalidation does not exist.")
}

type invalidationListXML struct {
	XMLName   xml.Name              `xml:"InvalidationList"`
	Namespace string                `xml:"xmlns,attr"`
	Marker    string                `xml:"Marker"`
	Next      string                `xml:"NextMarker,omitempty"`
	MaxItems  int                   `xml:"MaxItems"`
	Truncated bool                  `xml:"IsTruncated"`
	Quantity  int                   `xml:"Quantity"`
	Items     []invalidationSummary `xml:"Items>InvalidationSummary"`
}

type invalidationSummary struct {
	ID      string `xml:"Id"`
	Created string `xml:"CreateTime"`
	Status  string `xml:"Status"`
}

// listInvalidations lists them, the newest first. Documented: a marker is the id of
// the last one of the page before.
func (d *Double) listInvalidations(c *call) (reply, *failure) {
	limit, fail := pageSize(c.r.URL.Query())
	if fail != nil {
		return reply{}, fail
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, fail := d.find(c.id); fail != nil {
		return reply{}, fail
	}
	out := invalidationListXML{Namespace: Namespace, Marker: c.r.URL.Query().Get("Marker"), MaxItems: limit}
	after := out.Marker == ""
	for _, v := range slices.Backward(d.invalidations[c.id]) {
		switch {
		case !after:
			after = v.id == out.Marker
		case len(out.Items) == limit:
			out.Truncated, out.Next = true, out.Items[limit-1].ID
		default:
			out.Items = append(out.Items, invalidationSummary{v.id, xmlTime(v.made), v.status(d.now())})
		}
	}
	if !after {
		return reply{}, invalidArgument("The parameter Marker is invalid.")
	}
	out.Quantity = len(out.Items)
	return reply{status: http.StatusOK, body: mustXML(out)}, nil
}
