package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	double "karui/internal/cloudfront"
)

const (
	imagesPolicy = "b2884449-e4de-46a7-ac36-70bc7f1ddd6d"
	roleARN      = "arn:aws:iam::111122223333:role/karui-watchdog"
	rolePolicy   = `{"Version":"2012-10-17","Statement":[` +
		`{"Effect":"Allow","Action":["cloudfront:GetDistribution","cloudfront:GetDistributionConfig","cloudfront:UpdateDistribution",` +
		`"cloudfront:CreateInvalidation","cloudfront:GetInvalidation"],"Resource":"arn:aws:cloudfront::111122223333:distribution/*"},` +
		`{"Effect":"Allow","Action":"cloudfront:GetCachePolicy","Resource":"arn:aws:cloudfront::111122223333:cache-policy/*"}]}`
)

// binary is the real program, built once for all tests as it is released.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "karui-watchdog-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "karui-watchdog")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// lab is the double of AWS and a shop's servers, on the loopback.
type lab struct {
	*double.Double
	t       *testing.T
	url     string
	env     []string
	dir     string
	extra   map[string]string // lines of the site's configuration
	top     map[string]string // lines of the configuration
	proxy   *place
	origin  *place
	control *place
	edge    *place
}

// place is a server that can be stopped and started again at the same address.
type place struct {
	t       *testing.T
	handler http.Handler
	address string
	server  *http.Server
	done    chan struct{}
}

func newPlace(t *testing.T, h http.Handler) *place {
	p := &place{t: t, handler: h, address: "127.0.0.1:0"}
	p.start()
	t.Cleanup(p.stop)
	return p
}

func (p *place) start() {
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.address = l.Addr().String()
	server := &http.Server{Handler: p.handler}
	done := make(chan struct{})
	p.server, p.done = server, done
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
}

func (p *place) stop() {
	if p.server == nil {
		return
	}
	p.server.Close()
	<-p.done
	p.server = nil
}

func (p *place) url(path string) string { return "http://" + p.address + path }

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{
		t: t, Double: double.New(double.Options{}), dir: t.TempDir(),
		extra: map[string]string{}, top: map[string]string{},
	}
	shop, err := os.ReadFile("../../internal/cloudfront/testdata/shop.xml")
	l.must(err)
	l.must(l.PutCachePolicy(double.CachePolicy{
		ID: imagesPolicy, Name: "images", DefaultTTL: time.Hour, MaxTTL: 24 * time.Hour, Headers: []string{"Accept"}, Queries: []string{"v"},
	}))
	l.must(l.PutDistribution("ESHOP", shop))
	user, err := l.AddUser("watchdog", double.AllowAll)
	l.must(err)
	_, err = l.PutRole(double.Role{Name: "karui-watchdog", ExternalID: "external-17", Policy: rolePolicy})
	l.must(err)
	server, err := l.Start("127.0.0.1:0")
	l.must(err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Close(ctx)
	})
	l.url = server.URL
	l.env = append(os.Environ(),
		"AWS_ENDPOINT_URL_CLOUDFRONT="+l.url, "AWS_ENDPOINT_URL_STS="+l.url, "AWS_ENDPOINT_URL_SESV2="+l.url,
		"AWS_ACCESS_KEY_ID="+user.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+user.SecretAccessKey, "AWS_SESSION_TOKEN=",
		"AWS_REGION=eu-west-1", "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	)
	l.proxy = newPlace(t, http.HandlerFunc(proxyHandler))
	l.origin = newPlace(t, http.HandlerFunc(originHandler))
	l.control = newPlace(t, http.NotFoundHandler())
	l.edge = newPlace(t, l.edgeHandler())
	t.Cleanup(l.mailsAreUnderstood)
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// config writes watchdog.yaml, with short times.
func (l *lab) config() string {
	l.t.Helper()
	top := map[string]string{
		"interval": "1s", "ping": "{ count: 3, spacing: 50ms, timeout: 200ms }", "state_dir": filepath.Join(l.dir, "state"),
		"listen": `"127.0.0.1:0"`, "deploy_timeout": "30s", "control_urls": "[" + l.control.url("/") + "]",
		"mail": `{ from: karui@example.com, to: [ops@example.com], ses: { region: eu-west-1 } }`,
	}
	site := map[string]string{
		"id": "shop", "ping_url": l.proxy.url("/ping.jpg"), "origin_url": l.origin.url("/favicon.ico"), "viewer_url": l.edge.url("/images/logo.jpg"),
		"distribution_id": "ESHOP", "origin_group_id": "images", "proxy_origin_id": "karui", "direct_origin_id": "origin",
		"role_arn": roleARN, "external_id": "external-17",
	}
	for k, v := range l.top {
		top[k] = v
	}
	for k, v := range l.extra {
		site[k] = v
	}
	var b strings.Builder
	for k, v := range top {
		fmt.Fprintf(&b, "%s: %s\n", k, v)
	}
	b.WriteString("sites:\n  -\n")
	for k, v := range site {
		fmt.Fprintf(&b, "    %s: %s\n", k, v)
	}
	path := filepath.Join(l.dir, "watchdog.yaml")
	l.must(os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

// process is a running program.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr bytes.Buffer
	done   chan error
}

// begin starts the program; at the test's end it is killed if it still runs.
func (l *lab) begin(args ...string) *process {
	l.t.Helper()
	path, err := binary()
	l.must(err)
	p := &process{t: l.t, cmd: exec.Command(path, append(args, "--config", l.config())...), done: make(chan error, 1)}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = l.env, &p.stdout, &p.stderr
	l.must(p.cmd.Start())
	go func() { p.done <- p.cmd.Wait() }()
	l.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		if p.done != nil {
			<-p.done
		}
	})
	return p
}

