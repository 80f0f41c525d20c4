// Package event says what the watchdog tells its operators: one Event a mail.
//
// Guaranteed: an Event holds everything a mail says, so that it can be written
// down before it is sent and read back by a later version (unknown fields are
// ignored, missing ones are zero). It is plain data: texts for people are made
// from it elsewhere, in the recipients' language; only what came from outside (an
// error's text, AWS's message) is text already, in English, and bounded.
//
// Not guaranteed: that texts from outside are free of control characters; who
// shows them cleans them.
package event

import (
	"context"
	"time"
)

// Kind is what happened, a stable word for metrics and JSON.
type Kind string

const (
	// Degrade: the true origin is first now. By the watchdog (ActorAuto), by a
	// person's command, or left so by a rehearsal that was killed.
	Degrade Kind = "degrade"
	// Restore: the proxy is first again. ReplyTo names the degrade, if one was told.
	Restore Kind = "restore"
	// SwapFailed: Want could not be brought about; Failure says why. It is told
	// once an outage and reason, and tried again each round.
	SwapFailed Kind = "swap_failed"
	// ManualAwaited: it is time for Want, and the configuration leaves that to a
	// person.
	ManualAwaited Kind = "manual_awaited"
	// OriginSilent: the proxy is down and the true origin does not answer either,
	// so that nothing was swapped.
	OriginSilent Kind = "origin_silent"
	// Drift: the order is not what the watchdog left (Before to After). After is
	// OrderUnknown when the group no longer holds the two origins. With
	// FirstSight, the watchdog has no memory of its own of this site.
	Drift Kind = "drift"
	// Flapping: degraded for the third time within 24 h or more; GoodRounds says
	// how patient the restore has become.
	Flapping Kind = "flapping"
	// Capped: no further swap in direction Want, since SwapsToday has come to
	// what MaxSwapsPerDay allows. Towards OrderProxy: left degraded.
	Capped Kind = "capped"
	// Reminder: still degraded, told daily. ReplyTo names the degrade.
	Reminder Kind = "reminder"
	// Rehearsal: a test mail, sent by rehearse. It says nothing about health.
	Rehearsal Kind = "rehearsal"
)

// Kinds lists all of them.
func Kinds() []Kind {
	return []Kind{Degrade, Restore, SwapFailed, ManualAwaited, OriginSilent, Drift, Flapping, Capped, Reminder, Rehearsal}
}

// Order is who comes first in the origin group. The words are those of package
// distribution.
type Order string

const (
	OrderUnknown Order = ""       // not known, or the group does not hold the two origins
	OrderProxy   Order = "proxy"  // the normal order: karui first
	OrderDirect  Order = "direct" // the degraded order: the true origin first
)

// Actor is who brought something about.
type Actor string

const (
	ActorAuto      Actor = "auto"
	ActorPerson    Actor = "person"    // the commands degrade and restore
	ActorRehearsal Actor = "rehearsal" // rehearse --swap
)

// Failure kinds of a probe; empty for one that succeeded.
const (
	FailDNS     = "dns"
	FailConnect = "connect"
	FailTLS     = "tls"
	FailTimeout = "timeout"
	FailStatus  = "status"
	FailBody    = "body"
)

// Event is one thing to tell.
type Event struct {
	// ID names this event for ever: told again after a crash, it is the same. It
	// holds 1 to 100 lower-case letters, digits and dashes, unique in the world.
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	Site string `json:"site"`
	// At is when it happened (UTC), Since since when the proxy is as it is now
	// (down or up); zero if not known.
	At    time.Time `json:"at"`
	Since time.Time `json:"since,omitzero"`
	// ReplyTo is the ID of the degrade that this one ends or continues; empty for
	// none.
	ReplyTo string `json:"reply_to,omitempty"`

	Actor Actor `json:"actor,omitempty"`
	// Person is who ran the command, as the system names them; empty if not known.
	Person string `json:"person,omitempty"`

	// Up tells how the proxy is; meaningless when Probes is empty.
	Up bool `json:"up"`
	// Probes are the round's requests for ping_url, oldest first: at most
	// ping.count. They stop with the first success.
	Probes []Probe `json:"probes,omitempty"`
	// Origin is the look at origin_url, nil if it was not asked.
	Origin *Probe `json:"origin,omitempty"`
	// Controls are the looks at control_urls; empty if they were not asked.
	Controls []Probe `json:"controls,omitempty"`

	// Want is the direction of SwapFailed, ManualAwaited and Capped.
	Want Order `json:"want,omitempty"`
	// Before and After are the order in the origin group.
	Before Order `json:"before,omitempty"`
	After  Order `json:"after,omitempty"`
	// FirstSight: see Drift.
	FirstSight bool `json:"first_sight,omitempty"`
	// ETagBefore and ETagAfter are the distribution's versions.
	ETagBefore string `json:"etag_before,omitempty"`
	ETagAfter  string `json:"etag_after,omitempty"`
	// Calls are the calls to AWS that were made, oldest first.
	Calls []Call `json:"calls,omitempty"`
	// Failure is why it did not work.
	Failure *Failure `json:"failure,omitempty"`
	// Warnings are things that should be put right before the next time.
	Warnings []Advice `json:"warnings,omitempty"`

	// Distribution is what the site is served by.
	Distribution Distribution `json:"distribution"`

	// DegradedSince is set in Restore and Reminder, and elsewhere while degraded.
	DegradedSince time.Time `json:"degraded_since,omitzero"`
	// RestoreMode is auto or manual: what happens when the proxy is well again.
	RestoreMode string `json:"restore_mode,omitempty"`
	// GoodRounds is how many good rounds in a row a restore needs now, Interval
	// what lies between two rounds.
	GoodRounds int           `json:"good_rounds,omitempty"`
	Interval   time.Duration `json:"interval,omitempty"`
	// Degrades, SwapsToday and MaxSwapsPerDay count the last 24 hours.
	Degrades       int `json:"degrades,omitempty"`
	SwapsToday     int `json:"swaps_today,omitempty"`
	MaxSwapsPerDay int `json:"max_swaps_per_day,omitempty"`

	// Linger is how long originals stay at the edge after a restore; nil if that
	// could not be found out.
	Linger *Linger `json:"linger,omitempty"`
	// AfterRestore is none or invalidate, InvalidatePaths what is invalidated.
	AfterRestore    string   `json:"after_restore,omitempty"`
	InvalidatePaths []string `json:"invalidate_paths,omitempty"`

	// Commands are what an operator may run now, most likely first.
	Commands []Command `json:"commands,omitempty"`
}

