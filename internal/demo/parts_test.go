package demo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"karui/internal/cloudfront/edge"
	"karui/internal/server"
	"karui/watchdog/settings"
)

func TestSettingsAreGood(t *testing.T) {
	dir := filepath.Join(t.TempDir(), `with "quotes" and spaces`)
	if err := makeDir(dir); err != nil {
		t.Fatal(err)
	}
	file, err := write(dir, "karui.yaml", proxySettings("http://127.0.0.1:81", edge.SampleHost, dir, "a secret of some length", []string{"webp"}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := server.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Value.Cache.Volumes[0].Path != dir || r.Value.Sites[0].ID != siteID || len(r.Warnings) > 0 {
		t.Errorf("%+v", r)
	}
	w := watching{
		dir: dir, ping: "http://127.0.0.1:1/ping.jpg", origin: "http://127.0.0.1:2/", viewer: "http://127.0.0.1:3/a.jpg", control: "http://127.0.0.1:4/",
		mail: "127.0.0.1:5", role: "arn:aws:iam::111122223333:role/karui-watchdog", external: "an-id",
	}
	for _, w.language = range []string{"en", "ja"} {
		text, err := w.yaml()
		if err != nil {
			t.Fatal(err)
		}
		file, err := write(dir, "watchdog.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := settings.Load(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Value.Mail.Language != w.language || r.Value.Sites[0].ExternalID != "an-id" || r.Value.Mail.SMTP.Port != 5 {
			t.Errorf("%+v", r.Value)
		}
	}
	w.mail = "nowhere"
	if _, err := w.yaml(); err == nil {
		t.Error("an address without a port was taken")
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 2 {
		t.Errorf("files: %v", left)
	}
}

func TestTimesNest(t *testing.T) {
	if originDeadline >= responseTimeout || responseTimeout >= slowness || slowness <= watchTimeout {
		t.Error("karui has to give up before the edge does, and slow has to be too slow for the edge and the watchdog")
	}
	if watchCount*(watchSpacing+watchTimeout) >= watchInterval {
		t.Error("a round has to end before the next begins")
	}
}

func TestOrderOfADocument(t *testing.T) {
	group := func(id string, members ...string) string {
		out := "<OriginGroup><Id>" + id + "</Id><Members><Items>"
		for _, m := range members {
			out += "<OriginGroupMember><OriginId>" + m + "</OriginId></OriginGroupMember>"
		}
		return out + "</Items></Members></OriginGroup>"
	}
	for _, tt := range []struct {
		groups string
		want   order
	}{
		{group("other", "origin", "karui") + group("images", "karui", "origin"), orderKarui},
		{group("images", "origin", "karui"), orderOrigin},
		{group("images", "elsewhere", "karui"), orderUnknown},
		{group("images", "karui"), orderUnknown},
		{"", orderUnknown},
		{"<", orderUnknown},
	} {
		doc := `<DistributionConfig xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/"><OriginGroups><Items>` + tt.groups + "</Items></OriginGroups></DistributionConfig>"
		if got := orderOf([]byte(doc)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.groups, got, tt.want)
		}
	}
}

func TestPatrolKeepsEachRoundOnce(t *testing.T) {
	status, body := http.StatusOK, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.RequestURI != "/status?format=json" {
			t.Error(r.RequestURI)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	p := newPatrol()
	t.Cleanup(p.close)
	at := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	look := func(verdict string) error {
		body = `{"sites":[{"health":"` + verdict + `","words":"so and so","last_round":{"at":"` + at.Format(time.RFC3339) + `","verdict":"` + verdict + `","probes":[{"ok":true,"text":"200"}]}}]}`
		return p.look(t.Context(), s.URL)
	}
	for range roundsMax + 5 {
		at = at.Add(time.Second)
		for range 2 {
			if err := look("up"); err != nil {
				t.Fatal(err)
			}
		}
	}
	at = at.Add(time.Second)
	if err := look("down"); err != nil {
		t.Fatal(err)
	}
	now, rounds := p.now()
	if len(rounds) != roundsMax || rounds[len(rounds)-1].Verdict != "down" || now.Health != "down" {
		t.Errorf("%d rounds, %+v", len(rounds), now)
	}
	if w := rounds[len(rounds)-1].words(); w.Tone != toneBad || !strings.Contains(rounds[0].detail(), "Pings: 200.") {
		t.Errorf("%+v, %s", w, rounds[0].detail())
	}
	for _, body = range []string{"{", `{"sites":[]}`} {
		if p.look(t.Context(), s.URL) == nil {
			t.Errorf("%q was taken for a status", body)
		}
	}
	if now, _ := p.now(); now.Health != "down" {
		t.Error("what was known is lost")
	}
}

func TestWaysAndVisits(t *testing.T) {
	for _, tt := range []struct {
		cache, karui string
		want         way
	}{
		{"Hit from cloudfront", "hit", wayEdge},
		{"RefreshHit from cloudfront", "hit", wayKarui},
		{"Miss from cloudfront", "original", wayKarui},
		{"Miss from cloudfront", "", wayOrigin},
		{"Error from cloudfront", "", wayNone},
	} {
		h := http.Header{}
		h.Set("X-Cache", tt.cache)
		if tt.karui != "" {
			h.Set("X-Karui", tt.karui)
		}
		if got := wayOf(h); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
	for _, tt := range []struct {
		event edge.Event
		want  visit
	}{
		{edge.Event{Status: 200, Result: edge.Hit, Member: "karui", ContentType: "image/webp", Bytes: 5}, visit{Way: wayEdge, Format: "webp", Bytes: 5}},
		{edge.Event{Status: 200, Result: edge.Miss, Member: "origin", FailedOver: "503", ContentType: "image/jpeg"}, visit{Way: wayOrigin, Format: "jpeg", Failover: true}},
		{
			edge.Event{Status: 200, Result: edge.Miss, Member: "origin", FailedOver: edge.FailStatus, ContentType: "image/jpeg", Tries: []edge.Try{{Origin: "karui", Status: 503}, {Origin: "origin", Status: 200}}},
			visit{Way: wayOrigin, Format: "jpeg", Failover: true, Shed: true},
		},
		{edge.Event{Status: 200, Result: edge.RefreshHit, Member: "karui", ContentType: "image/png"}, visit{Way: wayKarui, Format: "png"}},
		{ // both failed, and what the edge kept went out
			edge.Event{
				Status: 200, Result: edge.Miss, Stale: true, Member: edge.SampleProxyID, ContentType: "image/webp", FailedOver: "503",
				Tries: []edge.Try{{Origin: edge.SampleProxyID, Status: 503, Failure: "503"}, {Origin: edge.SampleOriginID, Status: 500}},
			},
			visit{Way: wayEdge, Format: "webp", Failover: true, Shed: true, Vain: true},
		},
		{ // both failed, and nothing was kept
			edge.Event{
				Status: 502, Result: edge.Error, ContentType: "text/html", FailedOver: "connect",
				Tries: []edge.Try{{Origin: edge.SampleProxyID, Failure: "connect"}, {Origin: edge.SampleOriginID, Failure: "connect"}},
			},
			visit{Way: wayNone, Format: "other", Failover: true, Vain: true},
		},
		{edge.Event{Status: 502, Result: edge.Error, ContentType: "text/html"}, visit{Way: wayNone, Format: "other"}},
		{edge.Event{Status: 200, Result: edge.Miss, Member: "karui", Aborted: "cut", ContentType: "image/gif"}, visit{Way: wayNone, Format: "gif"}},
	} {
		if got := visitOf(tt.event); got != tt.want {
			t.Errorf("%+v: %+v", tt.event, got)
		}
	}
	h := http.Header{}
	for value, want := range map[string]int64{"": 0, "12": 12, "-3": 0, "x": 0} {
		h.Set("X-Karui-Saved", value)
		if got := savedOf(h); got != want {
			t.Errorf("%q: %d", value, got)
		}
	}
}

func TestVisits(t *testing.T) {
	webp := stillWebP(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "www.example.com" {
			t.Error(r.Host)
		}
		switch r.URL.Path {
		case "/missing.jpg":
			http.Error(w, "gone", http.StatusBadGateway)
			return
		case "/cut.jpg":
			w.Header().Set("Content-Length", "1000")
		case "/always.jpg": // WebP for everybody: the worst of all mistakes
		default:
			if !strings.Contains(r.Header.Get("Accept"), "image/webp") {
				_, _ = w.Write([]byte("\xff\xd8\xff as the site has it"))
				return
			}
		}
		w.Header().Set("X-Karui-Saved", "900")
		w.Header().Set("X-Karui", "hit")
		body := webp
		if r.URL.Path == "/broken.jpg" {
			body = webp[:20]
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	v := newViewer(s.URL, "www.example.com", &judge{})
	t.Cleanup(v.close)
	for _, tt := range []struct {
		kind, path string
		want       fate
	}{
		{"webp", "/a.jpg", fateGood},
		{"plain", "/a.jpg", fateGood},
		{"webp", "/a.jpg?v=1", fateGood},
		{"webp", "/missing.jpg", fateUnavailable},
		{"webp", "/cut.jpg", fateCut},
		{"webp", "/broken.jpg", fateBroken},
		{"plain", "/always.jpg", fateBroken},
	} {
		a := v.visit(t.Context(), kindNamed(tt.kind), tt.path)
		if a.Fate != tt.want || (a.Why == "") != (tt.want == fateGood) {
			t.Errorf("%s as %s: %+v, want %s", tt.path, tt.kind, a, tt.want)
		}
		if tt.path == "/a.jpg" && tt.kind == "webp" && (a.Format != "webp" || a.Saved != 900 || a.Bytes != int64(len(webp)) || a.Way != wayKarui) {
			t.Errorf("%+v", a)
		}
	}
	s.Close()
	if a := v.visit(t.Context(), kinds()[0], "/a.jpg"); a.Fate != fateUnavailable || a.Way != wayNone {
		t.Errorf("nobody there: %+v", a)
	}
}

func TestTrafficVisitsEverythingAsEverybody(t *testing.T) {
	pictures := []picture{{Path: "/a.jpg"}, {Path: "/b.png"}}
	visited := make(chan string, 1000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visited <- r.RequestURI + " " + r.Header.Get("Accept")
		_, _ = w.Write([]byte("as the site has it"))
	}))
	t.Cleanup(s.Close)
	v := newViewer(s.URL, "www.example.com", &judge{})
	t.Cleanup(v.close)
	ctx, cancel := context.WithCancel(t.Context())
	came := make(chan fate, 1000)
	tr := &traffic{viewer: v, pictures: func() []picture { return pictures }, every: time.Millisecond, cold: &cold{}, came: func(_ kind, _ string, a answer) { came <- a.Fate }}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tr.run(ctx)
	}()
	seen, made := make(map[string]bool), make(map[string]bool)
	for len(seen) < len(pictures)*len(kinds()) || len(made) < 3 {
		v := <-visited
		path, _, _ := strings.Cut(v, " ")
		if strings.Contains(path, "?visit=") {
			if made[path] {
				t.Errorf("%s is not new", path)
			}
			made[path] = true
			continue
		}
		seen[v] = true
	}
	if f := <-came; f != fateGood {
		t.Error(f)
	}
	cancel()
	<-ended
	if tr.pictures = func() []picture { return nil }; true {
		if target, _ := tr.next(0); target != "" {
			t.Errorf("no image, and yet %q", target)
		}
	}
}

func TestRehearsalsPoints(t *testing.T) {
	var r rehearsal
	if r.view() != nil {
		t.Error("there was none yet")
	}
	if !r.begin(time.Now()) || r.begin(time.Now()) || !r.now() {
		t.Error("one at a time")
	}
	for _, line := range []string{
		`{"name":"assume","status":"pass","text":"lets in"}`, "noise", `{"msg":"a log line"}`,
		`{"name":"cache_key","status":"pass","text":"*.jpg"}`, `{"name":"cache_key","status":"pass","text":"*.png"}`,
		`{"name":"cache_key","status":"fail","text":"*.gif","hint":"put it in"}`,
	} {
		r.heard(line)
	}
	if v := r.view(); len(v.Points) != 3 || v.Points[1].More != 1 || v.Points[2].Tone != toneBad || !strings.Contains(v.Title, "under way, 3 points") {
		t.Errorf("%+v", v)
	}
	r.end(false, "")
	if v := r.view(); !strings.Contains(v.Title, "FAILED") {
		t.Errorf("%+v", v)
	}
	r.begin(time.Now())
	r.end(true, "")
	if v := r.view(); !strings.Contains(v.Title, "passed") || len(v.Points) != 0 {
		t.Errorf("%+v", v)
	}
}

func TestJanitorRemovesDemonstrationsOnly(t *testing.T) {
	dir := t.TempDir()
	mine, foreign := filepath.Join(dir, folderPrefix+"1"), filepath.Join(dir, "photos")
	for _, d := range []string{mine, foreign} {
		if err := os.MkdirAll(filepath.Join(d, "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := Janitor(foreign, strings.NewReader("")); err == nil {
		t.Error("a folder of somebody else was taken")
	}
	if err := Janitor(mine+"/../photos", strings.NewReader("")); err == nil {
		t.Error("a way out was taken")
	}
	if err := Janitor(mine, strings.NewReader("")); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != "photos" {
		t.Errorf("left: %v", left)
	}
}
