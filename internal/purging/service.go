package purging

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"karui/internal/api"
	"karui/internal/invalidation"
)

// Bounds of one request, and of what is unfinished at the edge.
const (
	// MaxPrefixes and MaxBytes bound the prefixes of a request.
	MaxPrefixes = 3000
	MaxBytes    = 512 << 10

	maxOfSite  = 20  // unfinished ones
	maxAll     = 200 // unfinished ones
	maxPending = 64 << 20
	// maxRecords bounds what is remembered, unfinished ones included.
	maxRecords = 500
)

// patience is how long a purge at the edge may get nowhere.
const patience = 15 * time.Minute

// Proxy is what purges first.
type Proxy interface {
	// Purge returns once nothing that was fetched before is answered any more. That
	// holds over a restart, unless the remark, which is for people, says otherwise.
	Purge(ctx context.Context, site string, prefixes []string) (remark string, err error)
}

// Site is a site that may be purged.
type Site struct {
	ID string
	// Target is its edge; one without a distribution is none.
	Target invalidation.Target
	// Queries is whether pictures differ by their query.
	Queries bool
	// Hosts are the site's, in the form of Host; Default is whether it has all others.
	Hosts   []string
	Default bool
}

// Options are what a Service is made of.
type Options struct {
	Proxy Proxy
	// Sites gives those in force.
	Sites func() []Site
	// Dir is the folder for what must survive a restart.
	Dir string
	// Connect makes the way to a distribution; nil for AWS's own, with the credentials
	// of the environment.
	Connect func(context.Context, invalidation.Target) (Distribution, error)
	// Patience is how long the edge may get nowhere; 0 for 15 minutes.
	Patience time.Duration
	Log      *slog.Logger
	Now      func() time.Time // nil for time.Now
}

// Service runs purges. Close it.
type Service struct {
	proxy    Proxy
	sites    func() []Site
	dir      string
	connect  func(context.Context, invalidation.Target) (Distribution, error)
	patience time.Duration
	log      *slog.Logger
	now      func() time.Time

	life    context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	// Locks are taken in this order: saving, mu; clients and mu never together.
	saving sync.Mutex // orders the writes of the file
	mu     sync.Mutex // guards all that follows but clients
	closed bool
	// records are oldest first, accepted those that wait for the proxy, by site.
	records  []*record
	accepted map[string]int
	lanes    map[string]*lane // by distribution
	ended    map[string]map[State]uint64

	clients  sync.Mutex // guards byTarget and paces
	byTarget map[invalidation.Target]Distribution
	paces    map[string]*rate.Limiter // by account
}

// New makes a Service and goes on with what was unfinished before a restart.
func New(o Options) *Service {
	s := &Service{
		proxy: o.Proxy, sites: o.Sites, dir: o.Dir, connect: o.Connect, patience: o.Patience, log: o.Log, now: o.Now,
		accepted: map[string]int{}, lanes: map[string]*lane{}, ended: map[string]map[State]uint64{},
		byTarget: map[invalidation.Target]Distribution{}, paces: map[string]*rate.Limiter{},
	}
	if s.connect == nil {
		s.connect = connectAWS
	}
	if s.patience <= 0 {
		s.patience = patience
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.life, s.stop = context.WithCancel(context.Background())
	s.restore()
	return s
}

func connectAWS(ctx context.Context, t invalidation.Target) (Distribution, error) {
	cfg, err := invalidation.Load(ctx)
	if err != nil {
		return nil, err
	}
	return invalidation.New(cfg, t), nil
}

// Close ends what is under way at the edge, which goes on after a restart.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.running.Wait()
	s.clients.Lock()
	defer s.clients.Unlock()
	s.closeClients()
}

func (s *Service) site(id string) (Site, bool) {
	for _, site := range s.sites() {
		if site.ID == id {
			return site, true
		}
	}
	return Site{}, false
}

// Purge purges the proxy and, once that has acknowledged, begins with the edge. Errors
// are of type *api.Error.
func (s *Service) Purge(ctx context.Context, q Request, by string) (Purge, error) {
	site, known := s.site(q.Site)
	if !known {
		return Purge{}, api.NotFound(fmt.Sprintf("there is no site %q", q.Site), "send one that GET "+api.Prefix+"/purge lists")
	}
	prefixes, err := q.prefixes()
	if err != nil {
		return Purge{}, err
	}
	foreign, err := checkHosts(site, s.sites(), q.Prefixes)
	if err != nil {
		return Purge{}, err
	}
	edge := q.Edge == nil || *q.Edge
	pending := edge && site.Target.Distribution != ""
	if pending {
		if err := s.accept(site.ID); err != nil {
			return Purge{}, err
		}
		defer s.release(site.ID)
	}
	remark, err := s.proxy.Purge(ctx, site.ID, prefixes)
	if err != nil {
		s.log.Error("a purge failed at the proxy", "site", site.ID, "error", err)
		return Purge{}, &api.Error{
			Status: http.StatusServiceUnavailable, Code: CodeNotPurged, Message: "nothing was purged: " + err.Error(),
			Remedy: "mend that, and purge again",
		}
	}
	volatile := remark != ""
	if volatile && foreign != "" {
		remark += "; "
	}
	remark += foreign
	r := &record{Purge: Purge{
		ID: strings.ToLower(rand.Text()[:12]), Site: site.ID, Prefixes: prefixes, Count: len(prefixes), Exact: q.Exact,
		By: by, At: s.now(), State: Done, Remark: remark, Volatile: volatile, Edge: Edge{State: None},
	}}
	switch {
	case pending:
		r.State = Running
		r.plan(site)
	case site.Target.Distribution != "":
		r.Edge = Edge{State: Skipped, Distribution: site.Target.Distribution}
	}
	if !pending {
		r.Purge = r.remembered()
	}
	return s.begin(r)
}

