package status

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/html"

	"karui/internal/api"
	"karui/internal/page"
	"karui/proxy/origin"
	"karui/proxy/success"
)

// ask gets a path and gives the answer with its body.
func ask(t *testing.T, h http.Handler, path string, lines ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest("GET", "http://127.0.0.1:9090"+path, nil)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), w.Body.String()
}

func TestHostileNamesStayText(t *testing.T) {
	s := hostile()
	_, body := ask(t, s.handler(t), Path)
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	scripts := 0
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				t.Errorf("%s has %s=%q", n.Data, a.Key, a.Val)
			}
			if (a.Key == "href" || a.Key == "src" || a.Key == "action") && !strings.HasPrefix(a.Val, "/status") && a.Val != "/purge" && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("%s leads to %q", n.Data, a.Val)
			}
		}
		switch n.Data {
		case "script":
			scripts++
			if n.FirstChild != nil {
				t.Errorf("a script on the page itself: %s", n.FirstChild.Data)
			}
		case "style", "iframe", "object", "base":
			t.Errorf("an element %s", n.Data)
		}
	}
	if scripts != 1 || !strings.Contains(body, "&lt;script&gt;alert") {
		t.Errorf("%d scripts", scripts)
	}
}

func TestHeaders(t *testing.T) {
	h := healthyPage(t)
	for _, path := range []string{Path, Path + "/live", Path + "/style.css", Path + "/live.js", Path + "/icon.svg"} {
		resp, _ := ask(t, h, path)
		for name, want := range map[string]string{
			"Content-Security-Policy": page.Policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "X-Frame-Options": "DENY",
		} {
			if got := resp.Header.Get(name); resp.StatusCode != 200 || got != want {
				t.Errorf("%s: %d, %s: %q", path, resp.StatusCode, name, got)
			}
		}
	}
	// A name that somebody else made to lead to this machine shows nothing.
	r := httptest.NewRequest("GET", "http://evil.example"+Path, nil)
	r.Header.Set("Accept", "text/html")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "shop") {
		t.Errorf("under another name: %d", w.Code)
	}
}

func healthyPage(t *testing.T, tokens ...api.Token) http.Handler {
	t.Helper()
	return told(tell(5*time.Minute, func(at time.Time) Facts { return healthy(at, 3) })).handler(t, tokens...)
}

// A token for some sites sees these, and nothing of others or of the machine.
func TestTokenForSomeSites(t *testing.T) {
	s := shedding()
	s.recorder.Note(Event{Kind: "purge", Site: "photos", Text: "PURGE-PHOTOS"})
	s.recorder.Note(Event{Kind: "purge", Site: "news", Text: "PURGE-NEWS"})
	read := []api.Right{api.Read}
	h := s.handler(t,
		api.Token{Name: "all", Secret: "all-0123456789", Rights: read},
		api.Token{Name: "news", Secret: "news-0123456789", Rights: read, Sites: []string{"news", "recipes"}},
		api.Token{Name: "purger", Secret: "purge-0123456789", Rights: []api.Right{api.Purge}},
	)
	others := []string{"shop", "photos", "travel-jp", "customer-005", "/var/cache/karui", "3fa9c1d2", "PURGE-PHOTOS", "worker process", "Volumes", "Quarantine", "Workers", "503 latency"}
	own := []string{"news", "recipes", "30 %", "PURGE-NEWS", "The dial went from full to lean"}
	_, everything := ask(t, h, Path, "Authorization: Bearer all-0123456789")
	for _, word := range append(slices.Clone(others), own...) {
		if !strings.Contains(everything, word) {
			t.Errorf("the token for all does not see %q", word)
		}
	}
	for _, path := range []string{Path, Path + "/live", api.Prefix + "/events"} {
		resp, some := ask(t, h, path, "Authorization: Bearer news-0123456789")
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %d %s", path, resp.StatusCode, some)
		}
		for _, word := range others {
			if strings.Contains(some, word) {
				at := strings.Index(some, word)
				t.Errorf("%s: the token for news sees %q: %s", path, word, some[max(0, at-200):min(len(some), at+100)])
			}
		}
		for _, word := range own {
			if !strings.Contains(some, word) && !(path == api.Prefix+"/events" && word == "recipes") {
				t.Errorf("%s: the token for news does not see %q", path, word)
			}
		}
	}
	if resp, body := ask(t, h, Path, "Authorization: Bearer purge-0123456789"); resp.StatusCode != http.StatusForbidden || strings.Contains(body, "shop") {
		t.Errorf("a token without the right to read: %d", resp.StatusCode)
	}
}

