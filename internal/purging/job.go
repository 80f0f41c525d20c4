package purging

import "time"

// Request is the body of POST /purge.
type Request struct {
	Site string `json:"site" example:"shop"`
	// Prefixes are paths or whole URLs, of which only the path counts.
	Prefixes []string `json:"prefixes" example:"[\"/images/\"]"`
	// Edge is whether the edge is purged as well; nil means that it is.
	Edge *bool `json:"edge,omitempty" example:"true"`
	// Exact says that the prefixes are whole paths. The proxy does not care; at the
	// edge they take none of the few places for paths with a star, but leave what has
	// a query that they do not name.
	Exact bool `json:"exact,omitempty" example:"true"`
}

// State is how far a purge is.
type State string

// The states of a purge, and of its part at the edge.
const (
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
	// None and Skipped are for the part at the edge alone: the site has no
	// distribution, or the request did not want it.
	None    State = "none"
	Skipped State = "skipped"
)

// Purge is one purge, as GET /purge/{id} answers it. The proxy has acknowledged every
// purge that there is.
type Purge struct {
	ID   string `json:"id"`
	Site string `json:"site"`
	// Prefixes are in the form of Prefix; Count is how many there were, where not all of
	// them are listed.
	Prefixes []string `json:"prefixes"`
	Count    int      `json:"count"`
	Exact    bool     `json:"exact,omitempty"`
	// By is the name of the token, At when the proxy acknowledged.
	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at"`
	State State     `json:"state"`
	// Remark says in what the proxy's part differs from the usual.
	Remark string `json:"remark,omitempty"`
	// Volatile is whether the proxy's part holds until its next start only, since no disk
	// took it; the remark says why. The edge is purged all the same: what it fetches until
	// then is new, and what it had would be old at once.
	Volatile bool `json:"volatile,omitempty"`
	Edge     Edge `json:"edge"`
}

// Edge is the part of a purge at the edge.
type Edge struct {
	State        State  `json:"state"`
	Distribution string `json:"distribution,omitempty"`
	// Paths counts what is to be invalidated, Completed what has been.
	Paths     int `json:"paths,omitempty"`
	Completed int `json:"completed,omitempty"`
	// Batches counts the invalidations that the paths are cut into by CloudFront's
	// quotas, and Invalidations are the ids of those that have been made, at most
	// shownInvalidations of them.
	Batches       int      `json:"batches,omitempty"`
	Invalidations []string `json:"invalidations,omitempty"`
	// Waits says what it waits for besides CloudFront's usual time, "" for nothing.
	Waits string `json:"waits,omitempty"`
	// Remarks say in what the edge differs from what was asked for.
	Remarks []string   `json:"remarks,omitempty"`
	Failure *Failure   `json:"failure,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
}

// Failure says why the edge could not be purged, and what to do.
type Failure struct {
	// Kind is one of a fixed set of words, those of package invalidation among them.
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}

// List is what GET /purge answers: the sites that the caller may purge, and their
// purges, the newest first. Of the purges' prefixes, only the first are listed.
type List struct {
	Sites  []SiteStatus `json:"sites"`
	Purges []Purge      `json:"purges"`
}

// SiteStatus is a site that may be purged.
type SiteStatus struct {
	ID string `json:"id"`
	// Distribution is its edge, "" where there is none to purge.
	Distribution string `json:"distribution,omitempty"`
	// Queries is whether pictures differ by their query.
	Queries bool `json:"queries"`
}

// Bounds of what is shown.
const (
	shownPrefixes      = 10
	shownInvalidations = 20
)

// brief is the purge with the first of its prefixes.
func (p Purge) brief() Purge {
	if len(p.Prefixes) > shownPrefixes {
		p.Prefixes = p.Prefixes[:shownPrefixes:shownPrefixes]
	}
	return p
}
