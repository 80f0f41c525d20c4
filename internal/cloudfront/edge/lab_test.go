package edge

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"karui/internal/cloudfront"
)

const (
	shop   = "E123SHOP"
	images = "images-policy"
)

// place is an origin on a network inside the process.
type place struct {
	pipe    *cloudfront.Pipe
	server  *http.Server
	done    chan struct{}
	mu      sync.Mutex
	handler http.HandlerFunc
	seen    []*http.Request
	given   int   // requests whose client went away
	refuse  error // instead of a connection
	silent  bool  // no connection and no refusal
	dialled int
	resets  bool // connections end with a reset instead of an end
	tls     *tls.Config
}

// resetting is the edge's end of a connection that the other end resets.
type resetting struct{ net.Conn }

func (r resetting) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	if err == io.EOF {
		err = syscall.ECONNRESET
	}
	return n, err
}

// secure makes the place speak TLS; nil makes it speak plainly.
func (p *place) secure(config *tls.Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tls = config
}

// Accept takes the next connection as the server's end of it.
func (p *place) Accept() (net.Conn, error) {
	conn, err := p.pipe.Accept()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.tls != nil {
		conn = tls.Server(conn, p.tls)
	}
	return conn, err
}

// Close and Addr make a listener of a place.
func (p *place) Close() error   { return p.pipe.Close() }
func (p *place) Addr() net.Addr { return p.pipe.Addr() }

func newPlace() *place {
	p := &place{pipe: cloudfront.NewPipe(), done: make(chan struct{})}
	p.server = &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.seen = append(p.seen, r.Clone(context.Background()))
		handler := p.handler
		p.mu.Unlock()
		handler(w, r)
		if r.Context().Err() != nil {
			p.mu.Lock()
			p.given++
			p.mu.Unlock()
		}
	})}
	go func() {
		defer close(p.done)
		_ = p.server.Serve(p)
	}()
	return p
}

func (p *place) dial(ctx context.Context, network, address string) (net.Conn, error) {
	p.mu.Lock()
	refuse, silent, resets := p.refuse, p.silent, p.resets
	p.dialled++
	p.mu.Unlock()
	if silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if refuse != nil {
		return nil, refuse
	}
	conn, err := p.pipe.Dial(ctx, network, address)
	if err == nil && resets {
		conn = resetting{conn}
	}
	return conn, err
}

func (p *place) handle(f http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handler = f
}

// says answers with status, header lines ("Name: value") and a body.
func (p *place) says(status int, body string, lines ...string) {
	p.handle(func(w http.ResponseWriter, _ *http.Request) { tell(w, status, body, lines...) })
}

func tell(w http.ResponseWriter, status int, body string, lines ...string) {
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		w.Header().Add(name, value)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// down refuses connections, the kept ones included; nil ends it.
func (p *place) down(err error) {
	p.mu.Lock()
	p.refuse = err
	p.mu.Unlock()
	p.server.SetKeepAlivesEnabled(err == nil) // closes idle ones
	synctest.Wait()
}

func (p *place) requests() []*http.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*http.Request(nil), p.seen...)
}

func (p *place) last(t *testing.T) *http.Request {
	t.Helper()
	all := p.requests()
	if len(all) == 0 {
		t.Fatal("the origin was not asked")
	}
	return all[len(all)-1]
}

func (p *place) close() {
	p.server.Close()
	<-p.done
}

// document is a distribution to be written; its zero value has a group "group" of
// karui and origin behind /img/* and origin behind everything else.
type document struct {
	attempts, connect, response int    // of karui; 0: 1, 2 and 10
	originAttempts              int    // 0: 1
	statuses                    []int  // nil: 403 500 502 503 504
	errors                      string // "503:0 404:60"
	behaviors                   string // before /img/*
	policy                      string // XML instead of the images policy
	extra                       string // inside the image behaviour
	methods                     string // of the image behaviour; "": HEAD GET OPTIONS
	aliases                     []string
	custom                      string // custom headers of karui, "Name: value" lines
	order                       string // "": karui origin
	path                        string // OriginPath of karui
	root                        string
	protocol                    string // "": allow-all
	https                       bool   // to karui
}

