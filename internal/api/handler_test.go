package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const (
	reader = "reader-0123456789"
	staff  = "staff-of-one-site"
	ops    = "operator-01234567"
)

var tokens = []Token{
	{Name: "reader", Secret: reader, Rights: []Right{Read}},
	{Name: "staff", Secret: staff, Rights: []Right{Read, Purge}, Sites: []string{"shop"}},
	{Name: "ops", Secret: ops, Rights: []Right{Read, Purge, Dial}},
	{Name: "empty", Secret: "", Rights: []Right{Read, Purge, Dial}},
}

// rig is an API with routes that say what they were called with.
type rig struct {
	*Handler
	log   bytes.Buffer
	calls []string
	now   time.Time
}

func newRig(tokens ...Token) *rig {
	r := &rig{now: time.Unix(1_700_000_000, 0)}
	note := func(c *Call) (any, error) {
		r.calls = append(r.calls, c.Method+" "+c.URL.Path)
		return map[string]string{"caller": c.Caller}, nil
	}
	r.Handler = New(Options{
		Tokens: tokens, Log: slog.New(slog.NewTextHandler(&r.log, nil)), Now: func() time.Time { return r.now },
		Routes: []Route{
			{Method: http.MethodGet, Pattern: "/things", Right: Read, Handle: note},
			{Method: http.MethodGet, Pattern: "/whole", Right: Read, Whole: true, Handle: note},
			{Method: http.MethodDelete, Pattern: "/things/{id}", Right: Dial, Whole: true, Handle: note},
			{Method: http.MethodPost, Pattern: "/sites/{site}/purge", Right: Purge, MaxBody: 64, Handle: func(c *Call) (any, error) {
				if err := c.Require(c.PathValue("site")); err != nil {
					return nil, err
				}
				var body struct{ Prefix string }
				if err := c.Decode(&body); err != nil {
					return nil, err
				}
				return body, nil
			}},
			{Method: http.MethodGet, Pattern: "/broken", Right: Read, Handle: func(*Call) (any, error) { return nil, errors.New("secret path /x") }},
			{Method: http.MethodGet, Pattern: "/unwritable", Right: Read, Handle: func(*Call) (any, error) { return func() {}, nil }},
			{Method: http.MethodPut, Pattern: "/nothing", Right: Dial, Handle: func(*Call) (any, error) { return nil, nil }},
		},
	})
	return r
}

// ask sends one request. Headers are "Name: value"; "Host: x" sets the host.
func (r *rig) ask(method, target, body string, lines ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, target, strings.NewReader(body))
	req.Host = "127.0.0.1:9090"
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w
}

func bearing(secret string) string { return "Authorization: Bearer " + secret }

