package status

import (
	"maps"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"karui/internal/api"
	"karui/internal/browsertest"
)

// openBrowser opens a page that may be refused to somebody.
func openBrowser(t *testing.T) *browsertest.Browser {
	return browsertest.Open(t, browsertest.Options{Expected: []string{"401"}, Shots: "KARUI_STATUS_SHOTS"})
}

// TestInABrowser looks at the page in each story: nothing is complained of, nothing
// is too wide, text has contrast, everything has a name. Takes 10 to 20 s.
func TestInABrowser(t *testing.T) {
	b := openBrowser(t)
	all := stories()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		server := httptest.NewServer(all[name]().handler(t))
		b.Visit(server.URL+Path, "#verdict-title")
		b.Look(name)
		b.Leave()
		server.Close()
	}
	b.Quiet()
}

// TestPhone sees on a narrow screen, without moving anything sideways, what each site
// and place does.
func TestPhone(t *testing.T) {
	server := httptest.NewServer(noOrigin().handler(t))
	defer server.Close()
	b := openBrowser(t)
	b.Do(chromedp.EmulateViewport(360, 800))
	b.Visit(server.URL+Path, "#verdict-title")
	hidden := browsertest.Eval[string](b, `[...document.querySelectorAll('#sites td, #places td')].filter(c => c.textContent && (c.getBoundingClientRect().right > 360 || c.getBoundingClientRect().width === 0)).map(c => c.dataset.label).join(', ')`)
	if hidden != "" {
		t.Errorf("not to be seen: %s", hidden)
	}
	if got := browsertest.Eval[string](b, `document.querySelector('[data-site=blog] [data-label="well, minute"]').innerText`); got != "0.0 %" {
		t.Errorf("the site's share is %q", got)
	}
	b.Quiet()
}

// TestLive signs in as a person does, and sees the page change under the eyes while
// the scrolled place, a focus and an untouched part stay.
func TestLive(t *testing.T) {
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
	b.Visit(server.URL+Path, "#token")
	b.Shoot("enter")
	b.Do(chromedp.SendKeys("#token", "wrong-wrong"), chromedp.Click("button"), chromedp.WaitVisible(".bad-text"))
	b.Do(chromedp.SendKeys("#token", "s3cret-s3cret"), chromedp.Click("button"), chromedp.WaitVisible("#verdict-title"))
	if got := browsertest.Eval[string](b, `document.cookie`); got != "" {
		t.Errorf("scripts can read the cookie: %q", got)
	}
	browsertest.Eval[bool](b, `(() => { window.mark = document.querySelector('[data-fragment="dial"]').firstElementChild;
		document.getElementById('scroll-sites').focus({ preventScroll: true }); window.scrollTo(0, 700); return true; })()`)
	b.Until(`Number(document.body.dataset.read) >= 1`)
	more.Store(7)
	b.Until(`document.getElementById('verdict-title').textContent === 'One thing is wrong.'`)
	b.Until(`document.querySelector('#refused .legend')?.textContent.includes('panic 7')`)
	b.Until(`document.getElementById('announcer').textContent === 'One thing is wrong.'`)
	if y := browsertest.Eval[int](b, `Math.round(window.scrollY)`); y != 700 {
		t.Errorf("the page was scrolled to 700, and is at %d", y)
	}
	if id := browsertest.Eval[string](b, `document.activeElement.id`); id != "scroll-sites" {
		t.Errorf("the focus went to %q", id)
	}
	b.Do(chromedp.Click(".facts button"), chromedp.WaitVisible("#token"))

	t.Log("as somebody for some sites")
	b.Do(chromedp.SendKeys("#token", "staff-staff-staff"), chromedp.Click("button"), chromedp.WaitVisible("#verdict-title"))
	if got := browsertest.Eval[string](b, `[...document.querySelectorAll('[data-site]')].map(e => e.dataset.site).join(' ')+' '+(document.getElementById('volumes') === null)`); got != "news recipes true" {
		t.Errorf("the page for news and recipes shows %s", got)
	}
	b.Until(`Number(document.body.dataset.read) >= 1`)
	b.Look("some-sites")
	b.Quiet()

	t.Log("karui ends")
	server.CloseClientConnections()
	server.Close()
	b.Until(`document.body.classList.contains('lost') && document.getElementById('announcer').textContent.includes('old')`)
}

// live lets the story's clock run with the real one.
func (s *story) live() *story {
	began := time.Now()
	s.recorder.now = func() time.Time { return noon().Add(time.Since(began)) }
	return s
}
