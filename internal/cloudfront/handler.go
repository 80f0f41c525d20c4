package cloudfront

import (
	"crypto/rand"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxBody bounds what a client may send; the largest real configurations are a
// few hundred kilobytes.
const maxBody = 4 << 20

// call is one request on its way through.
type call struct {
	action
	r         *http.Request
	body      []byte
	requestID string
	by        principal
}

// reply is an answer ready to be sent. Header holds one value a name.
type reply struct {
	status int
	header map[string]string
	body   []byte
}

// ServeHTTP answers one request of any of the three services: understand,
// verify the signature, authorize, misbehave as told, act, note it down.
func (d *Double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{r: r, requestID: newRequestID()}
	answer, fail := d.answer(c)
	code := ""
	if fail != nil {
		code = fail.code
		answer = fail.reply(c.service, c.requestID)
	}
	d.note(c, answer, code)

	drop := dropNothing
	if c.name != "" {
		drop = d.takeDrop(c.name, dropLater)
	}
	if drop == DropAfter {
		panic(http.ErrAbortHandler) // the server's way to cut the connection without a word
	}
	d.send(w, c, answer, drop == DropHalfway)
}

// answer is everything but writing. A failure wins over the reply.
func (d *Double) answer(c *call) (reply, *failure) {
	body, err := io.ReadAll(io.LimitReader(c.r.Body, maxBody+1))
	if err != nil {
		return reply{}, failf(http.StatusBadRequest, "RequestTimeout", "The body could not be read: %v", err)
	}
	if len(body) > maxBody {
		return reply{}, failf(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "The body is over %d bytes.", maxBody)
	}
	c.body = body
	a, fail := route(c.r, body)
	c.action = a
	if fail != nil {
		return reply{}, fail
	}
	d.pause(c.r, c.name)
	if d.takeDrop(c.name, DropBefore) == DropBefore {
		panic(http.ErrAbortHandler)
	}
	region, fail := d.authenticate(c)
	if fail != nil {
		return reply{}, fail
	}
	if fail := d.authorize(c.by, c.service+":"+c.name, c.resource(d.account, region), c.service); fail != nil {
		return reply{}, fail
	}
	if hook := d.takeHook(c.name); hook != nil {
		hook()
	}
	if fail := d.takeFault(c.name); fail != nil {
		return reply{}, fail
	}
	return c.handle(d, c)
}

// send writes the answer. Half of it means: all of the length promised, half of
// the bytes, then the connection is cut.
func (d *Double) send(w http.ResponseWriter, c *call, a reply, half bool) {
	if a.status < http.StatusMultipleChoices && c.service == serviceCloudFront {
		d.mu.Lock()
		prefix := d.prefix
		d.mu.Unlock()
		a.body = withPrefix(a.body, prefix)
	}
	h := w.Header()
	for name, value := range a.header {
		h.Set(name, value)
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "text/xml")
	}
	// The clock that signatures are judged by, so that clients can correct theirs.
	h.Set("Date", d.now().UTC().Format(http.TimeFormat))
	h.Set("X-Amzn-Requestid", c.requestID)
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	if half {
		_, _ = w.Write(a.body[:len(a.body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(a.body) // a client that went away is no concern of ours
}

// newRequestID looks like the ones of AWS, a random UUID.
func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// newID is random, upper-case and digits, as AWS's identifiers are.
func newID(prefix string, length int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, length)
	_, _ = rand.Read(b) // never fails
	for i := range b {
		b[i] = alphabet[int(b[i])%len(alphabet)]
	}
	return prefix + string(b)
}

// xmlTime is how CloudFront and STS write times.
func xmlTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
