package proxy

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"karui/convert"
	"karui/convert/header"
	"karui/internal/sabotage"
	"karui/proxy/origin"
	"karui/proxy/rules"
	"karui/proxy/stress"
)

// exchange is one request and what is answered.
type exchange struct {
	p *Proxy
	// set is the configuration that the request began with and ends with.
	set   *settings
	w     http.ResponseWriter
	r     *http.Request
	start time.Time
	// purges is how many there had been when the request began.
	purges uint64
	site   *site
	target rules.Target
	// timing is how long the first byte takes, for one that is or may be a hit.
	timing stress.Timing
	// negotiated is whether the answer may depend on Accept, so that it says so.
	negotiated bool

	// What was answered, for metrics and the log.
	did    outcome
	status int
	bytes  int64
	saved  int64
	// variant is the format of a variant, Unknown for any other answer, and dialled
	// the level of the dial that it was made at.
	variant header.Format
	dialled int
	// kept says why the original is answered for good, "" where it is not.
	kept convert.Code
	// firstByte is how long the head of the answer took; zero while there is none.
	firstByte time.Duration
	// place is the origin's place that answered or failed, and tries is how often
	// origins were asked; zero where none was.
	place string
	tries int
	// begun is whether the head of an answer may have left.
	begun bool
	// unlogged requests are health checks: nobody wants to read them.
	unlogged bool
}

// reply is an answer in the making.
type reply struct {
	status int
	// header is not changed and may be shared.
	header http.Header
	did    outcome
	// cacheControl replaces the header's own; empty leaves it.
	cacheControl string
	etag         string
	// saved and variant are for an answer with a variant.
	saved   int64
	variant header.Format
	dialled int
	// kept says why the original is answered for good.
	kept convert.Code
	// conditional replies heed If-None-Match, Range and If-Range.
	conditional bool
	// size is the body's in bytes, -1 for unknown.
	size int64
	// body sends the whole body. An error means that the answer is not whole.
	body io.WriterTo
	// arriving is whether the body is still coming from the origin. Then it may call
	// the writer's method Flush() error, and nothing leaves before it does or much is
	// there. Parts can only be sent of a body that is here and is a parted.
	arriving bool
}

// parted is a body of which a part can be sent.
type parted interface {
	section(offset, length int64) io.Reader
}

// writes is a body that a function sends.
type writes func(w io.Writer) (int64, error)

// WriteTo implements io.WriterTo.
func (f writes) WriteTo(w io.Writer) (int64, error) { return f(w) }

// describing are fields about a body, which a 304 has none of.
var describing = []string{"Content-Type", "Content-Length", "Content-Disposition", "Content-Encoding", "Content-Range"}

// send answers the request. When the body could not be sent whole, it answers 503
// if nothing has left yet; else it panics with http.ErrAbortHandler, so that the
// connection is aborted and nobody takes half a body for a whole one.
func (x *exchange) send(rep reply) {
	h := x.w.Header()
	for name, values := range rep.header {
		h[name] = values
	}
	var lines fieldLines
	if rep.etag != "" {
		h["Etag"] = lines.of(rep.etag)
	}
	if rep.cacheControl != "" {
		h["Cache-Control"] = lines.of(rep.cacheControl)
	}
	if vary := h["Vary"]; x.negotiated && !(len(vary) == 1 && vary[0] == "Accept") {
		h["Vary"] = lines.of(rules.VaryAccept(vary))
	}
	if sabotage.Vary {
		delete(h, "Vary")
	}
	x.closeIfNeeded(h)
	if x.set.edge.DebugHeaders {
		h[didHeader] = lines.of(string(rep.did))
		if rep.saved > 0 {
			h[savedHeader] = lines.of(strconv.FormatInt(rep.saved, 10))
		}
		if rep.kept != "" {
			h[keptHeader] = lines.of(string(rep.kept))
		}
	}

	status, body := rep.status, rep.body
	parts, divisible := body.(parted)
	switch {
	case rep.conditional && (rules.NoneMatches(x.r.Header["If-None-Match"], rep.etag) ||
		sabotage.ForeignETag && x.r.Header.Get("If-None-Match") != ""):
		for _, name := range describing {
			delete(h, name)
		}
		status, body = http.StatusNotModified, nil
	case rep.conditional && divisible && x.r.Method == http.MethodGet && x.r.Header.Get("Range") != "" &&
		rules.RangeMatches(x.r.Header.Get("If-Range"), rep.etag):
		offset, length, ok := rules.ParseRange(x.r.Header.Get("Range"), rep.size)
		if !ok {
			h["Content-Length"] = lines.of(strconv.FormatInt(rep.size, 10))
			break
		}
		status = http.StatusPartialContent
		h["Content-Range"] = lines.of("bytes " + strconv.FormatInt(offset, 10) + "-" +
			strconv.FormatInt(offset+length-1, 10) + "/" + strconv.FormatInt(rep.size, 10))
		h["Content-Length"] = lines.of(strconv.FormatInt(length, 10))
		body = writes(func(w io.Writer) (int64, error) { return io.CopyN(w, parts.section(offset, length), length) })
	case rep.size >= 0:
		h["Content-Length"] = lines.of(strconv.FormatInt(rep.size, 10))
	}

	x.did, x.saved, x.variant, x.dialled, x.kept = rep.did, rep.saved, rep.variant, rep.dialled, rep.kept
	if body == nil || x.r.Method == http.MethodHead {
		x.head(status)
		return
	}
	if rep.arriving {
		x.sendArriving(status, body)
		return
	}
	x.head(status)
	n, err := x.whole(body)
	x.bytes += n
	if err != nil {
		x.did = didAbort
		panic(http.ErrAbortHandler)
	}
}

