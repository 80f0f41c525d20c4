package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// trouble is how the origin treats those who ask.
type trouble struct {
	// hold waits before the head, trickle before each half of the body.
	hold, trickle time.Duration
	// status answers with an error instead, "" with none.
	status int
	// cut breaks the first answer for each target off in the middle.
	cut bool
	// hang never answers.
	hang bool
}

// cardPath is where the origin sets a cookie and answers each visitor with a picture of their own.
const cardPath = "/account/card.jpg"

// origin is the site's own server. It has two doors: one for the edge, one for
// karui. A fault of the second only is karui's to cope with; when the first is
// in trouble, nobody could help.
type origin struct {
	files    map[string]*original
	changing map[string]*changing
	card     []byte

	direct, way *door

	visitors atomic.Uint64
}

// door is one address of the origin.
type door struct {
	origin  *origin
	address string
	server  *http.Server
	done    chan struct{}

	trouble  atomic.Pointer[trouble]
	requests atomic.Int64

	mu   sync.Mutex
	cuts map[string]bool // targets that were cut off since the trouble began
	// ended lets go of those who hang when the trouble ends.
	ended chan struct{}
}

func startOrigin(files []*original, changes []*changing, card []byte) (*origin, error) {
	o := &origin{files: map[string]*original{}, changing: map[string]*changing{}, card: card}
	for _, c := range changes {
		o.changing[c.id] = c
	}
	for _, f := range files {
		o.files[f.id] = f
	}
	for _, d := range []**door{&o.direct, &o.way} {
		*d = &door{origin: o, address: net.JoinHostPort(loopback(), "0")}
		(*d).behave(trouble{})
		if err := (*d).open(); err != nil {
			o.close()
			return nil, err
		}
	}
	return o, nil
}

func (o *origin) close() {
	for _, d := range []*door{o.direct, o.way} {
		if d != nil {
			d.behave(trouble{})
			d.shut()
		}
	}
}

// open listens; on the same address every time.
func (d *door) open() error {
	if d.server != nil {
		return nil
	}
	l, err := net.Listen("tcp", d.address)
	if err != nil {
		return fmt.Errorf("open the origin: %w", err)
	}
	d.address = l.Addr().String()
	server, done := &http.Server{Handler: d, ReadHeaderTimeout: 30 * time.Second}, make(chan struct{})
	d.server, d.done = server, done
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("the origin ended: %v", err)) // nothing is proved without it
		}
	}()
	return nil
}

// shut refuses connections and drops those that are open.
func (d *door) shut() {
	if d.server == nil {
		return
	}
	_ = d.server.Close()
	<-d.done
	d.server = nil
}

// behave sets what happens to requests from now on.
func (d *door) behave(t trouble) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended != nil {
		close(d.ended)
	}
	d.ended, d.cuts = make(chan struct{}), map[string]bool{}
	d.trouble.Store(&t)
}

func (d *door) url() string { return "http://" + d.address }

// ServeHTTP answers as the site does, as far as the trouble lets it.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.requests.Add(1)
	t := *d.trouble.Load()
	if t.hang {
		d.mu.Lock()
		ended := d.ended
		d.mu.Unlock()
		select {
		case <-ended:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	}
	if !wait(r, t.hold) {
		return
	}
	if t.status != 0 {
		http.Error(w, "the origin is in trouble", t.status)
		return
	}
	body, header, modified, ok := d.origin.find(r)
	if !ok {
		w.Header().Set("Cache-Control", "max-age=1")
		http.Error(w, "no such picture", http.StatusNotFound)
		return
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	if t.cut && r.Method == http.MethodGet && d.first(r.RequestURI) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body[:len(body)/2]) // whoever leaves has seen enough
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	if t.trickle > 0 {
		w = &trickle{ResponseWriter: w, r: r, pause: t.trickle, half: len(body) / 2}
	}
	http.ServeContent(w, r, "", modified, bytes.NewReader(body))
}

// first tells whether a target was not cut off before in this trouble.
func (d *door) first(target string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cuts[target] {
		return false
	}
	d.cuts[target] = true
	return true
}

// find gives the file for a request. The folders in a path mean nothing, so that
// there are as many paths as are wanted.
func (o *origin) find(r *http.Request) (body []byte, header http.Header, modified time.Time, ok bool) {
	if r.URL.Path == cardPath {
		visitor := o.visitors.Add(1)
		return personal(o.card, visitor), http.Header{
			"Content-Type": {"image/jpeg"}, "Set-Cookie": {"visitor=" + strconv.FormatUint(visitor, 10)}, "Cache-Control": {"max-age=60"},
		}, time.Time{}, true
	}
	if r.URL.Path == "/favicon.ico" {
		return []byte("icon"), http.Header{"Content-Type": {"image/x-icon"}}, time.Time{}, true
	}
	f, ok := o.files[path.Base(r.URL.Path)]
	if c := o.changing[path.Base(r.URL.Path)]; c != nil {
		f, ok = c.present().original, true
	}
	if !ok || !strings.HasPrefix(r.URL.Path, "/images/") {
		return nil, nil, time.Time{}, false
	}
	return f.body, f.header, f.modified, true
}

// wait lets time pass, unless the client leaves.
func wait(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// trickle pauses before the body and in its middle.
type trickle struct {
	http.ResponseWriter
	r     *http.Request
	pause time.Duration
	half  int
	sent  int
}

func (t *trickle) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n := len(p)
		if t.sent < t.half {
			n = min(n, t.half-t.sent)
		}
		if t.sent == 0 || t.sent == t.half {
			_ = http.NewResponseController(t.ResponseWriter).Flush()
			if !wait(t.r, t.pause) {
				return written, t.r.Context().Err()
			}
		}
		m, err := t.ResponseWriter.Write(p[:n])
		written, t.sent = written+m, t.sent+m
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}
