package proxy

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"karui/internal/logging"
	"karui/internal/origintest"
)

// logged is a rig and what its access log holds.
type logged struct {
	*rig
	t       *testing.T
	written *lines
}

func newLogged(t *testing.T, options ...option) *logged {
	l := &logged{t: t, written: &lines{}}
	l.rig = newRig(t, append(options, func(_ *rig, o *Options) { o.Access = logging.NewAccess(l.written) })...)
	return l
}

// all ends the server and gives the lines, without what differs from run to run.
func (l *logged) all() []map[string]any {
	l.t.Helper()
	l.idle()
	l.server.Close()
	var all []map[string]any
	for line := range strings.Lines(l.written.String()) {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			l.t.Fatalf("%v: %s", err, line)
		}
		first, ok := got["ttfb_ms"].(float64)
		total, ok2 := got["total_ms"].(float64)
		if !ok || !ok2 || first < 0 || total < first {
			l.t.Errorf("times make no sense: %s", line)
		}
		if at, ok := got["time"].(string); !ok || !strings.HasSuffix(at, "Z") {
			l.t.Errorf("the time is not in UTC: %s", line)
		}
		for _, name := range []string{"time", "level", "msg", "ttfb_ms", "total_ms"} {
			delete(got, name)
		}
		all = append(all, got)
	}
	return all
}

// want compares the lines with the expected fields.
func (l *logged) want(want ...map[string]any) {
	l.t.Helper()
	all := l.all()
	if len(all) != len(want) {
		l.t.Fatalf("%d lines, want %d: %v", len(all), len(want), all)
	}
	for i, w := range want {
		for k, v := range w {
			if n, ok := v.(int); ok {
				w[k] = float64(n)
			}
		}
		if !maps.Equal(all[i], w) {
			l.t.Errorf("line %d is\n%v, want\n%v", i, all[i], w)
		}
	}
}

func TestAccessLog(t *testing.T) {
	l := newLogged(t)
	jpg := photo(t, 64, 1)
	variant := webp(jpg)
	l.origin.Set("/a.jpg", jpegAnswer(jpg))
	l.get("/a.jpg?token=hunter2", takesWebP, "X-Amz-Cf-Id: id-1")
	l.idle()
	l.get("/a.jpg?token=hunter2", takesWebP, "X-Amz-Cf-Id: id-2", "X-Forwarded-For: 192.0.2.7")
	l.get("/a.jpg?token=hunter2", takesJPEG)
	l.get("/a.jpg?token=hunter2", "Cookie: session=hunter2", "Authorization: Bearer hunter2")
	l.get("/a.jpg", "X-Routing: nobody")
	l.get("/.karui/ping.jpg")
	l.get("/ping.jpg", "Host: karui.example.com")
	l.do(http.MethodDelete, "/a.jpg")
	saved := len(jpg) - len(variant)
	l.want(
		map[string]any{"site": "shop", "method": "GET", "path": "/a.jpg", "status": 200, "outcome": "miss", "bytes": len(jpg), "place": "test", "tries": 1, "cf_id": "id-1"},
		map[string]any{"site": "shop", "method": "GET", "path": "/a.jpg", "status": 200, "outcome": "hit", "bytes": len(variant), "format": "webp", "saved": saved, "cf_id": "id-2"},
		map[string]any{"site": "shop", "method": "GET", "path": "/a.jpg", "status": 200, "outcome": "original", "kept": "not_accepted", "bytes": len(jpg)},
		map[string]any{"site": "shop", "method": "GET", "path": "/a.jpg", "status": 200, "outcome": "bypass", "bytes": len(jpg), "place": "test", "tries": 1},
		map[string]any{"site": "", "method": "GET", "path": "/a.jpg", "status": 503, "outcome": "503_route", "reason": "route", "bytes": len("karui is not available: route\n")},
		map[string]any{"site": "shop", "method": "DELETE", "path": "/a.jpg", "status": 405, "outcome": "refused", "bytes": len("karui serves GET, HEAD and OPTIONS\n")},
	)
	for _, secret := range []string{"hunter2", "192.0.2.7"} {
		if strings.Contains(l.written.String(), secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
}

func TestAccessLogOfAnOriginThatFails(t *testing.T) {
	l := newLogged(t)
	l.origin.Set("/a.jpg", origintest.Answer{Status: 500})
	l.get("/a.jpg")
	l.want(map[string]any{
		"site": "shop", "method": "GET", "path": "/a.jpg", "status": 503, "outcome": "503_origin", "reason": "origin",
		"bytes": len("karui is not available: origin\n"), "place": "test", "tries": 1,
	})
}

// Nothing that a viewer sends makes a line of its own, or an endless one.
func TestAccessLogTakesAnythingForAPath(t *testing.T) {
	l := newLogged(t)
	long := "/" + strings.Repeat("long", 1000) + ".css"
	evil := "/a%0A{\"msg\":\"forged\"}\x80\xff\\.css"
	l.get(long, "X-Amz-Cf-Id: "+strings.Repeat("i", 1000))
	l.get(evil, "X-Amz-Cf-Id: \"}\t{\"")
	all := l.all()
	if len(all) != 2 {
		t.Fatalf("%d lines", len(all))
	}
	if all[0]["path"] != long[:1024]+"..." || all[0]["cf_id"] != strings.Repeat("i", 128)+"..." {
		t.Errorf("not bounded: %v", all[0])
	}
	if all[1]["path"] != "/a%0A{\"msg\":\"forged\"}\ufffd\ufffd\\.css" || all[1]["cf_id"] != "\"}\t{\"" {
		t.Errorf("not as it was sent: %v", all[1])
	}
}

func TestAccessLogCanBeSwitched(t *testing.T) {
	l := newLogged(t, withSettings(func(s *Settings) { s.AccessLog = false }))
	l.get("/a.css")
	on := l.settings
	on.AccessLog = true
	l.proxy.Reload(on)
	l.get("/b.css")
	on.AccessLog = false
	l.proxy.Reload(on)
	l.get("/c.css")
	if all := l.all(); len(all) != 1 || all[0]["path"] != "/b.css" {
		t.Errorf("%v", all)
	}
}