// fieldLines gives the values of the fields that an answer computes, all from one
// piece of memory.
type fieldLines struct {
	room [8]string
	used int
}

func (l *fieldLines) of(value string) []string {
	if l.used == len(l.room) {
		return []string{value}
	}
	l.room[l.used] = value
	l.used++
	return l.room[l.used-1 : l.used : l.used]
}

// head sends the status and the fields.
func (x *exchange) head(status int) {
	if x.overtaken() {
		forbidKeeping(x.w.Header())
	}
	x.begin(status)
	x.w.WriteHeader(status)
}

// begin notes that an answer begins.
func (x *exchange) begin(status int) {
	x.timed()
	x.status, x.begun, x.firstByte = status, true, time.Since(x.start)
}

// cameFrom notes the place of the origin that gave the answer, or that failed.
func (x *exchange) cameFrom(head *origin.Head, err error) {
	if head != nil {
		x.place, x.tries = head.Place, head.Tries
	} else if e, ok := errors.AsType[*origin.Error](err); ok {
		x.place, x.tries = e.Place, e.Tries
	}
}

// timed says that the first byte is here.
func (x *exchange) timed() {
	if x.timing != (stress.Timing{}) {
		x.timing.End(x.p.now())
		x.timing = stress.Timing{}
	}
}

// untimed says that this is no hit.
func (x *exchange) untimed() {
	x.timing.Drop(x.p.now())
	x.timing = stress.Timing{}
}

// sendArriving sends a body that may break off.
func (x *exchange) sendArriving(status int, body io.WriterTo) {
	h := &holding{x: x, status: status}
	_, err := body.WriteTo(h)
	switch {
	case err == nil:
		err = h.send()
	case !h.sent:
		x.saved, x.variant, x.dialled, x.kept = 0, header.Unknown, 0, ""
		x.unreachable(err)
		return
	}
	if err == nil {
		return
	}
	if failure := (*origin.Error)(nil); errors.As(err, &failure) && x.r.Context().Err() == nil {
		x.p.complain("origin broke off, so the viewer's connection is aborted",
			"site", x.site.config.ID, "path", x.target.Path, "sent", x.bytes, "error", err)
	}
	x.did = didAbort
	panic(http.ErrAbortHandler)
}

// breakOff makes an abort known to viewers of HTTP/1.0, for whom the regular end
// of a connection is the end of a body that came without a length: their
// connection is reset.
func (x *exchange) breakOff() {
	if x.r.ProtoAtLeast(1, 1) || x.w.Header().Get("Content-Length") != "" {
		return // the missing end of the chunks, or of the length, tells
	}
	// A connection that cannot be taken over is aborted by net/http all the same.
	c, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return
	}
	if l, ok := c.(interface{ SetLinger(seconds int) error }); ok {
		_ = l.SetLinger(0)
	}
	_ = c.Close() // it is given up
}

// unavailable answers 503, so that the edge asks the true origin.
func (x *exchange) unavailable(why reason) {
	text := "karui is not available: " + string(why) + "\n"
	h := http.Header{
		"Content-Type": {"text/plain; charset=utf-8"},
		reasonHeader:   {string(why)},
	}
	x.plain(http.StatusServiceUnavailable, h, text)
	x.did = why.outcome()
}

// plain answers with a line of text that no cache may keep.
func (x *exchange) plain(status int, extra http.Header, text string) {
	h := x.w.Header()
	clear(h)
	for name, values := range extra {
		h[name] = values
	}
	h["Cache-Control"] = []string{"no-store"}
	if sabotage.Keep503 {
		h["Cache-Control"] = []string{"public, max-age=60"}
	}
	h["Content-Length"] = []string{strconv.Itoa(len(text))}
	if x.negotiated {
		h["Vary"] = []string{"Accept"}
	}
	x.closeIfNeeded(h)
	x.begin(status)
	x.w.WriteHeader(status)
	if x.r.Method != http.MethodHead {
		n, _ := io.WriteString(x.w, text) // a viewer that left needs no text
		x.bytes += int64(n)
	}
}

// closeIfNeeded ends the connection after the answer when the proxy drains, and
// when the request has a body, see ignoreBody.
func (x *exchange) closeIfNeeded(h http.Header) {
	if x.p.draining() || x.r.ContentLength != 0 {
		h["Connection"] = []string{"close"}
	}
}

// ignoreBody keeps net/http from waiting for a body that the viewer announced and
// may never send. None of the methods served has a use for one.
func (x *exchange) ignoreBody() {
	if x.r.ContentLength != 0 {
		// Without deadlines, in tests that have no connection, nothing waits either.
		_ = http.NewResponseController(x.w).SetReadDeadline(x.start)
	}
}
