package watchdog

import (
	"context"
	"fmt"
	"time"

	"karui/watchdog/distribution"
	"karui/watchdog/event"
	"karui/watchdog/probe"
	"karui/watchdog/settings"
)

// PointStatus is what came of one point of a rehearsal.
type PointStatus string

const (
	Pass    PointStatus = "pass"
	Warn    PointStatus = "warn" // does not keep a rehearsal from passing
	Fail    PointStatus = "fail"
	Skipped PointStatus = "skipped" // could not be looked at, or was not to be
)

// Point is one point of the checklist.
type Point struct {
	// Name is a stable word.
	Name   string      `json:"name"`
	Status PointStatus `json:"status"`
	Text   string      `json:"text"`
	// Hint is what to do about a Fail or Warn.
	Hint string `json:"hint,omitempty"`
}

// Rehearsal is the checklist with what came of it.
type Rehearsal struct {
	Site   string    `json:"site"`
	At     time.Time `json:"at"`
	Points []Point   `json:"points"`
	// Passed: no point failed. Warnings and skipped points do not count.
	Passed bool `json:"passed"`
	// Interrupted: it was ended before all was looked at.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Rehearse says how to rehearse.
type Rehearse struct {
	NoWrite bool
	Swap    bool
	Person  string
	// Announce is told of what is about to be changed, Begin of each look that may take
	// a while, and Progress of each point.
	Announce func(text string)
	Begin    func(text string)
	Progress func(Point)
}

// Rehearse proves that a degrade and a restore of the site would go through. The
// error is about not being able to rehearse at all; what is wrong with the site
// is in the points.
func (w *Watchdog) Rehearse(ctx context.Context, id string, how Rehearse) (Rehearsal, error) {
	s, err := w.site(id)
	if err != nil {
		return Rehearsal{}, err
	}
	r := &rehearsal{site: s, how: how, out: Rehearsal{Site: id, At: now()}}
	for _, step := range []func(context.Context){
		r.access, r.document, r.caching, r.write, r.reach, r.viewer, r.mail,
	} {
		if step(ctx); ctx.Err() != nil {
			break
		}
	}
	if how.Swap && ctx.Err() == nil {
		r.swap(ctx)
	}
	r.out.Interrupted = ctx.Err() != nil
	r.out.Passed = !r.out.Interrupted && r.count(Fail) == 0
	return r.out, nil
}

// rehearsal is a Rehearse under way.
type rehearsal struct {
	*site
	how Rehearse
	out Rehearsal

	client   *distribution.Client  // nil if there are no credentials
	snapshot distribution.Snapshot // empty if it could not be read
	// route is how viewer_url goes through the distribution.
	route route
}

func (r *rehearsal) add(name string, status PointStatus, text, hint string) {
	p := Point{Name: name, Status: status, Text: text, Hint: hint}
	if status == Pass || status == Skipped {
		p.Hint = ""
	}
	r.out.Points = append(r.out.Points, p)
	if r.how.Progress != nil {
		r.how.Progress(p)
	}
}

func (r *rehearsal) pass(name, format string, args ...any) {
	r.add(name, Pass, fmt.Sprintf(format, args...), "")
}

func (r *rehearsal) skip(name, why string) { r.add(name, Skipped, why, "") }

// failed adds a point for an error, with the error's own hint or this one.
func (r *rehearsal) failed(name string, status PointStatus, err error, hint string) {
	if own := distribution.HintOf(err); own != "" {
		hint = own
	}
	r.add(name, status, err.Error(), hint)
}

func (r *rehearsal) announce(format string, args ...any) {
	if r.how.Announce != nil {
		r.how.Announce(fmt.Sprintf(format, args...))
	}
}

func (r *rehearsal) begin(format string, args ...any) {
	if r.how.Begin != nil {
		r.how.Begin(fmt.Sprintf(format, args...))
	}
}

// contactTimeout bounds the first calls to AWS: a machine without a network, or without
// credentials of its own, would be tried for minutes.
const contactTimeout = 45 * time.Second

func (r *rehearsal) count(status PointStatus) int {
	n := 0
	for _, p := range r.out.Points {
		if p.Status == status {
			n++
		}
	}
	return n
}

// access: may the watchdog act, and only the watchdog.
func (r *rehearsal) access(ctx context.Context) {
	r.begin("asking AWS (STS) for the role, %s at most", contactTimeout)
	limited, cancel := context.WithTimeout(ctx, contactTimeout)
	defer cancel()
	client, err := r.aws(limited)
	if err != nil {
		r.failed("assume", Fail, err, "give the watchdog AWS credentials of its own: an instance or task role, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
		r.skip("external_id", "the role was not tried")
		return
	}
	r.client = client
	as, err := client.Identity(limited)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		r.client = nil
		r.failed("assume", Fail, err, "check role_arn, external_id and the role's trust policy")
		r.skip("external_id", "the role could not be assumed at all")
		return
	}
	r.pass("assume", "the role lets the watchdog in: %s", as)
	r.begin("asking STS with a wrong external id")
	open, err := client.TakesWrongExternalID(limited)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.failed("external_id", Warn, err, "the role's trust could not be tried with a wrong external id; look at it by hand")
	case open:
		r.add("external_id", Warn, "the role takes any external id",
			"add a condition on sts:ExternalId to the trust policy of "+r.config.RoleARN+"; without it, whoever the role trusts can be made to use it for others")
	default:
		r.pass("external_id", "a wrong external id is refused")
	}
}