func listXML(element, item string, values ...string) string {
	out := "<" + element + "><Quantity>" + strconv.Itoa(len(values)) + "</Quantity>"
	if len(values) > 0 {
		out += "<Items>"
		for _, v := range values {
			out += "<" + item + ">" + v + "</" + item + ">"
		}
		out += "</Items>"
	}
	return out + "</" + element + ">"
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

func (d document) xml() []byte {
	var custom, codes, members, errors, behaviors []string
	for _, line := range strings.Split(d.custom, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			custom = append(custom, "<HeaderName>"+name+"</HeaderName><HeaderValue>"+value+"</HeaderValue>")
		}
	}
	if d.statuses == nil {
		d.statuses = []int{403, 500, 502, 503, 504}
	}
	for _, s := range d.statuses {
		codes = append(codes, strconv.Itoa(s))
	}
	for _, id := range strings.Fields(or(d.order, "karui origin")) {
		members = append(members, "<OriginId>"+id+"</OriginId>")
	}
	for _, pair := range strings.Fields(d.errors) {
		code, ttl, _ := strings.Cut(pair, ":")
		errors = append(errors, "<ErrorCode>"+code+"</ErrorCode><ErrorCachingMinTTL>"+ttl+"</ErrorCachingMinTTL>")
	}
	scheme := func(id string) string {
		if d.https && id == "karui" {
			return "https-only"
		}
		return "http-only"
	}
	origin := func(id string, attempts, connect, response int, path string, custom []string) string {
		return fmt.Sprintf("<Id>%s</Id><DomainName>%s.example.com</DomainName><OriginPath>%s</OriginPath>%s"+
			"<CustomOriginConfig><HTTPPort>80</HTTPPort><HTTPSPort>443</HTTPSPort><OriginProtocolPolicy>%s</OriginProtocolPolicy>"+
			"<OriginReadTimeout>%d</OriginReadTimeout><OriginKeepaliveTimeout>5</OriginKeepaliveTimeout></CustomOriginConfig>"+
			"<ConnectionAttempts>%d</ConnectionAttempts><ConnectionTimeout>%d</ConnectionTimeout>",
			id, id, path, listXML("CustomHeaders", "OriginCustomHeader", custom...), scheme(id), response, attempts, connect)
	}
	protocol := "<ViewerProtocolPolicy>" + or(d.protocol, "allow-all") + "</ViewerProtocolPolicy>"
	methods := func(names string) string {
		return strings.Replace(listXML("AllowedMethods", "Method", strings.Fields(names)...), "</AllowedMethods>",
			listXML("CachedMethods", "Method", "HEAD", "GET")+"</AllowedMethods>", 1)
	}
	behaviors = append(behaviors, "<PathPattern>/img/*</PathPattern><TargetOriginId>group</TargetOriginId>"+protocol+
		methods(or(d.methods, "HEAD GET OPTIONS"))+d.extra+or(d.policy, "<CachePolicyId>"+images+"</CachePolicyId>"))
	all := listXML("CacheBehaviors", "CacheBehavior", behaviors...)
	if d.behaviors != "" {
		n := strings.Count(d.behaviors, "<CacheBehavior>")
		all = strings.Replace(all, "<Quantity>1</Quantity><Items>", "<Quantity>"+strconv.Itoa(1+n)+"</Quantity><Items>"+d.behaviors, 1)
	}
	return []byte(`<DistributionConfig xmlns="` + cloudfront.Namespace + `"><CallerReference>lab</CallerReference>` +
		listXML("Aliases", "CNAME", d.aliases...) + "<DefaultRootObject>" + d.root + "</DefaultRootObject>" +
		listXML("Origins", "Origin", origin("karui", or(d.attempts, 1), or(d.connect, 2), or(d.response, 10), d.path, custom),
			origin("origin", or(d.originAttempts, 1), 5, 30, "", nil)) +
		listXML("OriginGroups", "OriginGroup", "<Id>group</Id><FailoverCriteria>"+listXML("StatusCodes", "StatusCode", codes...)+
			"</FailoverCriteria>"+listXML("Members", "OriginGroupMember", members...)) +
		"<DefaultCacheBehavior><TargetOriginId>origin</TargetOriginId>" + protocol +
		methods("HEAD GET OPTIONS PUT POST PATCH DELETE") + "<CachePolicyId>" + images + "</CachePolicyId></DefaultCacheBehavior>" +
		all + listXML("CustomErrorResponses", "CustomErrorResponse", errors...) +
		"<Comment></Comment><Enabled>true</Enabled></DistributionConfig>")
}

