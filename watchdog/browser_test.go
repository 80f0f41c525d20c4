package watchdog

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"karui/internal/page"
)

// browser is Debian's chromium with its complaints.
type browser struct {
	t          *testing.T
	ctx        context.Context
	mu         sync.Mutex
	complaints []string
}

// stepLimit bounds one thing that the browser is asked to do, on a busy machine.
const stepLimit = time.Minute

func openBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: make test installs it (package chromium)")
	}
	b := &browser{t: t}
	profile := t.TempDir()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(time.Minute))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until the browser has ended
		cancel()
		stop()
		// Its children may write for a moment longer.
		for began := time.Now(); os.RemoveAll(profile) != nil && time.Since(began) < 20*time.Second; {
		}
	})
	if err := chromedp.Listen(ctx, b.heard); err != nil {
		t.Fatal(err)
	}
	limited, end := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(end)
	b.ctx = limited
	call(b, network.Enable, network.EnableParams{})
	return b
}

// heard collects what should not happen on the page.
func (b *browser) heard(event any) {
	complain := func(text string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.complaints = append(b.complaints, text)
	}
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		words, _ := json.Marshal(e.ExceptionDetails)
		complain("exception: " + string(words))
	case *runtime.EventConsoleAPICalled:
		words, _ := json.Marshal(e.Args)
		complain("console: " + string(e.Type) + " " + string(words))
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			complain("log: " + e.Entry.Text + " " + e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Hostname() != "127.0.0.1" && u.Scheme != "data" {
			complain("request to another host: " + e.Request.URL)
		}
	}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepLimit)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// call sends a command of the protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

// eval gives what an expression comes to.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepLimit)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%v: %s", err, expression)
	}
	return out
}

// until waits until an expression is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	for began := time.Now(); time.Since(began) < stepLimit; {
		if eval[bool](b, `new Promise((d) => setTimeout(() => d(Boolean(`+expression+`)), 50))`) {
			return
		}
	}
	b.t.Fatalf("never: %s\n%s", expression, eval[string](b, `document.body.innerText.slice(0, 3000)`))
}

// media sets how the page is shown.
func (b *browser) media(width int64, dark bool) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, 900))
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: map[bool]string{false: "light", true: "dark"}[dark]},
	}})
}

// shoot keeps pictures of the whole page, where KARUI_STATUS_SHOTS says so.
func (b *browser) shoot(name string, widths ...int64) {
	b.t.Helper()
	dir := os.Getenv("KARUI_STATUS_SHOTS")
	if dir == "" {
		return
	}
	for _, width := range widths {
		for _, dark := range []bool{false, true} {
			b.media(width, dark)
			picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			if err != nil {
				b.t.Fatal(err)
			}
			file := fmt.Sprintf("watchdog-%s-%d-%s.png", name, width, map[bool]string{false: "light", true: "dark"}[dark])
			if err := os.WriteFile(filepath.Join(dir, file), picture, 0o600); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

func (b *browser) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		b.t.Error(c)
	}
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
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	b := openBrowser(t)
	all := stories()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		server := served(t, func() picture { return all[name] })
		b.media(1280, false)
		b.do(chromedp.Navigate(server.URL+statusPath), chromedp.WaitVisible("#verdict-title"))
		if name == "down" {
			eval[bool](b, `(() => { for (const d of document.querySelectorAll('details')) d.open = true; return true })()`)
		}
		for _, problem := range eval[[]string](b, accessScript) {
			t.Errorf("%s: %s", name, problem)
		}
		for _, width := range []int64{360, 768, 1280, 1800} {
			b.media(width, false)
			if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("%s: at %d px the page is %d px too wide: %s", name, width, over, eval[string](b, wideScript))
			}
		}
		for _, dark := range []bool{false, true} {
			b.media(1280, dark)
			for _, problem := range eval[[]string](b, contrastScript) {
				t.Errorf("%s: dark %v: %s", name, dark, problem)
			}
		}
		b.shoot(name, 1280, 360)
		b.do(chromedp.Navigate("about:blank"))
		server.Close()
	}
	b.quiet()
}

