package drill

import "karui/proxy/origin/retry"

// Fault is one way to misbehave.
type Fault string

// The faults.
const (
	// Refuse: the connection is refused.
	Refuse Fault = "refuse"
	// TLSError: the certificate is of somebody else.
	TLSError Fault = "tls"
	// Hang: the request is taken and never answered.
	Hang Fault = "hang"
	// Slow: the answer comes after 70 % of the deadline.
	Slow Fault = "slow"
	// Reset: the connection is reset instead of an answer.
	Reset Fault = "reset"
	// Error500: an answer with status 500.
	Error500 Fault = "500"
	// Error503: an answer with status 503.
	Error503 Fault = "503"
	// Error429: an answer with status 429.
	Error429 Fault = "429"
	// CutEarly: the connection ends between the head and the first byte of the body.
	CutEarly Fault = "cut early"
	// CutLate: the connection ends in the middle of the body.
	CutLate Fault = "cut late"
)

// Faults lists all of them.
func Faults() []Fault {
	return []Fault{Refuse, TLSError, Hang, Slow, Reset, Error500, Error503, Error429, CutEarly, CutLate}
}

// Fate is how package retry sees a try that meets the fault. Slow answers count as
// timeouts, which they are for a try that another may follow.
func (f Fault) Fate() retry.Fate {
	switch f {
	case Refuse, TLSError, Reset, CutEarly:
		return retry.Unavailable
	case Hang, Slow:
		return retry.TimedOut
	case Error503, Error429:
		return retry.Overloaded
	default:
		return retry.Answered
	}
}

// Words say what happens, for people.
func (f Fault) Words() string {
	switch f {
	case Refuse:
		return "connection refused"
	case TLSError:
		return "certificate not trusted"
	case Hang:
		return "no answer"
	case Slow:
		return "answer after 70 % of the deadline"
	case Reset:
		return "connection reset before an answer"
	case Error500:
		return "answer 500"
	case Error503:
		return "answer 503"
	case Error429:
		return "answer 429"
	case CutEarly:
		return "cut off before the first byte of the body"
	case CutLate:
		return "cut off in the body"
	default:
		return string(f)
	}
}
