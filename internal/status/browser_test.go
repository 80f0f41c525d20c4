package status

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"karui/internal/api"
)

// browser is Debian's chromium with its complaints.
type browser struct {
	t   *testing.T
	ctx context.Context

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
		// A browser says of every status 401 that it is one.
		if (e.Entry.Level == "error" || e.Entry.Level == "warning") && !strings.Contains(e.Entry.Text, "401") {
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
			file := fmt.Sprintf("%s-%d-%s.png", name, width, map[bool]string{false: "light", true: "dark"}[dark])
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

// TestInABrowser looks at the page in each story: nothing is complained of, nothing
// is too wide, text has contrast, everything has a name. Takes 10 to 20 s.
func TestInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	b := openBrowser(t)
	all := stories()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		server := httptest.NewServer(all[name]().handler(t))
		b.media(1280, false)
		b.do(chromedp.Navigate(server.URL+Path), chromedp.WaitVisible("#verdict-title"))
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

// TestLive signs in as a person does, and sees the page change under the eyes while
// the scrolled place, a focus and an untouched part stay.
func TestLive(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	s := told(tell(80*time.Minute, func(at time.Time) Facts { return healthy(at, 30) }))
	var more atomic.Uint64
	calm := s.facts
	s.facts = func(at time.Time) Facts {
		f := calm(at)
		f.Sites[0].Requests["503_panic"] = more.Load()
		f.DiskFull = more.Load() > 0
		return f
	}
	server := httptest.NewServer(s.live().handler(t, api.Token{Name: "ops", Secret: "s3cret-s3cret", Rights: []api.Right{api.Read}},
		api.Token{Name: "staff", Secret: "staff-staff-staff", Rights: []api.Right{api.Read}, Sites: []string{"news", "recipes"}}))
	defer server.Close()
	b := openBrowser(t)
	b.media(1280, false)
	b.do(chromedp.Navigate(server.URL+Path), chromedp.WaitVisible("#token"))
	b.shoot("enter", 1280, 360)
	b.do(chromedp.SendKeys("#token", "wrong-wrong"), chromedp.Click("button"), chromedp.WaitVisible(".bad-text"))
	b.do(chromedp.SendKeys("#token", "s3cret-s3cret"), chromedp.Click("button"), chromedp.WaitVisible("#verdict-title"))
	if got := eval[string](b, `document.cookie`); got != "" {
		t.Errorf("scripts can read the cookie: %q", got)
	}
	eval[bool](b, `(() => { window.mark = document.querySelector('[data-fragment="dial"]').firstElementChild;
		document.getElementById('scroll-sites').focus({ preventScroll: true }); window.scrollTo(0, 700); return true; })()`)
	b.until(`Number(document.body.dataset.read) >= 1`)
	more.Store(7)
	b.until(`document.getElementById('verdict-title').textContent === 'One thing is wrong.'`)
	b.until(`document.querySelector('#refused .legend')?.textContent.includes('panic 7')`)
	b.until(`document.getElementById('announcer').textContent === 'One thing is wrong.'`)
	if y := eval[int](b, `Math.round(window.scrollY)`); y != 700 {
		t.Errorf("the page was scrolled to 700, and is at %d", y)
	}
	if id := eval[string](b, `document.activeElement.id`); id != "scroll-sites" {
		t.Errorf("the focus went to %q", id)
	}
	b.do(chromedp.Click(".facts button"), chromedp.WaitVisible("#token"))

	t.Log("as somebody for some sites")
	b.do(chromedp.SendKeys("#token", "staff-staff-staff"), chromedp.Click("button"), chromedp.WaitVisible("#verdict-title"))
	for _, problem := range eval[[]string](b, accessScript) {
		t.Error(problem)
	}
	if got := eval[string](b, `[...document.querySelectorAll('[data-site]')].map(e => e.dataset.site).join(' ')+' '+(document.getElementById('volumes') === null)`); got != "news recipes true" {
		t.Errorf("the page for news and recipes shows %s", got)
	}
	b.until(`Number(document.body.dataset.read) >= 1`)
	b.shoot("some-sites", 1280, 360)
	b.quiet()

	t.Log("karui ends")
	server.CloseClientConnections()
	server.Close()
	b.until(`document.body.classList.contains('lost') && document.getElementById('announcer').textContent.includes('old')`)
}

// live lets the story's clock run with the real one.
func (s *story) live() *story {
	began := time.Now()
	s.recorder.now = func() time.Time { return noon().Add(time.Since(began)) }
	return s
}

// accessScript looks for names, landmarks, headings and labels.
const accessScript = `(() => {
	const out = [];
	const name = (e) => (e.getAttribute('aria-label') || (e.labels && [...e.labels].map(l => l.textContent).join(' ')) || e.textContent || '').trim();
	for (const e of document.querySelectorAll('button, a, input, summary')) if (!name(e)) out.push('no name: ' + e.outerHTML);
	for (const e of document.querySelectorAll('img')) if (!e.hasAttribute('alt')) out.push('no alt: ' + e.outerHTML);
	for (const e of document.querySelectorAll('[aria-labelledby], [aria-describedby]'))
		for (const id of ((e.getAttribute('aria-labelledby') || '') + ' ' + (e.getAttribute('aria-describedby') || '')).trim().split(/\s+/))
			if (!document.getElementById(id)) out.push('nothing has the id ' + id);
	for (const e of document.querySelectorAll('a[href^="#"]')) if (!document.getElementById(e.hash.slice(1))) out.push('leads nowhere: ' + e.outerHTML);
	for (const e of document.querySelectorAll('svg.plot, svg.spark, svg.meter')) if (e.getAttribute('role') !== 'img' || !(e.getAttribute('aria-label') || e.querySelector('desc')?.textContent)) out.push('a drawing without words: ' + e.outerHTML.slice(0, 200));
	for (const e of document.querySelectorAll('table')) if (e.querySelectorAll('thead th[scope=col]').length !== e.querySelector('tbody tr').children.length) out.push('heads and cells differ: ' + e.outerHTML.slice(0, 200));
	for (const e of document.querySelectorAll('.scroll')) if (e.tabIndex !== 0 || !e.id) out.push('the keyboard does not reach ' + e.outerHTML.slice(0, 100));
	const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
	for (const id of new Set(ids)) if (ids.filter(i => i === id).length > 1) out.push('id twice: ' + id);
	for (const tag of ['main > *', 'header', 'main', 'footer', 'h1']) if (tag !== 'main > *' && document.querySelectorAll(tag).length !== 1) out.push('not one ' + tag);
	let level = 0;
	for (const h of document.querySelectorAll('h1, h2, h3')) { const l = Number(h.tagName[1]); if (l > level + 1) out.push('heading skips a level: ' + h.textContent); level = l; }
	if (!document.querySelector('[aria-live]')) out.push('nothing is announced');
	if (!document.documentElement.lang) out.push('no language');
	if (document.body.innerText.includes('NaN') || document.body.innerHTML.includes('NaN')) out.push('NaN on the page');
	for (const e of document.querySelectorAll('body *')) if (e.textContent.trim() && parseFloat(getComputedStyle(e).fontSize) < 12) out.push('small: ' + e.outerHTML.slice(0, 100));
	return out.slice(0, 20);
})()`

// contrastScript measures all text as WCAG does: 4.5 to 1.
const contrastScript = `(() => {
	const out = new Set();
	const rgba = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
	const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
	const light = (c) => { const l = c.slice(0, 3).map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
	const ground = (e) => { let c = [0, 0, 0, 0]; for (; e; e = e.parentElement) { if (e.closest('svg')) continue; c = c[3] ? over(c, rgba(getComputedStyle(e).backgroundColor)) : rgba(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.textContent.trim() || e.closest('.hidden, noscript, .skip, title, desc') || getComputedStyle(e).visibility === 'hidden') continue;
		const s = getComputedStyle(e), g = ground(e), t = over(rgba(e.closest('svg') ? s.fill : s.color), g);
		const [a, b] = [light(g), light(t)].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5) out.add(ratio.toFixed(2) + ' to 1: ' + (e.className.baseVal ?? e.className) + ' ' + e.tagName + ' ' + walk.currentNode.textContent.trim().slice(0, 40));
	}
	return [...out];
})()`

// wideScript names what reaches over the right edge.
const wideScript = `[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, svg') && e.getBoundingClientRect().right > innerWidth + 1).slice(-4).map(e => e.outerHTML.slice(0, 160)).join('\n')`
