package watchdog

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"karui/watchdog/distribution"
	"karui/watchdog/event"
	"karui/watchdog/machine"
)

// Limits of what a distribution should let originals linger: an edge that keeps originals longer goes on showing them after a restore.
const (
	maxMaxTTL     = 24 * time.Hour
	maxDefaultTTL = time.Hour
)

func noticeOf(kind event.Kind, id string) machine.Notice {
	return machine.Notice{ID: id, Kind: kind, Actor: event.ActorRehearsal}
}

// groupPoints are the points about the origin group, each with the findings that
// belong to it and what is said when there is none.
var groupPoints = []struct {
	name     string
	findings []string
	good     string
}{
	{"origins", []string{distribution.FindingNoGroup, distribution.FindingNoOrigin, distribution.FindingMembers, distribution.FindingDocument}, "the group holds exactly the two configured origins"},
	{"selection", []string{distribution.FindingQuality}, "the group goes by the order of its members"},
	{"failover_503", []string{distribution.FindingFailover}, "the edge fails over on 503"},
	{"failover_403", []string{distribution.FindingFailover403}, "the edge fails over on 403"},
	{"behavior", []string{distribution.FindingUnused}, "a behaviour uses the group"},
}

// document: is the distribution as a swap needs it.
func (r *rehearsal) document(ctx context.Context) {
	if r.client == nil {
		r.skip("read", "the role could not be assumed")
		return
	}
	r.begin("reading distribution %s", r.config.DistributionID)
	limited, cancel := context.WithTimeout(ctx, contactTimeout)
	defer cancel()
	snapshot, err := r.client.Read(limited)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		r.failed("read", Fail, err, "check distribution_id and the rights of the role")
		return
	}
	r.snapshot = snapshot
	first := "the order is not one of the two"
	switch snapshot.Order {
	case distribution.OrderProxy:
		first = "the proxy comes first"
	case distribution.OrderDirect:
		first = "the true origin comes first (degraded)"
	}
	r.pass("read", "version %s of %s was read; %s", snapshot.ETag, r.config.DistributionID, first)
	doc := snapshot.Document
	switch {
	case doc.Staging:
		r.add("live", Fail, "the distribution is a staging one: viewers do not use it", "name the live distribution in distribution_id")
	case !doc.Enabled:
		r.add("live", Warn, "the distribution is disabled", "enable it, or take the site out of the configuration")
	default:
		r.pass("live", "the distribution is live")
	}
	findings := distribution.Check(snapshot.Raw, doc, r.client.Target(), distribution.ForRehearsal)
	for _, p := range groupPoints {
		mine := slices.DeleteFunc(slices.Clone(findings), func(f distribution.Finding) bool { return !slices.Contains(p.findings, f.Code) })
		for _, f := range mine {
			status := Warn
			if f.Refusal {
				status = Fail
			}
			r.add(p.name, status, f.Message, f.Hint)
		}
		if _, found := doc.Group(r.config.OriginGroupID); len(mine) == 0 && found {
			r.pass(p.name, "%s", p.good)
		}
	}
	r.errors(doc)
	r.timeouts(doc)
	if len(doc.Odd) > 0 {
		r.add("numbers", Warn, "not understood: "+strings.Join(doc.Odd, "; "), "look at these places by hand")
	}
}

// errors: an error must not stay at the edge.
func (r *rehearsal) errors(doc distribution.Document) {
	var wrong []string
	for _, code := range []int{500, 502, 503, 504} {
		switch ttl, set := doc.ErrorTTL(code); {
		case ttl > 0 && set:
			wrong = append(wrong, fmt.Sprintf("%d for %s", code, ttl))
		case ttl > 0:
			wrong = append(wrong, fmt.Sprintf("%d for %s (CloudFront's own value)", code, ttl))
		}
	}
	if len(wrong) > 0 {
		r.add("error_caching", Fail, "the edge keeps errors: "+strings.Join(wrong, ", "),
			"add custom error responses for 500, 502, 503 and 504 with an error caching minimum TTL of 0")
		return
	}
	r.pass("error_caching", "the edge keeps no error")
}

// timeouts: does the edge wait for the proxy long enough, and not too long.
func (r *rehearsal) timeouts(doc distribution.Document) {
	const name = "timeouts"
	o, found := doc.Origin(r.config.ProxyOriginID)
	if !found {
		r.skip(name, "the proxy's origin is not in the distribution")
		return
	}
	deadline := r.common.ProxyDeadline
	if o.ReadTimeout <= deadline {
		r.add(name, Fail, fmt.Sprintf("the edge waits %s for the proxy's answer, and the proxy may take %s (proxy_deadline)", o.ReadTimeout, deadline),
			fmt.Sprintf("set the response timeout of origin %q to about %s, or origin.deadline of karui and proxy_deadline lower", o.ID, deadline+2*time.Second))
		return
	}
	dead := time.Duration(o.ConnectionAttempts) * o.ConnectionTimeout
	hang := time.Duration(o.ConnectionAttempts) * o.ReadTimeout
	if dead > 5*time.Second || hang > 3*deadline {
		r.add(name, Warn, fmt.Sprintf("while the proxy is down, viewers wait up to %s (it does not connect) or %s (it does not answer) before the edge fails over", dead, hang),
			fmt.Sprintf("set for origin %q: connection attempts 1, connection timeout 2, response timeout about %s", o.ID, deadline+2*time.Second))
		return
	}
	r.pass(name, "the edge waits %s for an answer, the proxy takes %s at most; a dead proxy costs %s", o.ReadTimeout, deadline, dead)
}

