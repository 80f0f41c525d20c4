package watchdog

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"karui/watchdog/distribution"
	"karui/watchdog/probe"
)

const (
	// viewerTimeout is for one request through the edge, which may try two origins.
	viewerTimeout = 30 * time.Second
	// patience is how long a variant may take to be made and to displace the
	// original that the edge keeps for the short lifetime (10 s), or an order to
	// show after Deployed.
	patience = time.Minute
	// lookEvery is from one look to the next.
	lookEvery = 5 * time.Second
)

// viewer: do viewers really get variants. A wrong secret would bypass karui
// silently, since the edge fails over.
func (r *rehearsal) viewer(ctx context.Context) {
	const name = "viewer"
	switch {
	case r.config.ViewerURL == "":
		r.add(name, Warn, "viewer_url is not set: that viewers get lighter images is not proved", "set viewer_url to an image of the site that karui converts")
		return
	case r.snapshot.Raw != nil && !r.route.found:
		r.add(name, Fail, "no behaviour of the distribution serves viewer_url", "correct viewer_url or distribution_id")
		return
	case r.snapshot.Raw != nil && r.route.behavior.Target != r.config.OriginGroupID:
		r.add(name, Fail, fmt.Sprintf("viewer_url is served by behaviour %s, which asks %q and not the origin group", r.route.behavior.Path, r.route.behavior.Target),
			"choose a viewer_url that the behaviour for images serves, or let that behaviour use the origin group")
		return
	case r.snapshot.Order == distribution.OrderDirect:
		r.add(name, Warn, "the site is degraded now, so that viewers get originals", "rehearse again after a restore")
		return
	}
	r.begin("asking viewer_url through the edge")
	seen, ok := r.until(ctx, r.config.ViewerURL, variant)
	if ctx.Err() != nil {
		return
	}
	if !ok && r.route.query != "" && fromCache(seen) {
		// What the edge has may be from an earlier day.
		seen, ok = r.until(ctx, r.fresh(), variant)
	}
	if ctx.Err() != nil {
		return
	}
	if ok {
		r.pass(name, "viewer_url brings a variant: %s, %s", seen.Header.Get("Content-Type"), seen.Header.Get("ETag"))
		return
	}
	text, hint := r.noVariant(ctx, seen)
	r.add(name, Fail, text, hint)
}

// noVariant says what came instead of a variant, and why that may be.
func (r *rehearsal) noVariant(ctx context.Context, seen probe.Fetched) (text, hint string) {
	switch says := seen.Header.Get("X-Karui"); {
	case !seen.OK:
		return "viewer_url does not answer: " + seen.Text, "correct viewer_url"
	case seen.Status != http.StatusOK && seen.Header.Get("X-Karui-Reason") != "":
		return fmt.Sprintf("viewer_url is answered by karui with %s", seen.Text), r.refusedHint(seen.Header.Get("X-Karui-Reason"))
	case seen.Status != http.StatusOK:
		return fmt.Sprintf("viewer_url answers with %s", seen.Text), "choose an image that exists as viewer_url"
	case says == "original" || says == "bypass":
		return "viewer_url goes through karui, which answers with the original (X-Karui: " + says + ")",
			"choose an image that karui converts ('karui convert FILE' says what it decides and why), and see that the edge sends Accept to the origin"
	case says != "":
		return fmt.Sprintf("viewer_url goes through karui, but no variant came within %s (X-Karui: %s)", patience, says),
			"see the proxy's log and /status: conversions do not get done"
	}
	came := fmt.Sprintf("%s with ETag %s", orNone(seen.Header.Get("Content-Type")), orNone(seen.Header.Get("ETag")))
	// It may have died since it was asked at the beginning.
	if ping := r.w.prober.Ping(ctx, r.config.PingURL, r.headers(), r.ping.Timeout); !ping.OK {
		return "viewer_url brings no variant but " + came + ", as the proxy does not answer: " + ping.Text, pingHint(ping.Kind)
	}
	hint = "the edge bypasses karui, most likely because karui refuses it: compare X-Karui-Key of the proxy's origin with edge.secrets, and X-Routing with the site's id"
	hint += r.edgeSends()
	return "viewer_url brings no variant but " + came, hint
}