// What is about some sites alone is the sum of these.
func TestSumsOfSomeSites(t *testing.T) {
	s := told(tell(80*time.Minute, func(at time.Time) Facts { return healthy(at, 6) }))
	s.success["news"] = success.Record{LastMinute: success.Minute{Share: success.Share{Good: 1, Total: 2}}, LastDay: success.Share{Good: 8, Total: 10}, Reasons: []success.Reason{{Word: "disk", Count: 2}}}
	m := newMaker(s.recorder.picture(these{"news", "recipes"}), s.recorder.sources)
	one, two := hourOf(m.sites["news"]), hourOf(m.sites["recipes"])
	both := one
	both.add(two)
	if got := hourOf(&m.picture.all); got != both || got.all() == 0 {
		t.Errorf("%v, want %v", got, both)
	}
	if r := m.all; r.LastMinute.Good != 2401 || r.LastMinute.Total != 2402 || r.LastDay.Total != good().LastDay.Total+10 || len(r.Reasons) != 2 || r.Reasons[0].Word != "origin" {
		t.Errorf("%+v", r)
	}
	if m.minutes[0].Total != 4800 {
		t.Errorf("%+v", m.minutes[0])
	}
	// With one site it is that site's record.
	m = newMaker(s.recorder.picture(these{"news"}), s.recorder.sources)
	if m.all.LastDay != (success.Share{Good: 8, Total: 10}) || len(m.all.Reasons) != 1 {
		t.Errorf("%+v", m.all)
	}
}

// A person signs in with a form, stays so for a while, and leaves.
func TestSession(t *testing.T) {
	s := told(tell(5*time.Minute, func(at time.Time) Facts { return healthy(at, 3) }))
	server := httptest.NewServer(s.handler(t,
		api.Token{Name: "ops", Secret: "right-right-right", Rights: []api.Right{api.Read}},
		api.Token{Name: "news", Secret: "news-news-news", Rights: []api.Right{api.Read}, Sites: []string{"news"}}))
	defer server.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	defer client.CloseIdleConnections()
	do := func(method, path string, form url.Values, lines ...string) (int, string, http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		if form != nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		for _, line := range lines {
			name, value, _ := strings.Cut(line, ": ")
			r.Header.Set(name, value)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body), resp.Header
	}
	signedIn := func(body string) bool { return strings.Contains(body, `data-site="shop"`) }

	if status, body, _ := do("GET", Path, nil); status != 401 || signedIn(body) || !strings.Contains(body, `type="password"`) {
		t.Fatalf("%d %s", status, body)
	}
	if status, body, _ := do("POST", Path+"/enter", url.Values{"token": {"wrong"}}); status != 401 || !strings.Contains(body, "The token is none of admin.tokens") {
		t.Fatalf("%d %s", status, body)
	}
	// A page of somebody else cannot sign a browser in.
	if status, _, h := do("POST", Path+"/enter", url.Values{"token": {"right-right-right"}}, "Sec-Fetch-Site: cross-site"); status != 403 || h.Get("Set-Cookie") != "" {
		t.Errorf("from another page: %d", status)
	}
	if status, body, _ := do("POST", Path+"/enter", url.Values{"token": {" right-right-right "}}); status != 200 || !signedIn(body) {
		t.Fatalf("%d", status)
	}
	for range 3 {
		if status, body, _ := do("GET", Path, nil); status != 200 || !signedIn(body) {
			t.Fatalf("signed in: %d", status)
		}
	}
	// The token of a request goes before the session.
	if _, body, _ := do("GET", Path, nil, "Authorization: Bearer news-news-news"); signedIn(body) {
		t.Error("a token for one site saw the session's")
	}
	s.now = s.now.Add(sessionLife - time.Second)
	if status, _, _ := do("GET", Path+"/live", nil); status != 200 {
		t.Errorf("just before the end: %d", status)
	}
	s.now = s.now.Add(2 * time.Second)
	if status, body, _ := do("GET", Path, nil); status != 401 || signedIn(body) {
		t.Errorf("after the end: %d", status)
	}
	do("POST", Path+"/enter", url.Values{"token": {"right-right-right"}})
	// Nor sign it out: a browser sends no cookie with such a request, and heeds the answer's.
	strange := httptest.NewRequestWithContext(t.Context(), "POST", Path+"/leave", nil)
	answer := httptest.NewRecorder()
	s.handler(t).ServeHTTP(answer, strange)
	if h := answer.Header().Get("Set-Cookie"); h != "" {
		t.Errorf("a request without a session gets %s", h)
	}
	// A page on another port of this machine is of the same site, and its requests bear it.
	for _, line := range []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Site: cross-site", "Origin: http://127.0.0.1:3000"} {
		if status, _, h := do("POST", Path+"/leave", nil, line); status != 403 || h.Get("Set-Cookie") != "" {
			t.Errorf("leaving from another page (%s): %d, %s", line, status, h.Get("Set-Cookie"))
		}
	}
	if status, body, _ := do("GET", Path, nil); status != 200 || !signedIn(body) {
		t.Errorf("another page signed the browser out: %d", status)
	}
	if status, body, _ := do("POST", Path+"/leave", nil); status != 401 || signedIn(body) {
		t.Errorf("after leaving: %d", status)
	}
	if status, body, _ := do("GET", Path, nil); status != 401 || signedIn(body) {
		t.Errorf("after leaving: %d", status)
	}
	// Wrong ones are held up, and right ones are not: behind a proxy all have one address.
	var status int
	for range 15 {
		status, _, _ = do("POST", Path+"/enter", url.Values{"token": {"wrong"}})
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("after many wrong tokens: %d", status)
	}
	if status, body, _ := do("POST", Path+"/enter", url.Values{"token": {"right-right-right"}}); status != 200 || !signedIn(body) {
		t.Errorf("a right one after many wrong ones: %d", status)
	}
}