// wait gives the exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
		p.done = nil
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(60 * time.Second):
		p.t.Fatalf("%s does not end", p.cmd)
		return -1
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// run runs the program to its end.
func (l *lab) run(args ...string) (code int, stdout, stderr string) {
	l.t.Helper()
	p := l.begin(args...)
	code = p.wait()
	return code, p.stdout.String(), p.stderr.String()
}

// eventually waits for what other processes bring about.
func (l *lab) eventually(what string, cond func() bool) {
	l.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			l.t.Fatalf("never: %s; mails: %q", what, l.subjects())
		}
	}
}

// subjects of the mails that were sent, oldest first.
func (l *lab) subjects() []string {
	var out []string
	for _, m := range l.Messages() {
		out = append(out, header(m, "Subject"))
	}
	return out
}

// header of a mail, simple or raw.
func header(m double.Message, name string) string {
	if name == "Subject" && m.Subject != "" {
		return m.Subject
	}
	if v := m.Headers[name]; v != "" {
		return v
	}
	head, _, _ := strings.Cut(strings.ReplaceAll(string(m.Raw), "\r\n", "\n"), "\n\n")
	head = strings.ReplaceAll(strings.ReplaceAll(head, "\n ", " "), "\n\t", " ")
	for line := range strings.Lines(head) {
		if v, found := strings.CutPrefix(line, name+": "); found {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// updates counts the writes that went through.
func (l *lab) updates() int {
	n := 0
	for _, c := range l.Calls("UpdateDistribution") {
		if c.Status == 200 {
			n++
		}
	}
	return n
}

// direct tells whether the true origin comes first.
func (l *lab) direct() bool {
	l.t.Helper()
	s, ok := l.Distribution("ESHOP")
	if !ok {
		l.t.Fatal("the distribution is gone")
	}
	return originFirst(s.Newest)
}

func originFirst(doc []byte) bool {
	group := string(doc)
	group = group[strings.Index(group, "<OriginGroup><Id>images</Id>"):]
	return strings.Index(group, "<OriginId>origin</OriginId>") < strings.Index(group, "<OriginId>karui</OriginId>")
}

// rounds is how many conclusive or other rounds the state file has seen: the
// time of the last.
func (l *lab) lastRound() (verdict string, at time.Time) {
	var rec struct {
		Last struct {
			At      time.Time
			Verdict string
		}
	}
	data, err := os.ReadFile(filepath.Join(l.dir, "state", "sites", "shop", "state.json"))
	if err != nil || json.Unmarshal(data, &rec) != nil {
		return "", time.Time{}
	}
	return rec.Last.Verdict, rec.Last.At
}

// moreRounds waits until n more rounds of that verdict have ended.
func (l *lab) moreRounds(n int, want string) {
	l.t.Helper()
	_, last := l.lastRound()
	l.eventually(fmt.Sprintf("%d rounds of %s", n, want), func() bool {
		verdict, at := l.lastRound()
		if at.After(last) && verdict == want {
			last = at
			n--
		}
		return n <= 0
	})
}

var jpegBody = func() []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 32, 32)), nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}()

// proxyHandler is karui as far as the watchdog sees it: a ping, and variants
// after a first original.
func proxyHandler(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/ping.jpg" {
		w.Header().Set("Content-Type", "image/jpeg")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(jpegBody)
		return
	}
	w.Header().Set("Vary", "Accept")
	w.Header().Set("X-Karui", "hit")
	w.Header().Set("ETag", `"k-0123456789abcdef"`)
	w.Header().Set("Content-Type", "image/webp")
	_, _ = w.Write([]byte("RIFF....WEBP"))
}

func originHandler(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "image/jpeg")
	w.Header().Set("ETag", `"original"`)
	_, _ = w.Write(jpegBody)
}

// edgeHandler is a data plane: it asks the members of the group in the order in
// effect, fails over, and caches by path and the query v.
func (l *lab) edgeHandler() http.Handler {
	type kept struct {
		status int
		header http.Header
		body   []byte
		at     time.Time
	}
	var mu sync.Mutex
	cache := map[string]kept{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.URL.Path + "?v=" + r.URL.Query().Get("v")
		mu.Lock()
		defer mu.Unlock()
		entry, hit := cache[key]
		for _, inv := range l.Invalidations("ESHOP") {
			if hit && inv.Made.After(entry.at) {
				hit = false
			}
		}
		if !hit {
			doc, _ := l.Deployed("ESHOP")
			places := []*place{l.proxy, l.origin}
			if originFirst(doc) {
				places = []*place{l.origin, l.proxy}
			}
			for _, p := range places {
				req := httptestRequest(r, p)
				res := record(p, req)
				if res.status != 0 && res.status < 500 {
					entry, hit = kept{res.status, res.header, res.body, time.Now()}, true
					cache[key] = entry
					w.Header().Set("X-Cache", "Miss from cloudfront")
					break
				}
			}
		} else {
			w.Header().Set("X-Cache", "Hit from cloudfront")
		}
		if !hit {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		for k, v := range entry.header {
			w.Header()[k] = v
		}
		w.WriteHeader(entry.status)
		_, _ = w.Write(entry.body)
	})
}

func httptestRequest(r *http.Request, p *place) *http.Request {
	req := r.Clone(r.Context())
	req.URL.Scheme, req.URL.Host, req.RequestURI = "http", p.address, ""
	return req
}

type answered struct {
	status int
	header http.Header
	body   []byte
}

func record(p *place, req *http.Request) answered {
	if p.server == nil {
		return answered{}
	}
	w := &recorder{header: http.Header{}}
	p.handler.ServeHTTP(w, req)
	if w.status == 0 {
		w.status = 200
	}
	return answered{w.status, w.header, w.body.Bytes()}
}

type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
