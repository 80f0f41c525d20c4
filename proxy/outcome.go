package proxy

// KeyHeader is the request header with the edge's secret. It never reaches an origin.
const KeyHeader = "X-Karui-Key"

// Headers of karui's own answers.
const (
	didHeader    = "X-Karui"
	savedHeader  = "X-Karui-Saved"
	reasonHeader = "X-Karui-Reason"
	// keptHeader says why an original is the settled answer: a convert.Code.
	keptHeader = "X-Karui-Kept"
)

// outcome says what happened to a request. The word is the value of X-Karui, a
// label in metrics and a field of the access log; their number is fixed.
type outcome string

const (
	// didHit: a variant from the cache.
	didHit outcome = "hit"
	// didStale: from the cache, past its lifetime.
	didStale outcome = "stale"
	// didWait: a variant that was made while the viewer waited.
	didWait outcome = "wait"
	// didMiss: the original; a variant is to come.
	didMiss outcome = "miss"
	// didOriginal: the original, and that is settled.
	didOriginal outcome = "original"
	// didBypass: not convertible, private, not shareable, or no image at all.
	didBypass outcome = "bypass"

	// For metrics and the log alone:

	// didPing: a health check that went well.
	didPing outcome = "ping"
	// didRefuse: a method that karui does not serve, or a target that is none.
	didRefuse outcome = "refused"
	// didAbort: the viewer or the origin went away under way.
	didAbort outcome = "aborted"
)

// reason says why karui answered 503. It is the value of X-Karui-Reason, and in
// metrics and the log the outcome is "503_" and the reason.
type reason string

const (
	becauseRoute  reason = "route"
	becauseSecret reason = "secret"
	becauseDrain  reason = "drain"
	// becauseLatency: it has been taking too long; becauseDisk: the disks leave
	// nothing to work with; becauseShed: an operator's word.
	becauseLatency reason = "latency"
	becauseDisk    reason = "disk"
	becauseShed    reason = "shed"
	becausePanic   reason = "panic"
	// becauseOrigin: the origin could not be reached, or gave an answer that is
	// meant for karui and not for the viewer.
	becauseOrigin reason = "origin"
	// becausePing: the conversion behind the ping does not work.
	becausePing reason = "ping"
)

// outcome gives the word for metrics and the log.
func (r reason) outcome() outcome { return outcome("503_" + r) }
