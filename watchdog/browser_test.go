package watchdog

import (
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"karui/internal/browsertest"
	"karui/internal/page"
)

func openBrowser(t *testing.T) *browsertest.Browser {
	return browsertest.Open(t, browsertest.Options{Marks: ".strip path:not(.ground)", Shots: "KARUI_STATUS_SHOTS"})
}

// served serves the page of a picture.
func served(t *testing.T, source func() picture) *httptest.Server {
	t.Helper()
	p, err := newStatusPage(source, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p.host = "watch-1"
	mux := http.NewServeMux()
	p.register(mux)
	mux.HandleFunc("GET "+statusPath, p.whole)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// TestStatusPageInABrowser looks at the page in each story: nothing is complained of,
// nothing is too wide, text has contrast, everything has a name. Takes 10 to 20 s.
func TestStatusPageInABrowser(t *testing.T) {
	b := openBrowser(t)
	all := stories()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		server := served(t, func() picture { return all[name] })
		b.Visit(server.URL+statusPath, "#verdict-title")
		if name == "down" {
			browsertest.Eval[bool](b, `(() => { for (const d of document.querySelectorAll('details')) d.open = true; return true })()`)
		}
		b.Look("watchdog-" + name)
		b.Leave()
		server.Close()
	}
	b.Quiet()
}

// A site falls under the eyes of a person who has opened something, and that stays so.
func TestStatusPageIsLive(t *testing.T) {
	var mu sync.Mutex
	now := shown(wellAs("news"), wellAs("shop"))
	server := served(t, func() picture {
		mu.Lock()
		defer mu.Unlock()
		return now
	})
	b := openBrowser(t)
	b.Visit(server.URL+statusPath, "#verdict-title")
	browsertest.Eval[bool](b, `(() => { document.getElementById('more-news').open = true; return true })()`)
	b.Until(`Number(document.body.dataset.read) >= 1`)
	mu.Lock()
	now = shown(wellAs("news"), fallenAs("shop", false))
	mu.Unlock()
	b.Until(`document.getElementById('verdict-title').textContent === '1 site is down and not degraded'`)
	b.Until(`document.querySelector('ol.watch > li').dataset.state === 'down'`)
	b.Until(`document.getElementById('announcer').textContent === '1 site is down and not degraded'`)
	if !browsertest.Eval[bool](b, `document.getElementById('more-news').open`) {
		t.Error("what a person had opened was shut")
	}
	b.Quiet()
	// Without its server, the page says that it is old.
	server.Close()
	b.Until(`document.body.classList.contains('lost')`)
}

// The page works where scripts do not run, and loads nothing from elsewhere.
func TestStatusPageWithoutScript(t *testing.T) {
	server := served(t, func() picture { return stories()["degraded"] })
	for path, kind := range map[string]string{"": "text/html; charset=utf-8", "/live": "application/json", "/watch.css": "text/css; charset=utf-8"} {
		a, err := http.Get(server.URL + statusPath + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		if a.StatusCode != 200 || a.Header.Get("Content-Type") != kind || a.Header.Get("Content-Security-Policy") != page.Policy {
			t.Errorf("%s: %d %v", path, a.StatusCode, a.Header)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	b := openBrowser(t)
	browsertest.Call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.Visit(server.URL+statusPath, "#verdict-title")
	if got := browsertest.Eval[string](b, `document.querySelector('noscript meta')?.content + ' ' + document.getElementById('site-shop').dataset.state`); got != "10 degraded" {
		t.Errorf("%q", got)
	}
	b.Quiet()
}