// lab is an edge between viewers and two origins, in simulated time.
type lab struct {
	*Edge
	t             *testing.T
	control       *cloudfront.Double
	karui, origin *place
	client        *http.Client

	mu     sync.Mutex
	events []Event
}

// inLab runs f in a lab whose images policy has Accept in the key, the whole
// query, a DefaultTTL of 1 h and a MaxTTL of 24 h.
func inLab(t *testing.T, d document, f func(l *lab)) { inLabWith(t, d, Options{}, f) }

func inLabWith(t *testing.T, d document, o Options, f func(l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t, control: cloudfront.New(cloudfront.Options{}), karui: newPlace(), origin: newPlace()}
		defer l.karui.close()
		defer l.origin.close()
		l.karui.says(200, "karui", "Cache-Control: max-age=60")
		l.origin.says(200, "origin", "Cache-Control: max-age=60")
		l.must(l.control.PutCachePolicy(cloudfront.CachePolicy{
			ID: images, Name: "images", DefaultTTL: time.Hour, MaxTTL: 24 * time.Hour,
			Headers: []string{"Accept"}, QueryAll: true,
		}))
		l.must(l.control.PutDistribution(shop, d.xml()))
		o.Control = l.control
		o.Distribution = or(o.Distribution, shop)
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			switch address {
			case "karui.example.com:80", "karui.example.com:443":
				return l.karui.dial(ctx, network, address)
			case "origin.example.com:80":
				return l.origin.dial(ctx, network, address)
			}
			return nil, fmt.Errorf("no such host %s", address)
		}
		o.Observer = func(v Event) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.events = append(l.events, v)
		}
		e, err := New(o)
		l.must(err)
		l.Edge = e
		pipe := cloudfront.NewPipe()
		server := e.Serve(pipe)
		transport := pipe.Transport()
		transport.DisableCompression = true
		l.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		defer func() {
			transport.CloseIdleConnections()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := server.Close(ctx); err != nil {
				t.Errorf("close: %v", err)
			}
			e.Close()
		}()
		f(l)
	})
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// put changes the distribution.
func (l *lab) put(d document) {
	l.t.Helper()
	l.must(l.control.PutDistribution(shop, d.xml()))
}

// policy changes the images policy.
func (l *lab) policy(p cloudfront.CachePolicy) {
	l.t.Helper()
	p.ID, p.Name = images, "images"
	l.must(l.control.PutCachePolicy(p))
}

// seen is an answer as a viewer had it.
type seen struct {
	status int
	body   string
	header http.Header
	err    error // of reading the body
}

func (s seen) cache() string { return strings.TrimSuffix(s.header.Get("X-Cache"), " from cloudfront") }

func (l *lab) request(method, path string, lines ...string) *http.Request {
	l.t.Helper()
	r, err := http.NewRequestWithContext(l.t.Context(), method, "http://edge.invalid"+path, nil)
	l.must(err)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	return r
}

func (l *lab) do(r *http.Request) seen {
	l.t.Helper()
	resp, err := l.client.Do(r)
	if err != nil {
		return seen{err: err}
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	return seen{status: resp.StatusCode, body: b.String(), header: resp.Header, err: err}
}

func (l *lab) get(path string, lines ...string) seen {
	l.t.Helper()
	return l.do(l.request(http.MethodGet, path, lines...))
}

// want asks for a path and compares body and X-Cache.
func (l *lab) want(path, body, cache string, lines ...string) seen {
	l.t.Helper()
	s := l.get(path, lines...)
	if s.err != nil || s.body != body || s.cache() != cache {
		l.t.Errorf("%s: %d %.60q %s (%v); want %.60q %s", path, s.status, s.body, s.cache(), s.err, body, cache)
	}
	return s
}

// asked compares how often the two origins were asked.
func (l *lab) asked(karui, origin int) {
	l.t.Helper()
	if k, o := len(l.karui.requests()), len(l.origin.requests()); k != karui || o != origin {
		l.t.Errorf("karui was asked %d times and the origin %d times, want %d and %d", k, o, karui, origin)
	}
}

// event is the last one, once the edge has nothing more to do.
func (l *lab) event() Event {
	l.t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) == 0 {
		l.t.Fatal("no event")
	}
	return l.events[len(l.events)-1]
}

// pass lets simulated time go by.
func pass(d time.Duration) { <-time.After(d) }

// refused is how a closed port answers.
var refused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