// write proves the right to update, by writing the document as it is.
func (r *rehearsal) write(ctx context.Context) {
	const name = "write"
	switch {
	case r.snapshot.Raw == nil:
		r.skip(name, "the distribution could not be read")
		return
	case r.how.NoWrite:
		r.skip(name, "left out (--no-write): whether the role may write is not proved")
		return
	}
	lock, err := r.store.Lock(ctx, r.w.what, commandWait)
	if err != nil {
		r.failed(name, Fail, err, "wait until the other is done, and rehearse again")
		return
	}
	defer lock.Unlock()
	r.announce("writing the configuration of %s back unchanged, to prove that the role may: CloudFront knows no dry run, and deploys once more what it has", r.config.DistributionID)
	acting, cancel := outlive(ctx)
	defer cancel()
	res, err := r.client.WriteUnchanged(acting)
	r.record(event.NewID(now()), "write_unchanged", event.OrderUnknown, res, err)
	if err != nil {
		r.failed(name, Fail, err, "look at the rights of "+r.config.RoleARN)
		return
	}
	if res.Difference != "" {
		r.add(name, Fail, "what CloudFront holds after the write differs from what was sent, at "+res.Difference,
			"compare the documents before and after in the state directory, and report this")
		return
	}
	r.pass(name, "the role may write (version %s to %s)", res.ETagWas, res.ETag)
}

// reach: the addresses that rounds ask.
func (r *rehearsal) reach(ctx context.Context) {
	r.begin("asking the proxy for its ping, the true origin, and %d control addresses", len(r.common.ControlURLs))
	ping := r.w.prober.Ping(ctx, r.config.PingURL, r.headers(), r.ping.Timeout)
	if ctx.Err() != nil {
		return
	}
	if ping.OK {
		r.pass("ping", "the proxy answers: %s", ping.Text)
	} else {
		r.add("ping", Fail, fmt.Sprintf("%s: %s", ping.URL, ping.Text), pingHint(ping.Kind))
	}
	l := look{began: now()}
	if r.surroundings(ctx, &l) != nil {
		return
	}
	if l.origin.OK {
		r.pass("origin", "the true origin lives: %s", l.origin.Text)
	} else {
		r.add("origin", Fail, fmt.Sprintf("%s: %s", l.origin.URL, l.origin.Text),
			"the watchdog never swaps to a silent origin: correct origin_url, or let the watchdog's address in at the origin")
	}
	silent, text := 0, ""
	for _, c := range l.controls {
		if !c.OK {
			silent++
			text += fmt.Sprintf("; %s: %s", c.URL, c.Text)
		}
	}
	switch {
	case silent == len(l.controls):
		r.add("controls", Fail, "no control address answers"+text,
			"with all of them silent every bad round is inconclusive, and nothing would ever be done: correct control_urls, or this machine's network")
	case silent > 0:
		r.add("controls", Warn, fmt.Sprintf("%d of %d control addresses do not answer%s", silent, len(l.controls), text), "correct control_urls")
	default:
		r.pass("controls", "all %d control addresses answer", len(l.controls))
	}
}

func pingHint(kind string) string {
	switch kind {
	case event.FailDNS:
		return "correct the host name of ping_url, or its DNS record"
	case event.FailConnect:
		return "let the watchdog's address in at the proxy's firewall (it is not in CloudFront's prefix list), and see that karui runs"
	case event.FailTLS:
		return "the proxy's certificate has to fit the host name of ping_url, and to be renewed"
	case event.FailTimeout:
		return "the proxy or a firewall before it does not answer in time; let the watchdog's address in, or look at the proxy's load"
	case event.FailStatus:
		return "ping_url has to end in /ping.jpg at a host that is no site's, or in /.karui/ping.jpg; a 503 names its reason"
	default:
		return "what answers at ping_url is not karui: correct ping_url"
	}
}

// mail sends a real one.
func (r *rehearsal) mail(ctx context.Context) {
	const name = "mail"
	if !r.common.Mail.Enabled() {
		r.add(name, Warn, "no mail is configured: nobody will be told of anything", "set mail.smtp.host or mail.ses.region")
		return
	}
	to, _ := r.common.Recipients(r.config)
	recipients := "1 recipient"
	if len(to) != 1 {
		recipients = fmt.Sprintf("%d recipients", len(to))
	}
	r.announce("sending a test mail to %s", recipients)
	sending, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	at := now()
	e := r.event(noticeOf(event.Rehearsal, event.NewID(at)), facts{snapshot: r.snapshot})
	e.Person = r.how.Person
	if err := r.w.outbox.Try(sending, e); err != nil {
		if ctx.Err() == nil {
			r.add(name, Fail, err.Error(), mailHint(r.common.Mail))
		}
		return
	}
	r.pass(name, "a test mail was taken for %s; see that it arrived", recipients)
}

func mailHint(m settings.Mail) string {
	if m.SES.Region != "" {
		return "check the rights to ses:SendEmail, that mail.from is verified in " + m.SES.Region + ", and that the account has left the sandbox"
	}
	return "check mail.smtp: host, port, tls, user and password, and that the server takes mail from this machine"
}

// viewerHeaders are those of a browser that takes every lighter format.
func viewerHeaders() []probe.Header {
	return []probe.Header{{Name: "Accept", Value: "image/avif,image/webp,image/heic,image/*,*/*;q=0.8"}}
}