func TestCookie(t *testing.T) {
	now := noon()
	s := &sessions{now: func() time.Time { return now }, byID: map[[32]byte]session{}}
	r := httptest.NewRequest("GET", "http://127.0.0.1/status", nil)
	c := cookie(r, s.open(&api.Visitor{Name: "ops"}))
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != Path || c.Secure || c.MaxAge != 8*3600 || len(c.Value) < 40 {
		t.Errorf("%+v", c)
	}
	r.Header.Set("X-Forwarded-Proto", "https")
	if !cookie(r, "x").Secure {
		t.Error("the cookie of a page that came by TLS may travel without")
	}
	r.AddCookie(c)
	if v := s.of(r); v == nil || v.Name != "ops" {
		t.Fatalf("%+v", v)
	}
	// Another one on the same host has another cookie, and no host makes it a bad name.
	for host, want := range map[string]string{"127.0.0.1": cookieName, "a:9090": cookieName + "_9090", "[::1]:1": cookieName + "_1", "a:; x": cookieName, "": cookieName} {
		r := httptest.NewRequest("GET", "/status", nil)
		r.Host = host
		if got := cookie(r, "x").Name; got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
	// There are not more than some. Who signs in again and again loses his own, the oldest
	// first, and not those of others.
	now = now.Add(time.Second)
	again := httptest.NewRequest("GET", "http://127.0.0.1/status", nil)
	again.AddCookie(cookie(again, s.open(&api.Visitor{Name: "news"})))
	for range 2 * maxSessions {
		now = now.Add(time.Second)
		s.open(&api.Visitor{Name: "news"})
	}
	if len(s.byID) != maxSessions || s.of(r) == nil || s.of(again) != nil {
		t.Errorf("%d sessions, %v, %v", len(s.byID), s.of(r), s.of(again))
	}
	for range maxSessions - 2 {
		now = now.Add(time.Second)
		s.open(&api.Visitor{Name: "ops"})
	}
	if len(s.byID) != maxSessions || s.of(r) != nil {
		t.Errorf("%d sessions, %v", len(s.byID), s.of(r))
	}
}

func TestRowsAreBoundedAndWorstFirst(t *testing.T) {
	s := told(tell(10*time.Minute, func(at time.Time) Facts { return healthy(at, 200) }))
	bad := good()
	bad.LastMinute.Good = 0
	s.success["customer-150"] = bad
	h := s.handler(t)
	_, body := ask(t, h, Path)
	if n := strings.Count(body, "data-site="); n != fewRows {
		t.Errorf("%d sites are shown", n)
	}
	if first := body[strings.Index(body, "data-site="):]; !strings.HasPrefix(first, `data-site="customer-150"`) {
		t.Errorf("first is %.40s", first)
	}
	if !strings.Contains(body, "and 175 more.") || !strings.Contains(body, "and 375 more.") {
		t.Error("how many more there are is not said")
	}
	_, body = ask(t, h, Path+"?rows=all")
	if n := strings.Count(body, "data-site="); n != 200 || !strings.Contains(body, `data-live="/status/live?rows=all"`) {
		t.Errorf("%d of all sites are shown", n)
	}
}

func TestWhatIsNotKnownIsNotZero(t *testing.T) {
	s := quiet(3 * time.Second)
	s.facts = func(at time.Time) Facts {
		f := healthy(at, 1)
		return Facts{At: at, Sites: f.Sites[:0], Ready: true, Reloaded: true, Dial: f.Dial, Limits: f.Limits}
	}
	s.now = s.now.Add(2 * time.Second)
	_, body := ask(t, s.handler(t), Path)
	for _, words := range []string{`<h2 id="volumes-title">Volumes</h2>` + "\n" + `<p class="note">Not known yet.</p>`, "no requests", "before the start", "not known"} {
		if !strings.Contains(body, words) {
			t.Errorf("the page lacks %q", words)
		}
	}
	if strings.Contains(body, "NaN") {
		t.Error("NaN on the page")
	}
}

// While one place of a site is well, nobody misses the other; without any, it is bad.
func TestSiteWithoutAnyPlace(t *testing.T) {
	s := told(tell(time.Minute, func(at time.Time) Facts {
		f := healthy(at, 3)
		f.Places[1].Places[0].State = origin.StateDown
		f.Places[2].Places[0].State, f.Places[2].Places[1].State = origin.StateSick, origin.StateDown
		return f
	}))
	_, body := ask(t, s.handler(t), Path)
	if !strings.Contains(body, "No place of these sites is well: photos.") {
		t.Error("a site without any place is not named alone")
	}
}

// Many look while everything changes, and each sees one state of it.
func TestManyLookAtOnce(t *testing.T) {
	s := told(tell(time.Minute, func(at time.Time) Facts { return healthy(at, 20) }))
	var n atomic.Int64
	began := s.now
	s.recorder.now = func() time.Time { return began.Add(time.Duration(n.Add(1)) * time.Second) }
	h := s.handler(t)
	var visitors sync.WaitGroup
	for i := range 4 {
		visitors.Go(func() {
			for range 10 {
				r := httptest.NewRequest("GET", "http://127.0.0.1:9090"+[]string{Path, Path + "/live", api.Prefix + "/events"}[i%3], nil)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != 200 {
					t.Errorf("%d", w.Code)
				}
				s.recorder.Note(Event{Text: "x"})
			}
		})
	}
	visitors.Wait()
}

func TestVerdicts(t *testing.T) {
	for name, want := range map[string]struct {
		title string
		words []string
	}{
		"healthy":   {"All is well.", nil},
		"start":     {"All is well.", []string{"No request has come since the start."}},
		"shedding":  {"One thing is wrong. 5 things are to be looked at.", []string{"New pictures of shop are turned away", "news 30 % until 13:40:25 (in 1 h 40 min)", "made cheaper", "2 originals"}},
		"pinned":    {"karui works. One thing is to be looked at.", []string{"An operator holds the dial at 2, spare until 14:00:25 (in 2 h).", "photos at full until it is changed"}},
		"disk-full": {"2 things are wrong.", []string{"All requests are turned away with 503: every volume", "/mnt/disk1/karui"}},
		"places":    {"karui works. 4 things are to be looked at.", []string{"Taken out by operators: shop tokyo", "could not be reached: news osaka", "a trickle: photos osaka", "tried twice for photos", "switched off for travel-jp"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, body := ask(t, stories()[name]().handler(t), Path)
			if !strings.Contains(body, want.title) {
				t.Errorf("not %q: %s", want.title, body[strings.Index(body, "<h1"):][:200])
			}
			for _, words := range want.words {
				if !strings.Contains(html.UnescapeString(body), words) {
					t.Errorf("the page lacks %q", words)
				}
			}
		})
	}
}

// A page of one site takes a few milliseconds, and one of 200 sites not many more.
func BenchmarkPage(b *testing.B) {
	for name, n := range map[string]int{"1": 1, "200": 200} {
		b.Run(name, func(b *testing.B) {
			h := told(tell(80*time.Minute, func(at time.Time) Facts { return healthy(at, n) })).handler(b)
			size := 0
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/status", nil))
				size = w.Body.Len()
			}
			b.ReportMetric(float64(size), "bytes/page")
		})
	}
}

// What a look costs beside what it takes to collect the facts.
func BenchmarkLook(b *testing.B) {
	s := tell(80*time.Minute, func(at time.Time) Facts { return healthy(at, 200) })
	f := healthy(noon(), 200)
	s.facts = func(time.Time) Facts { return f }
	for b.Loop() {
		s.now = s.now.Add(2 * time.Second)
		s.recorder.look(0)
	}
}
