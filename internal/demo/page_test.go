package demo

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"karui/internal/sample"
)

// desk is the page with everything behind it that needs no child process: karui is
// down from the beginning.
func desk(t *testing.T) (*demo, *httptest.Server) {
	t.Helper()
	d := &demo{began: time.Now(), language: "en", seen: &lastSeen{}, fates: &fates{}, judge: &judge{}, ctx: t.Context(), diskWhy: "a test has no disk"}
	d.journal = &journal{now: time.Now}
	d.numbers = newNumbers(time.Now)
	d.line, d.patrol = &line{}, newPatrol()
	d.proxy = &proxy{state: proxyStopped, line: d.line, journal: d.journal}
	t.Cleanup(d.patrol.close)
	d.origin = &gate{next: samples()}
	site := httptest.NewServer(d.origin)
	t.Cleanup(site.Close)
	// An address at which nobody listens, as of a dead process.
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.line.address = dead.Addr().String()
	dead.Close()
	d.edge = &edgeSide{secret: "secret"}
	if err := d.edge.open(d.line.address, strings.TrimPrefix(site.URL, "http://"), d.numbers); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.edge.close)
	d.viewer = newViewer(d.edge.url, "www.example.com", d.judge)
	t.Cleanup(d.viewer.close)
	d.pictures = []picture{{Path: sample.PhotoPath, Title: "A <photograph>"}, {Path: sample.LogoPath, Title: "A logo"}}
	if d.inbox, err = openInbox(time.Now, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.inbox.close)
	t.Cleanup(d.work.Wait)
	h, err := d.handler()
	if err != nil {
		t.Fatal(err)
	}
	page := httptest.NewServer(h)
	t.Cleanup(page.Close)
	return d, page
}

