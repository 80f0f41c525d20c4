package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is Debian's chromium on one page, with its complaints.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	output     logTail // what the browser itself writes
}

// stepLimit bounds one thing that the browser is asked to do. It is a busy machine's.
const stepLimit = time.Minute

// openBrowser starts chromium; the test is skipped where there is none.
func openBrowser(t *testing.T, site string) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: make test installs it (package chromium)")
	}
	u, err := url.Parse(site)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t}
	profile := t.TempDir()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(time.Minute), chromedp.CombinedOutput(&b.output))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until the browser has ended
		cancel()
		stop()
		// Its children may write for a moment longer.
		eventually(t, 20*time.Second, "the browser's profile is gone", func() bool { return os.RemoveAll(profile) == nil })
	})
	if err := chromedp.Listen(ctx, b.heard(u.Host)); err != nil {
		t.Fatal(err)
	}
	limited, end := context.WithTimeout(ctx, 8*time.Minute)
	t.Cleanup(end)
	b.ctx = limited
	t.Cleanup(b.explain) // the first to run
	call(b, network.Enable, network.EnableParams{})
	b.do(chromedp.Navigate(site), chromedp.WaitVisible("#do-stop"))
	return b
}

// heard collects what should not happen on the page.
func (b *browser) heard(host string) func(any) {
	return func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			words, _ := json.Marshal(e.ExceptionDetails)
			b.complain("exception: " + string(words))
		case *runtime.EventConsoleAPICalled:
			words, _ := json.Marshal(e.Args)
			b.complain("console: " + string(e.Type) + " " + string(words))
		case *inspector.EventTargetCrashed:
			b.complain("the page crashed")
		case *log.EventEntryAdded:
			if e.Entry.Level == "error" || e.Entry.Level == "warning" {
				b.complain("log: " + e.Entry.Text + " " + e.Entry.URL)
			}
		case *network.EventRequestWillBeSent:
			u, err := url.Parse(e.Request.URL)
			if err != nil || u.Scheme != "blob" && u.Scheme != "data" && u.Host != host {
				b.complain("request to another host: " + e.Request.URL)
			}
		}
	}
}

func (b *browser) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, text)
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

// pageState is what the page says, for the log of a test that failed.
const pageState = `JSON.stringify({
	state: document.readyState, visible: document.visibilityState, as: document.body?.dataset.as, tiles: [...document.querySelectorAll('.tile')].map(t => {
		const i = t.querySelector('img');
		return [t.dataset.fate, t.dataset.format, i?.complete, i?.naturalWidth, i?.currentSrc].join(' ');
	}),
	missing: (window.missing || []).slice(-3), order: document.querySelector('.way')?.dataset.order, text: document.body?.innerText.slice(0, 6000),
}, null, 1)`

// explain logs, for a test that failed, all that may tell the cause.
func (b *browser) explain() {
	if !b.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), 10*time.Second)
	defer cancel()
	state, err := chromedp.Run(ctx, chromedp.Evaluate[string](pageState))
	b.t.Logf("the page now (%v):\n%s", err, state)
	b.mu.Lock()
	complaints := b.complaints[max(0, len(b.complaints)-20):]
	b.mu.Unlock()
	b.t.Logf("the last of what the page complained of:\n%s", strings.Join(complaints, "\n"))
	b.t.Logf("the browser's own last words:%s", b.output.excerpt())
}

// until waits until an expression is true.
func (b *browser) until(limit time.Duration, expression string) {
	b.t.Helper()
	eventually(b.t, limit, expression, func() bool { return eval[bool](b, `Boolean(`+expression+`)`) })
}

// click clicks a button as a person does, with the mouse.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.do(chromedp.ScrollIntoView(selector), chromedp.Click(selector))
}