// refusedHint is what to do about a 503 of karui's own that reaches viewers, which only
// happens where no edge falls over to the true origin.
func (r *rehearsal) refusedHint(reason string) string {
	switch reason {
	case "secret":
		return "viewer_url must go through CloudFront, as viewers do, and not to karui itself; if it does go through, " +
			"the edge does not send the X-Karui-Key that stands in edge.secrets" + r.edgeSends()
	case "route":
		return "viewer_url must go through CloudFront, as viewers do, and not to karui itself; if it does go through, " +
			"the edge sends no X-Routing with the id of a site of karui" + r.edgeSends()
	case "origin":
		return "karui cannot get this image from the true origin: see that it answers there, and karui's log, or name an image that exists"
	}
	return "karui turns requests away (" + orNone(reason) + "), and no edge went on to the true origin: see that viewer_url goes through CloudFront, and karui's log and /status"
}

// edgeSends tells which headers the distribution adds for the proxy, if that is known.
func (r *rehearsal) edgeSends() string {
	o, found := r.snapshot.Document.Origin(r.config.ProxyOriginID)
	if !found {
		return ""
	}
	names := "no custom header"
	if len(o.HeaderNames) > 0 {
		names = strings.Join(o.HeaderNames, ", ")
	}
	return fmt.Sprintf(" (the edge sends %s)", names)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	const limit = 100
	if len(text) > limit {
		text = text[:limit]
	}
	odd := func(c rune) bool { return c <= ' ' || c >= 0x7f }
	if strings.HasSuffix(text, `"`) && !strings.ContainsFunc(text, odd) {
		return text // an ETag has quotes of its own
	}
	return strconv.QuoteToASCII(text)
}

// variant: karui made it. The ETag tells, not the format: an origin may have
// WebP of its own.
func variant(f probe.Fetched) bool {
	etag := strings.TrimPrefix(f.Header.Get("ETag"), "W/")
	return f.Status == http.StatusOK && !f.Cut && strings.HasPrefix(etag, `"k-`)
}

// original: the true origin's, asked for just now.
func original(f probe.Fetched) bool {
	return f.Status == http.StatusOK && !variant(f) && f.Header.Get("X-Karui") == "" && !fromCache(f)
}

func fromCache(f probe.Fetched) bool {
	return strings.HasPrefix(strings.ToLower(f.Header.Get("X-Cache")), "hit")
}

// until looks at an address until it is as wanted, or nothing suggests that it
// will be.
func (r *rehearsal) until(ctx context.Context, target string, wanted func(probe.Fetched) bool) (probe.Fetched, bool) {
	return r.again(ctx, func() string { return target }, func(f probe.Fetched) bool { return wanted(f) || !pending(f) }, wanted)
}

// again looks at addresses until enough is seen or patience ends.
func (r *rehearsal) again(ctx context.Context, target func() string, enough, wanted func(probe.Fetched) bool) (probe.Fetched, bool) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		seen := r.w.prober.Fetch(ctx, target(), viewerHeaders(), viewerTimeout)
		if enough(seen) || ctx.Err() != nil {
			return seen, wanted(seen)
		}
		select {
		case <-tick.C:
		case <-waiting.Done():
			return seen, false
		}
	}
}

// pending tells whether a variant may be on its way: karui says so, or the answer
// has the short lifetime of one that is not settled.
func pending(f probe.Fetched) bool {
	switch f.Header.Get("X-Karui") {
	case "miss", "stale", "wait":
		return true
	case "":
	default:
		return false
	}
	for directive := range strings.SplitSeq(f.Header.Get("Cache-Control"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		if age, err := strconv.Atoi(value); err == nil && strings.EqualFold(name, "max-age") {
			return age <= int(patience/time.Second)
		}
	}
	return false
}

// fresh is viewer_url under a cache key that nobody has asked for yet.
func (r *rehearsal) fresh() string {
	u, err := url.Parse(r.config.ViewerURL)
	if err != nil || r.route.query == "" {
		return r.config.ViewerURL
	}
	q := u.Query()
	q.Set(r.route.query, "karui-"+strings.ToLower(rand.Text()[:12]))
	u.RawQuery = q.Encode()
	return u.String()
}

// viewerPath is what to invalidate where no query makes a new key.
func (r *rehearsal) viewerPath() []string {
	u, err := url.Parse(r.config.ViewerURL)
	if err != nil {
		return nil
	}
	return slices.Compact([]string{u.EscapedPath()})
}