// ask sends a request; header lines are pairs.
func ask(t *testing.T, method, address, form string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestPageIsWholeWithoutScripts(t *testing.T) {
	d, page := desk(t)
	d.journal.note(toneBad, "You <broke> it.")
	if err := d.inbox.take(mailText("[karui] <b>shop</b>", "text & <more>")); err != nil {
		t.Fatal(err)
	}
	resp, body := ask(t, http.MethodGet, page.URL+"/", "")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Security-Policy") != policy || strings.Contains(policy, "unsafe") {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	for _, want := range []string{
		"karui is down", "You &lt;broke&gt; it.", "[karui] &lt;b&gt;shop&lt;/b&gt;", "A &lt;photograph&gt;", `action="/do/heal?as=webp"`,
		`src="/image?as=webp&amp;path=%2Fphoto.jpg"`, "Not on this machine: a test has no disk.", `<noscript><meta http-equiv="refresh"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, never := range []string{" style=", " onclick=", "<script>", "http://www", "https://"} {
		if strings.Contains(body, never) {
			t.Errorf("%q is on the page", never)
		}
	}
	if _, body := ask(t, http.MethodGet, page.URL+"/?as=plain", ""); !strings.Contains(body, `value="plain" checked`) || !strings.Contains(body, "/image?as=plain&amp;") {
		t.Error("the kind of browser is not kept")
	}
}

func TestFragmentsAreThoseOfThePage(t *testing.T) {
	_, page := desk(t)
	_, whole := ask(t, http.MethodGet, page.URL+"/", "")
	_, body := ask(t, http.MethodGet, page.URL+"/live?as=webp", "")
	var live struct{ Fragments map[string]string }
	if err := json.Unmarshal([]byte(body), &live); err != nil {
		t.Fatal(err)
	}
	if len(live.Fragments) != len(fragments()) || strings.Count(whole, "data-fragment=") != len(fragments()) {
		t.Errorf("%d fragments, %d places", len(live.Fragments), strings.Count(whole, "data-fragment="))
	}
	for name := range live.Fragments {
		if !strings.Contains(whole, `data-fragment="`+name+`"`) {
			t.Errorf("%s has no place on the page", name)
		}
	}
}

func TestImagesGoThroughTheEdge(t *testing.T) {
	d, page := desk(t)
	resp, body := ask(t, http.MethodGet, page.URL+"/image?as=webp&path="+url.QueryEscape(sample.PhotoPath), "")
	if resp.StatusCode != http.StatusOK || whole([]byte(body)) != nil || resp.Header.Get("X-Demo-Way") != "origin" || resp.Header.Get("X-Demo-Format") != "JPEG" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	if resp, _ := ask(t, http.MethodGet, page.URL+"/image?as=webp&path="+url.QueryEscape(sample.PhotoPath), ""); resp.Header.Get("X-Demo-Way") != "edge" {
		t.Errorf("the second time: %v", resp.Header)
	}
	// An answer is counted when the edge is done with it, which may be after it came.
	eventually(t, 30*time.Second, "both answers are counted", func() bool {
		n := d.numbers.total()
		return n.Failovers == 1 && n.Ways[wayOrigin] == 1 && n.Ways[wayEdge] == 1
	})
	if resp, _ := ask(t, http.MethodGet, page.URL+"/image?as=webp&path=/secret.jpg", ""); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a path that is not on the page: %d", resp.StatusCode)
	}
	d.origin.broken.Store(true)
	if resp, _ := ask(t, http.MethodGet, page.URL+"/image?as=webp&path="+url.QueryEscape(sample.LogoPath), ""); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("nobody has it: %d", resp.StatusCode)
	}
}

func TestFormsAndScripts(t *testing.T) {
	d, page := desk(t)
	// A form leads back to the page.
	resp, _ := ask(t, http.MethodPost, page.URL+"/do/break?as=plain", "")
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/?as=plain#break-it" || !d.origin.broken.Load() {
		t.Errorf("%d %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	// What cannot be done is refused, with the reason.
	resp, _ = ask(t, http.MethodPost, page.URL+"/do/break", "")
	if location := resp.Header.Get("Location"); location != "/?as=webp&refused=break#break-it" {
		t.Error(location)
	} else if _, body := ask(t, http.MethodGet, page.URL+location, ""); !strings.Contains(body, `role="alert">Break the origin: The origin answers 500`) {
		t.Error("the refusal is not shown")
	}
	resp, body := ask(t, http.MethodPost, page.URL+"/do/fill", "", "Accept", "application/json")
	if resp.StatusCode != http.StatusConflict || !strings.Contains(body, "Not on this machine: a test has no disk.") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for path, want := range map[string]int{"/do/slow": http.StatusNoContent, "/do/nothing": http.StatusConflict, "/language": http.StatusConflict, "/pictures": http.StatusConflict, "/cold": http.StatusNoContent} {
		if resp, body := ask(t, http.MethodPost, page.URL+path, "language=xx&path=/a.jpg", "Accept", "application/json"); resp.StatusCode != want {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	if d.line.delay.Load() != int64(slowness) {
		t.Error("the line is not slow")
	}
	eventually(t, 30*time.Second, "what came of the new image is told", func() bool {
		_, body := ask(t, http.MethodGet, page.URL+"/live", "")
		return strings.Contains(body, "did not come: the edge answered")
	})
	if resp, _ := ask(t, http.MethodGet, page.URL+"/do/heal", ""); resp.StatusCode != http.StatusMethodNotAllowed && resp.StatusCode != http.StatusNotFound {
		t.Errorf("GET does something: %d", resp.StatusCode)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	d, page := desk(t)
	for name, header := range map[string][]string{
		"another origin":          {"Origin", "https://evil.example"},
		"another site":            {"Sec-Fetch-Site", "cross-site"},
		"a name that leads here":  {"Host", "evil.example"},
		"one with a port of ours": {"Host", "evil.example:8080"},
	} {
		if resp, _ := ask(t, http.MethodPost, page.URL+"/do/break", "", header...); resp.StatusCode != http.StatusForbidden || d.origin.broken.Load() {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	if resp, _ := ask(t, http.MethodGet, page.URL+"/", "", "Host", "evil.example"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("the page was read under a foreign name: %d", resp.StatusCode)
	}
	for _, host := range []string{"localhost", "localhost:8080", "[::1]:8080", "127.0.0.1"} {
		if resp, _ := ask(t, http.MethodGet, page.URL+"/", "", "Host", host); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", host, resp.StatusCode)
		}
	}
	if resp, _ := ask(t, http.MethodPost, page.URL+"/do/break", "", "Origin", page.URL); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("the page's own origin: %d", resp.StatusCode)
	}
}

func TestPicturesOfARealSite(t *testing.T) {
	d, page := desk(t)
	d.options.Site = &url.URL{Scheme: "https", Host: "www.example.com"}
	for range 2 {
		if resp, body := ask(t, http.MethodPost, page.URL+"/pictures", "path=/images/a.jpg", "Accept", "application/json"); resp.StatusCode != http.StatusNoContent {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	if p := d.paths(); len(p) != 3 || p[0].Path != "/images/a.jpg" {
		t.Errorf("%+v", p)
	}
	if _, body := ask(t, http.MethodGet, page.URL+"/", ""); !strings.Contains(body, "another image of www.example.com") || strings.Contains(body, "do-cold") {
		t.Error("the form is missing, or made-up addresses are asked for at a real site")
	}
	for i := range 40 {
		_, _ = ask(t, http.MethodPost, page.URL+"/pictures", "path=/"+strings.Repeat("x", i+1)+".jpg", "Accept", "application/json")
	}
	if n := len(d.paths()); n > 2*maxPictures {
		t.Errorf("%d images", n)
	}
}