// refusal reads the error of an answer, and checks its form.
func refusal(t *testing.T, w *httptest.ResponseRecorder) *Error {
	t.Helper()
	var body struct{ Error *Error }
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error == nil || body.Error.Code == "" || body.Error.Message == "" {
		t.Fatalf("%d %s: not an error of the API (%v)", w.Code, w.Body, err)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	return body.Error
}

func TestWhoMayDoWhat(t *testing.T) {
	for _, test := range []struct {
		method, path, token string
		status              int
		code                string
	}{
		{"GET", "/api/v1/things", reader, 200, ""},
		{"HEAD", "/api/v1/things", reader, 200, ""},
		{"GET", "/api/v1/things", staff, 200, ""},
		{"GET", "/api/v1/whole", reader, 200, ""},
		{"GET", "/api/v1/whole", staff, 403, CodeForbidden},
		{"GET", "/api/v1/things", "", 401, CodeUnauthorized},
		{"GET", "/api/v1/things", "reader", 401, CodeUnauthorized},
		{"GET", "/api/v1/things", reader + "2", 401, CodeUnauthorized},
		{"GET", "/api/v1/nowhere", "", 401, CodeUnauthorized},
		{"GET", "/api/v1/nowhere", reader, 404, CodeNotFound},
		{"GET", "/api/v1/", reader, 404, CodeNotFound},
		{"POST", "/api/v1/things", reader, 405, CodeMethod},
		{"DELETE", "/api/v1/things/7", reader, 403, CodeForbidden},
		{"DELETE", "/api/v1/things/7", staff, 403, CodeForbidden},
		{"DELETE", "/api/v1/things/7", ops, 200, ""},
		{"POST", "/api/v1/sites/shop/purge", reader, 403, CodeForbidden},
		{"POST", "/api/v1/sites/shop/purge", staff, 200, ""},
		{"POST", "/api/v1/sites/blog/purge", staff, 403, CodeForbidden},
		{"POST", "/api/v1/sites/blog/purge", ops, 200, ""},
		{"PUT", "/api/v1/nothing", ops, 204, ""},
		{"GET", "/api/v1/broken", ops, 500, CodeInternal},
		{"GET", "/api/v1/unwritable", ops, 500, CodeInternal},
	} {
		r := newRig(tokens...)
		w := r.ask(test.method, test.path, "", bearing(test.token))
		if w.Code != test.status {
			t.Errorf("%s %s with %q: %d %s, want %d", test.method, test.path, test.token, w.Code, w.Body, test.status)
			continue
		}
		if test.code != "" {
			if got := refusal(t, w); got.Code != test.code {
				t.Errorf("%s %s with %q: %s, want %s", test.method, test.path, test.token, got.Code, test.code)
			}
		}
		if challenge := w.Header().Get("WWW-Authenticate"); (test.status == 401) != (challenge != "") {
			t.Errorf("%s %s: WWW-Authenticate %q with %d", test.method, test.path, challenge, test.status)
		}
		if strings.Contains(w.Body.String(), "secret path") {
			t.Errorf("%s tells what failed inside", w.Body)
		}
	}
	if got := newRig(tokens...).ask("PATCH", "/api/v1/things", "", bearing(reader)).Header().Get("Allow"); got != "GET, HEAD" {
		t.Errorf("Allow: %q", got)
	}
}

func TestOnlyBearerTokensCount(t *testing.T) {
	for _, line := range []string{"Authorization: Basic " + reader, "Authorization: " + reader, "Cookie: token=" + reader, "X-Token: " + reader} {
		if w := newRig(tokens...).ask("GET", "/api/v1/things?token="+reader, "", line); w.Code != 401 {
			t.Errorf("%s: %d", line, w.Code)
		}
	}
	if w := newRig(tokens...).ask("GET", "/api/v1/things", "", "Authorization: bearer  "+reader); w.Code != 200 {
		t.Errorf("the scheme is matched without regard to case: %d", w.Code)
	}
}

func TestBodies(t *testing.T) {
	for _, test := range []struct {
		name, body, contentType string
		status                  int
		code                    string
	}{
		{"good", `{"Prefix": "/a"}`, "application/json", 200, ""},
		{"with charset", `{"Prefix": "/a"}`, "application/json; charset=utf-8", 200, ""},
		{"none", "", "", 200, ""},
		{"form of a web page", "Prefix=/a", "application/x-www-form-urlencoded", 415, CodeMediaType},
		{"text of a web page", `{"Prefix": "/a"}`, "text/plain", 415, CodeMediaType},
		{"no type", `{"Prefix": "/a"}`, "", 415, CodeMediaType},
		{"not JSON", `{"Prefix": `, "application/json", 422, CodeInvalid},
		{"unknown field", `{"Prefx": "/a"}`, "application/json", 422, CodeInvalid},
		{"wrong kind", `{"Prefix": 7}`, "application/json", 422, CodeInvalid},
		{"two values", `{"Prefix": "/a"} {}`, "application/json", 422, CodeInvalid},
		{"too long", `{"Prefix": "` + strings.Repeat("a", 64) + `"}`, "application/json", 413, CodeTooLarge},
	} {
		w := newRig(tokens...).ask("POST", "/api/v1/sites/shop/purge", test.body, bearing(ops), "Content-Type: "+test.contentType)
		if w.Code != test.status {
			t.Errorf("%s: %d %s, want %d", test.name, w.Code, w.Body, test.status)
		} else if test.code != "" && refusal(t, w).Code != test.code {
			t.Errorf("%s: %s, want %s", test.name, w.Body, test.code)
		}
	}
	// A route that takes no body is not fed one.
	if w := newRig(tokens...).ask("PUT", "/api/v1/nothing", "{}", bearing(ops)); w.Code != 413 {
		t.Errorf("a body where none is taken: %d", w.Code)
	}
}

// Without tokens, whoever is on this machine may ask, but no web page that was
// loaded from elsewhere, under whatever name.
func TestForeignPages(t *testing.T) {
	for _, test := range []struct {
		name   string
		method string
		lines  []string
		want   int
	}{
		{"curl", "DELETE", nil, 200},
		{"by name", "DELETE", []string{"Host: localhost:9090"}, 200},
		{"by IPv6", "DELETE", []string{"Host: [::1]:9090"}, 200},
		{"rebound name", "GET", []string{"Host: evil.example.com"}, 403},
		{"rebound name that writes", "DELETE", []string{"Host: evil.example.com", "Origin: http://evil.example.com"}, 403},
		{"name that only begins so", "GET", []string{"Host: localhost.evil.example.com"}, 403},
		{"another page", "DELETE", []string{"Origin: https://evil.example.com"}, 403},
		{"another page by fetch metadata", "DELETE", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"a sandboxed page", "DELETE", []string{"Origin: null"}, 403},
		{"another port of this machine", "DELETE", []string{"Origin: http://127.0.0.1:3000"}, 403},
		{"a page of its own", "DELETE", []string{"Origin: http://127.0.0.1:9090", "Sec-Fetch-Site: same-origin"}, 200},
	} {
		r := newRig()
		path := "/api/v1/things/7"
		if test.method == "GET" {
			path = "/api/v1/things"
		}
		w := r.ask(test.method, path, "", test.lines...)
		if w.Code != test.want {
			t.Errorf("%s: %d %s, want %d", test.name, w.Code, w.Body, test.want)
		}
		if test.want == 403 && (refusal(t, w).Code != CodeForeign || len(r.calls) > 0) {
			t.Errorf("%s: %s, %v", test.name, w.Body, r.calls)
		}
		if w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: other origins may read", test.name)
		}
	}
	// With tokens the name does not matter, but other origins still do.
	if w := newRig(tokens...).ask("GET", "/api/v1/things", "", bearing(reader), "Host: karui.example.com"); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
	if w := newRig(tokens...).ask("DELETE", "/api/v1/things/7", "", bearing(ops), "Origin: https://evil.example.com"); w.Code != 403 {
		t.Errorf("%d", w.Code)
	}
}