// caching: how the behaviours that use the group cache.
func (r *rehearsal) caching(ctx context.Context) {
	if r.snapshot.Raw == nil {
		return
	}
	r.begin("reading the cache policies of its behaviours")
	var keyed []string
	var kept []lingering
	for _, b := range r.snapshot.Document.BehaviorsOf(r.config.OriginGroupID) {
		c, err := r.client.CachingOf(ctx, b)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.failed("cache_key", Warn, fmt.Errorf("behaviour %s: %w", b.Path, err), "look at its cache policy by hand: Accept has to be in the cache key")
			continue
		}
		if c.KeyHasHeader("Accept") {
			keyed = append(keyed, b.Path)
		} else {
			r.add("cache_key", Fail, fmt.Sprintf("behaviour %s: Accept is not in the cache key, so that viewers get formats they did not ask for", b.Path),
				"add Accept to the headers of the behaviour's cache policy")
		}
		if good := r.lifetimes(b, c); good {
			kept = with(kept, b.Path, c.MaxTTL, c.DefaultTTL)
		}
	}
	// What is well is said once for all behaviours that are alike.
	if len(keyed) > 0 {
		r.pass("cache_key", "%s: Accept is in the cache key", behaviours(keyed))
	}
	for _, k := range kept {
		r.pass("lifetimes", "%s: originals linger %s at most after a failover, %s without a max-age", behaviours(k.paths), k.most, k.standard)
	}
	r.route = r.routed(ctx)
}

// lingering are behaviours with the same lifetimes.
type lingering struct {
	paths          []string
	most, standard time.Duration
}

// with adds a behaviour to those that are like it.
func with(all []lingering, path string, most, standard time.Duration) []lingering {
	for i := range all {
		if all[i].most == most && all[i].standard == standard {
			all[i].paths = append(all[i].paths, path)
			return all
		}
	}
	return append(all, lingering{[]string{path}, most, standard})
}

func behaviours(paths []string) string {
	if len(paths) == 1 {
		return "behaviour " + paths[0]
	}
	return fmt.Sprintf("%d behaviours (%s)", len(paths), strings.Join(paths, ", "))
}

// lifetimes warns of those that are too long, and tells whether none is.
func (r *rehearsal) lifetimes(b distribution.Behavior, c distribution.Caching) bool {
	const name = "lifetimes"
	var wrong, hints []string
	if c.MaxTTL > maxMaxTTL {
		wrong = append(wrong, fmt.Sprintf("MaxTTL is %s", c.MaxTTL))
		hints = append(hints, "lower MaxTTL to a day or less")
	}
	if c.DefaultTTL > maxDefaultTTL {
		wrong = append(wrong, fmt.Sprintf("DefaultTTL is %s", c.DefaultTTL))
		hints = append(hints, "lower DefaultTTL to an hour or less")
	}
	if c.MinTTL > 0 {
		wrong = append(wrong, fmt.Sprintf("MinTTL is %s, which overrides no-store", c.MinTTL))
		hints = append(hints, "set MinTTL to 0")
	}
	if len(wrong) > 0 {
		r.add(name, Warn, fmt.Sprintf("behaviour %s: %s; originals linger that long after a failover", b.Path, strings.Join(wrong, ", ")), strings.Join(hints, "; "))
	}
	return len(wrong) == 0
}

// route is how viewer_url goes through the distribution.
type route struct {
	behavior distribution.Behavior
	found    bool
	// query is a parameter that makes a new cache key; empty if none does.
	query string
}

// routed finds the behaviour that serves viewer_url.
func (r *rehearsal) routed(ctx context.Context) route {
	u, err := url.Parse(r.config.ViewerURL)
	if err != nil || r.config.ViewerURL == "" {
		return route{}
	}
	for _, b := range r.snapshot.Document.Behaviors {
		if !matches(b.Path, u.EscapedPath()) {
			continue
		}
		out := route{behavior: b, found: true}
		if c, err := r.client.CachingOf(ctx, b); err == nil {
			const own = "karui-rehearsal"
			switch {
			case c.KeyHasQuery(own):
				out.query = own
			case len(c.Queries) > 0 && !c.QueryAll:
				out.query = c.Queries[0]
			}
		}
		return out
	}
	return route{}
}

// matches tells whether a path is one of a behaviour's: * stands for any number
// of characters, ? for one, and a leading slash may be left out.
func matches(pattern, path string) bool {
	if pattern != "*" && !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "*") {
		pattern = "/" + pattern
	}
	// The usual two-pointer match: back to the last star when it goes wrong.
	star, mark, i, j := -1, 0, 0, 0
	for j < len(path) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == path[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
