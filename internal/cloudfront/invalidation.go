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
)

type invalidation struct {
	id, reference string
	paths         []string
	made, done    time.Time
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
	if fail := d.checkBatch(c.id, v); fail != nil {
		return reply{}, fail
	}
	for _, old := range d.invalidations[c.id] {
		if old.reference != v.reference {
			continue
		}
		if !slices.Equal(old.paths, v.paths) {
			return reply{}, invalidArgument("Your request contains a caller reference that was used for a previous invalidation batch for the same distribution.")
		}
		return d.invalidationReply(old, http.StatusCreated), nil
	}
	d.invalidations[c.id] = append(d.invalidations[c.id], v)
	return d.invalidationReply(v, http.StatusCreated), nil
}

func (d *Double) checkBatch(id string, v *invalidation) *failure {
	if v.reference == "" {
		return invalidArgument("The parameter CallerReference is required.")
	}
	if len(v.paths) == 0 {
		return invalidArgument("The parameter Paths is required.")
	}
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
	for _, p := range v.paths {
		if !strings.HasPrefix(p, "/") || strings.Contains(strings.TrimSuffix(p, "*"), "*") || strings.ContainsAny(p, " \t\r\n") {
			return invalidArgument("Your request contains one or more invalid invalidation paths.")
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
		Namespace: Namespace, ID: v.id, Status: "InProgress", Created: xmlTime(v.made),
		Quantity: len(v.paths), Paths: v.paths, Reference: v.reference,
	}
	if !v.done.After(d.now()) {
		out.Status = "Completed"
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