// media sets how the page is shown.
func (b *browser) media(width int64, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.do(chromedp.EmulateViewport(width, 900))
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// shoot keeps pictures of the whole page, where KARUI_DEMO_SHOTS says so.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("KARUI_DEMO_SHOTS")
	if dir == "" {
		return
	}
	for _, width := range []int64{1280, 360} {
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
	b.media(1280, false)
}

// formats lists the formats of the images on the page.
const pageFormats = `[...document.querySelectorAll('.tile')].map(t => t.dataset.format).join(' ')`

// allShown is true while every image is really there.
const allShown = `[...document.querySelectorAll('.tile img')].every(i => i.complete && i.naturalWidth > 0) && document.querySelectorAll('.tile[data-fate="good"]').length === 4`

// TestBrowser does in a real browser what a person does who tries the demonstration:
// takes 40 to 60 s, most of which is waiting for the watchdog.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("takes most of a minute")
	}
	t.Parallel()
	demo := startDemo(t)
	t.Cleanup(demo.explain)
	b := openBrowser(t, demo.url+"/")
	b.until(90*time.Second, allShown)
	b.until(90*time.Second, pageFormats+`.split(' ').filter(f => f === 'WebP').length >= 2`)
	// From now on somebody looks all the time whether an image is missing.
	b.lookOn()

	t.Log("healthy: names, keyboard, widths, contrast")
	b.accessible()
	b.shoot("1-healthy")

	t.Log("as a browser without WebP")
	b.do(chromedp.Click(`input[name=as][value=plain]`), chromedp.WaitVisible("body[data-as=plain]"))
	b.until(90*time.Second, allShown+` && `+pageFormats+` === 'JPEG PNG PNG GIF'`)
	b.do(chromedp.Click(`input[name=as][value=webp]`), chromedp.WaitVisible("body[data-as=webp]"))
	b.until(90*time.Second, allShown+` && `+pageFormats+`.includes('WebP')`)
	b.lookOn()

	t.Log("rehearse")
	b.click("#do-rehearse")
	b.until(90*time.Second, `(document.getElementById('rehearsal-title') || {}).textContent?.includes('passed') === true`)

	t.Log("stop the proxy")
	b.click("#do-stop")
	b.until(90*time.Second, `document.querySelector('h1').textContent.includes('karui is down')`)
	b.until(90*time.Second, `Number(document.getElementById('failovers').textContent) > 0`)
	b.until(90*time.Second, pageFormats+` === 'JPEG PNG PNG GIF'`)
	b.shoot("2-stage-1")
	b.until(90*time.Second, `document.querySelector('.way').dataset.order === 'origin'`)
	b.until(90*time.Second, `document.querySelector('.mails')?.textContent.includes('DEGRADED') === true`)
	b.shoot("3-stage-2")

	t.Log("the mail can be read, and stays open")
	b.click(`.mails details summary`)
	b.until(30*time.Second, `document.querySelector('.mails details').open && document.querySelector('.mails details pre').textContent.includes('The true origin was put first')`)

	t.Log("heal")
	b.click("#do-heal")
	b.until(90*time.Second, `document.querySelector('.way').dataset.order === 'karui'`)
	b.until(90*time.Second, pageFormats+`.split(' ').filter(f => f === 'WebP').length >= 2`)
	b.until(90*time.Second, `document.querySelector('.mails').textContent.includes('RESTORED')`)
	b.until(90*time.Second, `document.querySelector('h1').textContent === 'All is well.'`)
	b.shoot("4-healed")

	if missing := eval[[]string](b, `window.missing`); len(missing) > 0 {
		t.Errorf("images were missing %d times, first: %s", len(missing), missing[0])
	}
	if n := eval[string](b, `document.getElementById('broken').textContent`); n != "0" {
		t.Errorf("%s broken images", n)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		t.Error(c)
	}
}

// lookOn notes in the page, 20 times a second, whenever an image is not there.
func (b *browser) lookOn() {
	b.t.Helper()
	eval[bool](b, `(() => {
		window.missing = [];
		setInterval(() => { if (!(`+allShown+`)) window.missing.push(document.querySelector('.tiles').innerText); }, 50);
		return true;
	})()`)
}

// accessible checks what can be checked without a person.
func (b *browser) accessible() {
	b.t.Helper()
	for _, problem := range eval[[]string](b, accessScript) {
		b.t.Error(problem)
	}
	// The tab key reaches every button.
	reached := make(map[string]bool)
	eval[bool](b, `document.activeElement.blur(), window.scrollTo(0, 0), true`)
	for range 60 {
		b.do(chromedp.KeyEvent("\t"))
		here := eval[[]string](b, `(() => { const e = document.activeElement; const s = getComputedStyle(e); return [e.id || e.value || e.tagName, s.outlineStyle] })()`)
		reached[here[0]] = true
		if here[1] == "none" && here[0] != "BODY" {
			b.t.Errorf("the focus on %s cannot be seen", here[0])
		}
	}
	for _, id := range eval[[]string](b, `[...document.querySelectorAll('button')].map(b => b.id)`) {
		if !reached[id] {
			b.t.Errorf("the tab key does not reach #%s; it reaches %v", id, reached)
		}
	}
	for _, width := range []int64{360, 768, 1280} {
		b.media(width, false)
		if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			b.t.Errorf("at %d px the page is %d px too wide", width, over)
		}
	}
	for _, dark := range []bool{false, true} {
		b.media(1280, dark)
		for _, problem := range eval[[]string](b, contrastScript) {
			b.t.Errorf("dark %v: %s", dark, problem)
		}
	}
	b.media(1280, false)
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
	const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
	for (const id of new Set(ids)) if (ids.filter(i => i === id).length > 1) out.push('id twice: ' + id);
	for (const tag of ['header', 'main', 'footer', 'h1']) if (document.querySelectorAll(tag).length !== 1) out.push('not one ' + tag);
	let level = 0;
	for (const h of document.querySelectorAll('h1, h2, h3')) { const l = Number(h.tagName[1]); if (l > level + 1) out.push('heading skips a level: ' + h.textContent); level = l; }
	if (!document.querySelector('[aria-live]')) out.push('nothing is announced');
	if (!document.documentElement.lang) out.push('no language');
	return out;
})()`

// contrastScript measures all text as WCAG does: 4.5 to 1.
const contrastScript = `(() => {
	const out = new Set();
	const rgba = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
	const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
	const light = (c) => { const l = c.slice(0, 3).map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
	const ground = (e) => { let c = [0, 0, 0, 0]; for (; e; e = e.parentElement) { c = c[3] ? over(c, rgba(getComputedStyle(e).backgroundColor)) : rgba(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.textContent.trim() || e.closest('.hidden, noscript, .skip, svg') || getComputedStyle(e).visibility === 'hidden') continue;
		const g = ground(e), t = over(rgba(getComputedStyle(e).color), g);
		const [a, b] = [light(g), light(t)].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5) out.add(ratio.toFixed(2) + ' to 1: ' + e.className + ' ' + e.tagName + ' ' + walk.currentNode.textContent.trim().slice(0, 40));
	}
	return [...out];
})()`