// Wrong ones are held up, and right ones never: behind a proxy all have one address.
func TestWrongTokensAreHeldUp(t *testing.T) {
	r := newRig(tokens...)
	for i := range attemptsAtOnce {
		if w := r.ask("GET", "/api/v1/things", "", bearing(fmt.Sprint("guess", i))); w.Code != 401 {
			t.Fatalf("attempt %d: %d", i, w.Code)
		}
	}
	logged := r.log.Len()
	for range 3 * attemptsAtOnce {
		w := r.ask("GET", "/api/v1/things", "", bearing("guess"))
		if w.Code != 429 || w.Header().Get("Retry-After") == "" || refusal(t, w).Code != CodeTooMany {
			t.Errorf("after %d wrong tokens: %d %s", attemptsAtOnce, w.Code, w.Body)
		}
		if w := r.ask("GET", "/api/v1/things", "", bearing(reader)); w.Code != 200 {
			t.Errorf("a right one among wrong ones: %d %s", w.Code, w.Body)
		}
	}
	if w := r.ask("GET", "/api/v1/things", ""); w.Code != 401 {
		t.Errorf("without a token: %d %s", w.Code, w.Body)
	}
	if r.log.Len() > logged {
		t.Errorf("wrong tokens fill the log: %s", &r.log)
	}
	r.now = r.now.Add(2 * time.Second)
	if w := r.ask("GET", "/api/v1/things", "", bearing("guess")); w.Code != 401 {
		t.Errorf("after a pause: %d %s", w.Code, w.Body)
	}
	// Good tokens cost nothing.
	for range 5 * attemptsAtOnce {
		if w := r.ask("GET", "/api/v1/things", "", bearing(reader)); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	for _, secret := range []string{reader, "guess0"} {
		if strings.Contains(r.log.String(), secret) {
			t.Error("the log holds a token")
		}
	}
}

func TestAttemptsByPeer(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	a := newAttempts(func() time.Time { return now })
	for range attemptsAtOnce {
		a.wrong("192.0.2.1:1000")
		a.wrong("[2001:db8::1]:1")
	}
	for remote, want := range map[string]bool{
		"192.0.2.1:2000": false, "192.0.2.2:1000": true, "[2001:db8::ffff]:1": false, "[2001:db8:0:1::1]:1": true, "nonsense": true,
	} {
		if got := a.wrong(remote); got != want {
			t.Errorf("%s: %v, want %v", remote, got, want)
		}
	}
	// Any number of peers takes bounded memory.
	for i := range 3 * peersMost {
		a.wrong(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
	}
	if len(a.peers) > peersMost {
		t.Errorf("%d peers are remembered, at most %d should be", len(a.peers), peersMost)
	}
	if a.wrong("198.51.100.1:1") {
		t.Error("peers beyond the bound share a limit, which is used up")
	}
	now = now.Add(time.Minute)
	if !a.wrong("198.51.100.1:1") || len(a.peers) != 1 {
		t.Errorf("%d peers are remembered a minute later", len(a.peers))
	}
}

func TestWritesAreLoggedWithTheTokensName(t *testing.T) {
	r := newRig(tokens...)
	r.ask("GET", "/api/v1/things", "", bearing(ops))
	if r.log.Len() > 0 {
		t.Errorf("a read was logged: %s", &r.log)
	}
	r.ask("DELETE", "/api/v1/things/7?key=hush", "", bearing(ops))
	r.ask("DELETE", "/api/v1/things/8", "", bearing(staff))
	log := r.log.String()
	for _, want := range []string{"token=ops", "path=/api/v1/things/7", "result=done", "token=staff", "result=refused", "peer=192.0.2.1"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	if strings.Contains(log, "hush") || strings.Contains(log, ops) {
		t.Errorf("the log holds a secret:\n%s", log)
	}
}

func TestGuard(t *testing.T) {
	r := newRig(tokens...)
	guarded := r.Guard(Read, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "in") }))
	for token, want := range map[string]int{"": 401, reader: 200, staff: 403, ops: 200} {
		req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, req)
		if w.Code != want {
			t.Errorf("%q: %d, want %d", token, w.Code, want)
		}
	}
}

func TestPanicAborts(t *testing.T) {
	h := New(Options{Log: slog.New(slog.DiscardHandler), Routes: []Route{
		{Method: http.MethodGet, Pattern: "/x", Right: Read, Handle: func(*Call) (any, error) { panic("bug") }},
	}})
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("recovered %v, want the connection to be aborted", v)
		}
	}()
	req := httptest.NewRequest(http.MethodGet, "/api/v1/x", nil)
	req.Host = "localhost"
	h.ServeHTTP(httptest.NewRecorder(), req)
}

func TestTwoRoutesForOneNameAreABug(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	same := Route{Method: http.MethodGet, Pattern: "/x", Right: Read}
	New(Options{Log: slog.New(slog.DiscardHandler), Routes: []Route{same, same}})
}