// A site falls under the eyes of a person who has opened something, and that stays so.
func TestStatusPageIsLive(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	var mu sync.Mutex
	now := shown(wellAs("news"), wellAs("shop"))
	server := served(t, func() picture {
		mu.Lock()
		defer mu.Unlock()
		return now
	})
	b := openBrowser(t)
	b.media(1280, false)
	b.do(chromedp.Navigate(server.URL+statusPath), chromedp.WaitVisible("#verdict-title"))
	eval[bool](b, `(() => { document.getElementById('more-news').open = true; return true })()`)
	b.until(`Number(document.body.dataset.read) >= 1`)
	mu.Lock()
	now = shown(wellAs("news"), fallenAs("shop", false))
	mu.Unlock()
	b.until(`document.getElementById('verdict-title').textContent === '1 site is down and not degraded'`)
	b.until(`document.querySelector('ol.watch > li').dataset.state === 'down'`)
	b.until(`document.getElementById('announcer').textContent === '1 site is down and not degraded'`)
	if !eval[bool](b, `document.getElementById('more-news').open`) {
		t.Error("what a person had opened was shut")
	}
	b.quiet()
	// Without its server, the page says that it is old.
	server.Close()
	b.until(`document.body.classList.contains('lost')`)
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
	if testing.Short() {
		t.Skip("a browser takes some seconds")
	}
	b := openBrowser(t)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.do(chromedp.Navigate(server.URL+statusPath), chromedp.WaitVisible("#verdict-title"))
	if got := eval[string](b, `document.querySelector('noscript meta')?.content + ' ' + document.getElementById('site-shop').dataset.state`); got != "10 degraded" {
		t.Errorf("%q", got)
	}
	b.quiet()
}

// accessScript looks for names, landmarks, headings and labels.
const accessScript = `(() => {
	const out = [];
	const name = (e) => (e.getAttribute('aria-label') || e.textContent || '').trim();
	for (const e of document.querySelectorAll('button, a, summary')) if (!name(e)) out.push('no name: ' + e.outerHTML);
	for (const e of document.querySelectorAll('img')) if (!e.hasAttribute('alt')) out.push('no alt: ' + e.outerHTML);
	for (const e of document.querySelectorAll('[aria-labelledby]')) if (!document.getElementById(e.getAttribute('aria-labelledby'))) out.push('nothing has the id ' + e.getAttribute('aria-labelledby'));
	for (const e of document.querySelectorAll('a[href^="#"]')) if (!document.getElementById(e.hash.slice(1))) out.push('leads nowhere: ' + e.outerHTML);
	for (const e of document.querySelectorAll('svg')) if (e.getAttribute('aria-hidden') !== 'true' && !(e.getAttribute('role') === 'img' && e.getAttribute('aria-label'))) out.push('a drawing without words: ' + e.outerHTML.slice(0, 200));
	const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
	for (const id of new Set(ids)) if (ids.filter(i => i === id).length > 1) out.push('id twice: ' + id);
	for (const tag of ['header', 'main', 'footer', 'h1']) if (document.querySelectorAll(tag).length !== 1) out.push('not one ' + tag);
	let level = 0;
	for (const h of document.querySelectorAll('h1, h2, h3')) { const l = Number(h.tagName[1]); if (l > level + 1) out.push('heading skips a level: ' + h.textContent); level = l; }
	if (!document.querySelector('[aria-live]') || !document.documentElement.lang) out.push('nothing is announced, or in no language');
	for (const e of document.querySelectorAll('body *')) if (e.textContent.trim() && parseFloat(getComputedStyle(e).fontSize) < 12) out.push('small: ' + e.outerHTML.slice(0, 100));
	return out.slice(0, 20);
})()`

// contrastScript measures all text as WCAG does, 4.5 to 1, and the signs of the strips, 3 to 1.
const contrastScript = `(() => {
	const out = new Set();
	const rgba = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
	const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
	const light = (c) => { const l = c.slice(0, 3).map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
	const ground = (e) => { let c = [0, 0, 0, 0]; for (; e; e = e.parentElement) { if (e.closest('svg')) continue; c = c[3] ? over(c, rgba(getComputedStyle(e).backgroundColor)) : rgba(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
	const ratio = (g, t) => { const [a, b] = [light(g), light(over(t, g))].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); };
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.textContent.trim() || e.closest('.hidden, noscript, .skip') || !e.checkVisibility()) continue;
		const r = ratio(ground(e), rgba(getComputedStyle(e).color));
		if (r < 4.5) out.add(r.toFixed(2) + ' to 1: ' + e.className + ' ' + e.tagName + ' ' + walk.currentNode.textContent.trim().slice(0, 40));
	}
	for (const e of document.querySelectorAll('.strip path:not(.ground)')) {
		const s = getComputedStyle(e), r = ratio(ground(e), rgba(s.fill === 'none' ? s.stroke : s.fill));
		if (r < 3) out.add(r.toFixed(2) + ' to 1: the sign ' + e.className.baseVal);
	}
	return [...out];
})()`

// wideScript names what reaches over the right edge.
const wideScript = `[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).slice(-4).map(e => e.outerHTML.slice(0, 160)).join('\n')`