// begin remembers a purge that the proxy has acknowledged, first on disk, and starts
// its part at the edge.
func (s *Service) begin(r *record) (Purge, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return Purge{}, &api.Error{
			Status: http.StatusServiceUnavailable, Code: CodeBusy, Message: "karui ends: the proxy has purged, the edge has not",
			Remedy: "purge again when karui runs again",
		}
	}
	s.records = append(s.records, r)
	s.forget()
	s.mu.Unlock()
	if r.State != Running {
		return r.copied(), nil // nothing is left to do, so nothing can be lost
	}
	unsaved := s.save()
	s.mu.Lock()
	defer s.mu.Unlock()
	if unsaved != nil {
		r.Edge.Remarks = append(r.Edge.Remarks, "it could not be written to disk, so it is not gone on with if karui restarts before it is done")
	}
	if !s.closed { // else it goes on after the restart
		s.start(r)
	}
	return r.copied(), nil
}

// forget drops the oldest ones that have ended. Callers hold mu.
func (s *Service) forget() {
	over := len(s.records) - maxRecords
	s.records = slices.DeleteFunc(s.records, func(r *record) bool {
		if over > 0 && r.State != Running {
			over--
			return true
		}
		return false
	})
}

// Codes of errors beside those of package api.
const (
	CodeBusy      = "busy"
	CodeNotPurged = "not_purged"
)

// accept reserves room for what may be unfinished at the edge.
func (s *Service) accept(site string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, all, size := s.accepted[site], 0, 0
	for _, n := range s.accepted {
		all += n
	}
	for _, r := range s.records {
		if r.State == Running {
			all++
			size += r.size()
			if r.Site == site {
				own++
			}
		}
	}
	if own >= maxOfSite || all >= maxAll || size >= maxPending {
		return &api.Error{
			Status: http.StatusTooManyRequests, Code: CodeBusy,
			Message: fmt.Sprintf("%d purges of site %s and %d of all sites are not finished at the edge", own, site, all),
			Remedy:  "wait until some are, purge more with fewer and shorter prefixes, or leave the edge out",
		}
	}
	s.accepted[site]++
	return nil
}

func (s *Service) release(site string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accepted[site]--; s.accepted[site] <= 0 {
		delete(s.accepted, site)
	}
}

// prefixes gives the prefixes in the form of Prefix, each once.
func (q Request) prefixes() ([]string, error) {
	if len(q.Prefixes) == 0 {
		return nil, api.Invalid("there is no prefix", `send at least one, such as "prefixes": ["/images/"]; "/" is all of a site`)
	}
	if len(q.Prefixes) > MaxPrefixes {
		return nil, api.Invalid(fmt.Sprintf("there are %d prefixes, over %d", len(q.Prefixes), MaxPrefixes), "send them in several requests, or shorter ones that cover more")
	}
	list := make([]string, 0, len(q.Prefixes))
	seen := make(map[string]bool, len(q.Prefixes))
	size := 0
	for _, text := range q.Prefixes {
		p, err := Prefix(text, q.Exact)
		if err != nil {
			return nil, api.Invalid(err.Error(), "")
		}
		if !seen[p] {
			seen[p] = true
			list = append(list, p)
			size += len(p)
		}
	}
	if size > MaxBytes {
		return nil, api.Invalid(fmt.Sprintf("the prefixes have %d bytes together, over %d", size, MaxBytes), "send them in several requests, or shorter ones that cover more")
	}
	return list, nil
}

// Find gives a purge by its id.
func (s *Service) Find(id string) (Purge, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.ID == id {
			return r.copied(), true
		}
	}
	return Purge{}, false
}

// List gives the last purges of the sites that may be seen, the newest first.
func (s *Service) List(may func(site string) bool, limit int) List {
	list := List{Sites: []SiteStatus{}, Purges: []Purge{}}
	for _, site := range s.sites() {
		if may(site.ID) {
			list.Sites = append(list.Sites, SiteStatus{ID: site.ID, Distribution: site.Target.Distribution, Queries: site.Queries})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range slices.Backward(s.records) {
		if len(list.Purges) == limit {
			break
		}
		if may(r.Site) {
			list.Purges = append(list.Purges, r.copied().brief())
		}
	}
	return list
}

// Stats counts the parts at the edge, by site.
type Stats struct {
	// Running are those under way, Done and Failed those that have ended since the start.
	Running      int
	Done, Failed uint64
}

// Stats counts for each site in force that has a distribution.
func (s *Service) Stats() map[string]Stats {
	all := map[string]Stats{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, site := range s.sites() {
		if site.Target.Distribution == "" {
			continue
		}
		stats := Stats{Done: s.ended[site.ID][Done], Failed: s.ended[site.ID][Failed]}
		for _, r := range s.records {
			if r.State == Running && r.Site == site.ID {
				stats.Running++
			}
		}
		all[site.ID] = stats
	}
	return all
}

// count notes that a part at the edge has ended. Callers hold mu.
func (s *Service) count(r *record) {
	if s.ended[r.Site] == nil {
		s.ended[r.Site] = map[State]uint64{}
	}
	s.ended[r.Site][r.State]++
}