// Probe is one request and what came of it.
type Probe struct {
	URL  string        `json:"url,omitempty"` // without credentials
	At   time.Time     `json:"at"`
	Took time.Duration `json:"took"`
	OK   bool          `json:"ok"`
	// Kind is one of the Fail words, empty if OK.
	Kind string `json:"kind,omitempty"`
	// Status of the answer; 0 if none came.
	Status int `json:"status,omitempty"`
	// Text says it in a few words of English: "200, image/jpeg, 5.1 kB" or "no
	// answer within 5s".
	Text string `json:"text"`
}

// Call is one call to AWS.
type Call struct {
	At        time.Time `json:"at"`
	Action    string    `json:"action"` // "cloudfront:UpdateDistribution"
	RequestID string    `json:"request_id,omitempty"`
	Outcome   string    `json:"outcome"` // "ok" or the error in words
}

// Failure is an error in an operator's terms.
type Failure struct {
	Kind string `json:"kind"` // a stable word: denied, throttled, refused, ...
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// Advice is something that is not right and what to do about it.
type Advice struct {
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// Distribution names the parts of a site's distribution.
type Distribution struct {
	ID     string `json:"id"`
	Group  string `json:"group"`
	Proxy  string `json:"proxy"`  // origin id of the proxy
	Direct string `json:"direct"` // origin id of the true origin
}

// Linger is what the edge's cache allows for what it took from the true origin:
// min(the origin's max-age, MaxTTL), DefaultTTL without one.
type Linger struct {
	DefaultTTL time.Duration `json:"default_ttl"`
	MaxTTL     time.Duration `json:"max_ttl"`
}

// What a command is for.
const (
	ForStatus   = "status"   // to see how things are
	ForDegrade  = "degrade"  // to put the true origin first
	ForRestore  = "restore"  // to put the proxy first
	ForRehearse = "rehearse" // to find out why something failed
)

// Command is a command line and what it is for.
type Command struct {
	For  string `json:"for"`
	Line string `json:"line"` // "karui-watchdog restore shop"
}

// Notifier takes events to be told.
type Notifier interface {
	// Enqueue takes an event. When it returns nil, the event is on disk and goes
	// out sooner or later, whatever happens to this process. An event whose ID was
	// taken before, even one that has gone out since, is not taken again: after a
	// crash the watchdog enqueues anew what it is not sure of. Safe for use by
	// several goroutines and processes at once. It does no network.
	Enqueue(ctx context.Context, e Event) error
}

// Outbox is a Notifier that also sends.
type Outbox interface {
	Notifier

	// Run sends what lies in the outbox, and retries, until ctx ends; then it
	// finishes or gives up the sending under way and returns. Nothing but ctx ends
	// it. Only one Run, of several processes on one directory, sends at a time.
	Run(ctx context.Context)

	// Flush tries everything that lies in the outbox once, due or not, and returns
	// the errors of what stays (for check and for the commands, which do not run on).
	Flush(ctx context.Context) error

	// Waiting counts what lies in the outbox, and since when the oldest does (zero
	// if none).
	Waiting() (n int, oldest time.Time, err error)

	// Try sends an event at once, past the outbox, and returns what came of it
	// (for rehearse).
	Try(ctx context.Context, e Event) error
}
