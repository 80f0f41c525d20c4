package browsertest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// good is a page with nothing to find.
const good = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Good</title>
<link rel="icon" href="data:,"><style>:root{color-scheme:light dark;background:Canvas}svg{fill:#777}</style>
<header>a</header><main><h1>A page</h1><h2 id="part">Part</h2><p aria-live="polite" class="hidden" style="color:#eee">said</p>
<a href="#part">there</a><label>Name <input></label><svg role="img" aria-label="A drawing"><rect class="mark" width="9" height="9"/><svg></svg></svg>
<div class="scroll" tabindex="0" id="box" style="overflow:auto"><table style="width:4000px"><thead><tr><th scope="col">One</thead><tbody><tr><td>1</table></div>
<details><summary>More</summary><p style="color:#eee">not to be seen</p></details></main><footer>b</footer>`

func served(t *testing.T, page string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/"
}

// Each of a good page's faults is found, and the good page has none. Takes 3 s.
func TestWhatLooksFind(t *testing.T) {
	b := Open(t, Options{})
	b.Visit(served(t, good), "h1")
	b.Look("good")
	b.Quiet()
	for _, tt := range []struct{ from, to, call, want string }{
		{`<label>Name <input></label>`, `<input>`, "names()", "no name: <input"},
		{`<h1>`, `<img src="data:,"><h1>`, "names()", "no alt: "},
		{` aria-label="A drawing"`, ``, "names()", "a drawing without words: "},
		{`aria-live="polite"`, `aria-live="polite" aria-labelledby="part none"`, "names()", "nothing has the id none"},
		{`href="#part"`, `href="#nowhere"`, "names()", "leads nowhere: "},
		{`<header>`, `<header id="part">`, "names()", "id twice: part"},
		{`<td>1`, `<td>1<td>2`, "names()", "heads and cells differ: "},
		{`tabindex="0"`, ``, "names()", "the keyboard does not reach "},
		{`<footer>`, `<footer></footer><footer>`, "names()", "not one footer"},
		{`h2`, `h3`, "names()", "heading skips a level: Part"},
		{`aria-live`, `aria-less`, "names()", "nothing is announced"},
		{` lang="en"`, ``, "names()", "no language"},
		{`A page`, `NaN pages`, "names()", "NaN on the page"},
		{`<h1>`, `<h1 style="font-size:11px">`, "names()", "small: <h1"},
		{`overflow:auto`, ``, "wide()", "px too wide: "},
		{`<h1>`, `<h1 style="color:#888">`, `contrast("")`, "to 1: H1  A page"},
		{`<details>`, `<details open>`, `contrast("")`, "to 1: P  not to be seen"},
		{`fill:#777`, `fill:#aaa`, `contrast(".mark")`, "to 1: rect mark a mark"},
	} {
		b.Visit(served(t, strings.ReplaceAll(good, tt.from, tt.to)), "h1")
		if found := b.measured(tt.call); !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, tt.want) }) {
			t.Errorf("%s: %s finds %q, want %q", tt.to, tt.call, found, tt.want)
		}
	}
}

// What a page does that none may do is complained of.
func TestWhatIsComplainedOf(t *testing.T) {
	elsewhere := served(t, "")
	b := Open(t, Options{Expected: []string{"status of 404"}})
	page := served(t, strings.Replace(good, "<main>", `<main><script>console.log("words"); fetch("/none").then(() => fetch("`+elsewhere+`")).catch(() => { window.done = true; nowhere() })</script>`, 1))
	b.Visit(page, "h1")
	b.Until(`window.done`)
	b.Leave() // by now the browser has told all
	b.mu.Lock()
	defer b.mu.Unlock()
	all := strings.Join(b.complaints, "\n")
	for _, want := range []string{"console: log", "exception: ", "request to another host: " + elsewhere} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if strings.Contains(all, "/none") {
		t.Errorf("what is expected is complained of:\n%s", all)
	}
}

func TestNothingStays(t *testing.T) {
	var pid int
	t.Run("open", func(t *testing.T) {
		pid = chromedp.FromContext(Open(t, Options{Language: "ja"}).ctx).Browser.Process().Pid
	})
	if pid == 0 {
		t.Skip("no chromium was started")
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d of chromium still runs: %v", pid, err)
	}
}

func TestTailIsBounded(t *testing.T) {
	var l tail
	for range 3000 {
		_, _ = l.Write([]byte("0123456789\n1:ERROR:dbus/bus.cc: none\n"))
	}
	_, _ = l.Write([]byte("the end\n"))
	if len(l.kept) != tailSize || !strings.HasSuffix(l.words(), "0123456789\nthe end\n") {
		t.Errorf("%d bytes, %q", len(l.kept), l.words())
	}
}
