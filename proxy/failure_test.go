package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"karui/cache"
	"karui/convert"
	"karui/internal/origintest"
	"karui/proxy/origin"
)

// unavailable is what every answer has by which the edge asks the true origin.
func unavailable(why string) map[string]string {
	return map[string]string{"Cache-Control": "no-store", "X-Karui-Reason": why, "ETag": "", "X-Karui": ""}
}

func TestStatusOfTheOrigin(t *testing.T) {
	tests := []struct {
		status int
		want   int
		// For the want of 503 alone.
		control string
	}{
		{404, 404, "public, max-age=10"},
		{410, 410, "public, max-age=10"},
		{408, 503, ""},
		{425, 503, ""},
		{429, 503, ""},
		{500, 503, ""},
		{502, 503, ""},
		{503, 503, ""},
		{504, 503, ""},
		{599, 503, ""},
		{400, 400, "max-age=77"},
		{401, 401, "max-age=77"},
		{403, 403, "max-age=77"},
		{451, 451, "max-age=77"},
		{301, 301, "max-age=77"},
		{302, 302, "max-age=77"},
		{307, 307, "max-age=77"},
		{201, 201, "max-age=77"},
		{204, 204, "max-age=77"},
		{206, 503, ""},
		{304, 503, ""},
	}
	for _, test := range tests {
		t.Run(strconv.Itoa(test.status), func(t *testing.T) {
			r := newRig(t)
			body := []byte("what the origin says")
			if test.status == 204 || test.status == 304 {
				body = []byte{}
			}
			r.origin.Set("/a.jpg", origintest.Text(test.status, "text/plain", string(body),
				field("Cache-Control", "max-age=77"), field("Location", "/b.jpg"), field("Set-Nothing", "x")))
			for range 2 {
				a := r.get("/a.jpg", takesWebP)
				if test.want == 503 {
					r.want(a, 503, nil, unavailable("origin"))
				} else {
					r.want(a, test.want, body, map[string]string{
						"Cache-Control": test.control, "X-Karui": "bypass", "Vary": "Accept", "Set-Nothing": "x", "Location": "/b.jpg",
					})
				}
				r.idle()
			}
			want := 2
			if test.status == 404 || test.status == 410 {
				want = 1
			}
			if n := r.origin.Count("/a.jpg"); n != want {
				t.Errorf("the origin was asked %d times, want %d", n, want)
			}
		})
	}
}

func TestMissingImageIsRememberedForTheShortLifetime(t *testing.T) {
	r := newRig(t)
	r.origin.Set("/a.jpg", origintest.Text(404, "text/html", "<p>no such picture</p>", field("Cache-Control", "max-age=86400"), field("ETag", `"x"`)))
	gone := map[string]string{"Cache-Control": "public, max-age=10", "Content-Type": "text/html", "ETag": "", "Vary": "Accept"}
	r.want(r.get("/a.jpg", takesWebP), 404, []byte("<p>no such picture</p>"), gone)
	r.idle()
	r.want(r.do(http.MethodHead, "/a.jpg", takesJPEG), 404, nil, gone)
	r.clock.passSeconds(4)
	gone["Cache-Control"] = "public, max-age=6"
	r.want(r.get("/a.jpg", takesJPEG), 404, []byte("<p>no such picture</p>"), gone)
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	r.clock.passSeconds(7)
	r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "miss"})
	r.idle()
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit"})
}

func TestEntryThatAVolumeOutOfUseTurnsAwayIsNotLogged(t *testing.T) {
	r := newRig(t)
	r.proxy.stored(fmt.Errorf("put: %w", cache.ErrUnavailable))
	if said := r.log.String(); strings.Contains(said, "cannot be written") {
		t.Errorf("logged: %s", said)
	}
	r.proxy.stored(errors.New("another"))
	if said := r.log.String(); !strings.Contains(said, `msg="cache cannot be written" error=another`) {
		t.Errorf("logged: %s", said)
	}
}

