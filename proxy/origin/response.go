package origin

import (
	"io"
	"net/http"
	"time"
)

// Framing is how the end of a body shows on the wire.
type Framing uint8

const (
	// Length: the body has a declared length, which is checked.
	Length Framing = iota + 1
	// Chunked: chunks or HTTP/2 frames, whose end is marked and checked.
	Chunked
	// UntilClose: the end of the connection, which cannot be told from a cut.
	UntilClose
)

// String gives the word for logs.
func (f Framing) String() string {
	switch f {
	case Length:
		return "length"
	case Chunked:
		return "chunked"
	case UntilClose:
		return "close"
	default:
		return "unknown"
	}
}

// Head is an answer without its body. It is shared between goroutines once it
// is handed out: read it, never write it, and clone Header before changing it.
type Head struct {
	// Status is 200 to 599.
	Status int
	// Header holds the end-to-end headers; those of the connection are removed.
	Header http.Header
	// Length is the declared length of the body in bytes, or -1. For HEAD it is that
	// of the body that is not there, for 204 and 304 it is 0.
	Length int64
	// Framing is Length for an answer that has no body.
	Framing Framing
	// Start is the instant before the request was sent: what is stored from this
	// answer is as old as that.
	Start time.Time
	// Place is the name of the place that answered, "" if it has none. Tries is how
	// often places were asked for this answer; 0 for one that came from elsewhere.
	Place string
	Tries int
}

// Response is an answer. Its Body must be closed, also for HEAD and after an
// error; reading it to its end or closing it early lets go of everything.
//
// Body's Read returns io.EOF only for a body that is whole as far as Framing can
// tell, and an *Error otherwise.
type Response struct {
	Head
	Body io.ReadCloser
}
