package demo

import (
	"testing"

	"github.com/chromedp/chromedp"

	"karui/internal/browsertest"
)

// pageState is what the page says, for the log of a test that failed.
const pageState = `JSON.stringify({
	state: document.readyState, visible: document.visibilityState, as: document.body?.dataset.as, tiles: [...document.querySelectorAll('.tile')].map(t => {
		const i = t.querySelector('img');
		return [t.dataset.fate, t.dataset.format, i?.complete, i?.naturalWidth, i?.currentSrc].join(' ');
	}),
	missing: (window.missing || []).slice(-3), order: document.querySelector('.way')?.dataset.order, text: document.body?.innerText.slice(0, 6000),
}, null, 1)`

// click clicks a button as a person does, with the mouse.
func click(b *browsertest.Browser, selector string) {
	b.Do(chromedp.ScrollIntoView(selector), chromedp.Click(selector))
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
	b := browsertest.Open(t, browsertest.Options{Shots: "KARUI_DEMO_SHOTS", State: pageState})
	b.Visit(demo.url+"/", "#do-stop")
	b.Until(allShown)
	b.Until(pageFormats + `.split(' ').filter(f => f === 'WebP').length >= 2`)
	// From now on somebody looks all the time whether an image is missing.
	lookOn(b)

	t.Log("healthy: names, keyboard, widths, contrast")
	b.Look("1-healthy")
	tabs(t, b)

	t.Log("as a browser without WebP")
	b.Do(chromedp.Click(`input[name=as][value=plain]`), chromedp.WaitVisible("body[data-as=plain]"))
	b.Until(allShown + ` && ` + pageFormats + ` === 'JPEG PNG PNG GIF'`)
	b.Do(chromedp.Click(`input[name=as][value=webp]`), chromedp.WaitVisible("body[data-as=webp]"))
	b.Until(allShown + ` && ` + pageFormats + `.includes('WebP')`)
	lookOn(b)

	t.Log("rehearse")
	click(b, "#do-rehearse")
	b.Until(`(document.getElementById('rehearsal-title') || {}).textContent?.includes('passed') === true`)

	t.Log("stop the proxy")
	click(b, "#do-stop")
	b.Until(`document.querySelector('h1').textContent.includes('karui is down')`)
	b.Until(`Number(document.getElementById('failovers').textContent) > 0`)
	b.Until(pageFormats + ` === 'JPEG PNG PNG GIF'`)
	b.Shoot("2-stage-1")
	b.Until(`document.querySelector('.way').dataset.order === 'origin'`)
	b.Until(`document.querySelector('.mails')?.textContent.includes('DEGRADED') === true`)
	b.Shoot("3-stage-2")

	t.Log("the mail can be read, and stays open")
	click(b, `.mails details summary`)
	b.Until(`document.querySelector('.mails details').open && document.querySelector('.mails details pre').textContent.includes('The true origin was put first')`)

	t.Log("heal")
	click(b, "#do-heal")
	b.Until(`document.querySelector('.way').dataset.order === 'karui'`)
	b.Until(pageFormats + `.split(' ').filter(f => f === 'WebP').length >= 2`)
	b.Until(`document.querySelector('.mails').textContent.includes('RESTORED')`)
	b.Until(`document.querySelector('h1').textContent === 'All is well.'`)
	b.Shoot("4-healed")

	if missing := browsertest.Eval[[]string](b, `window.missing`); len(missing) > 0 {
		t.Errorf("images were missing %d times, first: %s", len(missing), missing[0])
	}
	if n := browsertest.Eval[string](b, `document.getElementById('broken').textContent`); n != "0" {
		t.Errorf("%s broken images", n)
	}
	b.Quiet()
}

// lookOn notes in the page, 20 times a second, whenever an image is not there.
func lookOn(b *browsertest.Browser) {
	browsertest.Eval[bool](b, `(() => {
		window.missing = [];
		setInterval(() => { if (!(`+allShown+`)) window.missing.push(document.querySelector('.tiles').innerText); }, 50);
		return true;
	})()`)
}

// tabs checks that the tab key reaches every button, and that one sees where it is.
func tabs(t *testing.T, b *browsertest.Browser) {
	t.Helper()
	reached := make(map[string]bool)
	browsertest.Eval[bool](b, `document.activeElement.blur(), window.scrollTo(0, 0), true`)
	for range 60 {
		b.Do(chromedp.KeyEvent("\t"))
		here := browsertest.Eval[[]string](b, `(() => { const e = document.activeElement; const s = getComputedStyle(e); return [e.id || e.value || e.tagName, s.outlineStyle] })()`)
		reached[here[0]] = true
		if here[1] == "none" && here[0] != "BODY" {
			t.Errorf("the focus on %s cannot be seen", here[0])
		}
	}
	for _, id := range browsertest.Eval[[]string](b, `[...document.querySelectorAll('button')].map(b => b.id)`) {
		if !reached[id] {
			t.Errorf("the tab key does not reach #%s; it reaches %v", id, reached)
		}
	}
}