func TestUnreachableOrigin(t *testing.T) {
	r := newRig(t)
	r.origin.Refuse()
	for _, path := range []string{"/a.jpg", "/style.css"} {
		r.want(r.get(path, takesWebP), 503, nil, unavailable("origin"))
		r.want(r.do(http.MethodHead, path), 503, []byte{}, unavailable("origin"))
		if !strings.Contains(r.log.String(), `msg="origin failed" site=shop path=`+path+" ") {
			t.Errorf("the log does not say what for: %s", r.log)
		}
	}
}

func TestOriginThatNeverAnswers(t *testing.T) {
	r := newRig(t, func(r *rig, o *Options) {
		config := origin.DefaultConfig()
		config.Deadline = 50 * time.Millisecond
		client, err := origin.New(origin.Options{Config: config, Place: origin.PlaceConfig{URLs: []string{r.origin.URL()}}, Now: r.clock.now})
		if err != nil {
			r.tb.Fatal(err)
		}
		r.tb.Cleanup(client.Close)
		o.Settings.Sites[0].Origin = client
	})
	silent := origintest.NewGate()
	t.Cleanup(silent.Open)
	r.origin.SetDefault(func(origintest.Request) origintest.Answer { return origintest.Answer{Hold: silent} })
	for _, path := range []string{"/a.jpg", "/style.css"} {
		r.want(r.get(path, takesWebP), 503, nil, unavailable("origin"))
	}
}

func TestBodyCutOffBeforeItsFirstByte(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.Set("/style.css", jpegAnswer(jpg).CutAt(0, false))
	r.want(r.get("/style.css"), 503, nil, unavailable("origin"))
	// One byte tells nothing about a picture, so nothing was sent yet.
	for _, n := range []int64{0, 1} {
		r.origin.Set("/a.jpg", jpegAnswer(jpg).CutAt(n, false))
		r.want(r.get("/a.jpg", takesWebP), 503, nil, unavailable("origin"))
		r.idle()
	}
}

// A body that breaks off once bytes were sent must break the connection, and
// leave nothing behind.
func TestBodyCutOffUnderWay(t *testing.T) {
	jpg := photo(t, 200, 1)
	chunked := jpegAnswer(jpg)
	chunked.Framing = origintest.Chunked
	for name, answer := range map[string]origintest.Answer{"declared": jpegAnswer(jpg), "chunked": chunked} {
		for _, path := range []string{"/a.jpg", "/a.css"} {
			for _, reset := range []bool{false, true} {
				t.Run(name+path, func(t *testing.T) {
					r := newRig(t)
					stalled := origintest.NewGate()
					cut := answer.CutAt(9000, reset)
					cut.Stall, cut.StallAt = stalled, 8000
					r.origin.Set(path, cut)
					resp, body, _ := r.raw("GET " + path + " HTTP/1.1\r\nHost: a\r\n" + takesWebP + "\r\n\r\n")
					if resp.StatusCode != 200 {
						t.Fatalf("status %d", resp.StatusCode)
					}
					stalled.Open()
					rest, err := io.ReadAll(body)
					whole := bytes.HasSuffix(rest, []byte("\r\n0\r\n\r\n")) || len(rest) >= len(jpg)
					if whole {
						t.Errorf("%d bytes came and look whole (%v)", len(rest), err)
					}
					r.idle()
					r.origin.Set(path, answer)
					a := r.get(path, takesWebP)
					r.want(a, 200, jpg, nil)
					if did := a.Header.Get("X-Karui"); did == "hit" || did == "original" {
						t.Errorf("what was cut off was kept: %s", did)
					}
				})
			}
		}
	}
}

func TestViewerWhoWaitedGetsA503ForACutBody(t *testing.T) {
	r := newRig(t, waiting(limit))
	jpg := photo(t, 200, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg).CutAt(int64(len(jpg))-1, false))
	r.want(r.get("/a.jpg", takesWebP), 503, nil, unavailable("origin"))
	r.idle()
	if n := r.fake.calls.Load(); n != 0 {
		t.Errorf("%d conversions of a body that was cut off", n)
	}
}

// A body without a length may have been cut off, unless it ends as its format does.
func TestBodyThatEndsWithTheConnection(t *testing.T) {
	jpg := photo(t, 64, 1)
	for name, test := range map[string]struct {
		body []byte
		did  string
	}{
		"with its trailer": {jpg, "hit"},
		"without":          {jpg[:len(jpg)-2], "miss"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			answer := jpegAnswer(test.body)
			answer.Framing = origintest.Close
			r.origin.Set("/a.jpg", answer)
			r.want(r.get("/a.jpg", takesWebP), 200, test.body, map[string]string{"X-Karui": "miss", "Content-Length": ""})
			r.idle()
			r.want(r.get("/a.jpg", takesWebP), 200, nil, map[string]string{"X-Karui": test.did})
			// While it arrives nobody knows whether it is whole, so nobody keeps it for long.
			r.origin.Set("/b.jpg", answer)
			arriving := map[string]string{"X-Karui": "original", "Cache-Control": "public, max-age=10"}
			r.want(r.get("/b.jpg", takesJPEG), 200, test.body, arriving)
			r.idle()
			if test.did == "hit" {
				arriving["Cache-Control"] = "public, max-age=86400"
			}
			r.want(r.get("/b.jpg", takesJPEG), 200, test.body, arriving)
			r.idle()
		})
	}
}

func TestOriginThatLiesAboutTheLength(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	long := jpegAnswer(jpg)
	long.Declare = int64(len(jpg)) + 100
	r.origin.Set("/long.jpg", long.CutAt(int64(len(jpg)), false))
	if resp, err := http.Get(r.server.URL + "/long.jpg"); err == nil {
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == 200 && err == nil {
			t.Errorf("%d bytes came as a whole answer", len(body))
		}
	}
	http.DefaultClient.CloseIdleConnections()
	r.idle()
	r.origin.Set("/long.jpg", jpegAnswer(jpg))
	r.want(r.get("/long.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "miss"})
}

func TestPanicOfOursIsA503(t *testing.T) {
	r := newRig(t)
	r.origin.Set("/a.jpg", jpegAnswer(photo(t, 64, 1)))
	set := *r.proxy.set.Load()
	set.router = nil
	r.proxy.set.Store(&set)
	r.want(r.get("/a.jpg", takesWebP), 503, nil, unavailable("panic"))
}

// breaking is a viewer's connection at which our own code panics half way.
type breaking struct{ *httptest.ResponseRecorder }

func (breaking) Write([]byte) (int, error) { panic("bug") }

func TestPanicUnderWayAbortsTheConnection(t *testing.T) {
	r := newRig(t)
	r.origin.Set("/a.jpg", jpegAnswer(photo(t, 64, 1)))
	defer func() {
		if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // it is compared so by net/http
			t.Errorf("ended with %v, want the connection to be aborted", v)
		}
		r.idle()
	}()
	r.proxy.ServeHTTP(breaking{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/a.jpg", nil))
}

// panicking is an origin client with a bug.
type panicking struct{}

func (panicking) Do(context.Context, origin.Request) (*origin.Response, error) { panic("bug") }

func TestPanicInASharedFetchIsA503(t *testing.T) {
	r := newRig(t, func(_ *rig, o *Options) { o.Settings.Sites[0].Origin = panicking{} })
	r.want(r.get("/a.jpg", takesWebP), 503, nil, unavailable("panic"))
	r.want(r.get("/a.css", takesWebP), 503, nil, unavailable("panic"))
	r.idle()
}

func TestPanicOfAConverterLeavesTheOriginal(t *testing.T) {
	r := newRig(t)
	decide := func([]byte, convert.Options) convert.Result { panic("bug") }
	r.fake.decide.Store(&decide)
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	for range 2 {
		r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "miss"})
		r.idle()
	}
}

func TestConverterThatIsClosedLeavesTheOriginal(t *testing.T) {
	r := newRig(t, withConverter(closedConverter{}))
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "miss"})
	r.idle()
	r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "miss", "Cache-Control": "public, max-age=10"})
}

type closedConverter struct{}

func (closedConverter) Convert(context.Context, []byte, convert.Options) (convert.Result, error) {
	return convert.Result{}, convert.ErrClosed
}

func (closedConverter) Ping(context.Context) ([]byte, error) { return nil, errors.New("closed") }
