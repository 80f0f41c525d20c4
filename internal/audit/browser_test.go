package audit

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"karui/convert/header"
	"karui/internal/sample"
)

// browser is Debian's chromium with its complaints.
type browser struct {
	t    *testing.T
	ctx  context.Context
	page string // the only address that may be asked

	mu         sync.Mutex
	complaints []string
}

// stepLimit bounds one thing that the browser is asked to do, on a busy machine.
const stepLimit = time.Minute

func openBrowser(t *testing.T, page string) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: make test installs it (package chromium)")
	}
	b := &browser{t: t, page: page}
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
		if to := e.Request.URL; to != b.page && !strings.HasPrefix(to, b.page+"#") && !strings.HasPrefix(to, "data:") {
			complain("a request: " + to)
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

// media sets how the page is shown.
func (b *browser) media(width int64, dark bool) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, 900))
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: map[bool]string{false: "light", true: "dark"}[dark]},
	}})
}

// shoot keeps a picture of the page, where KARUI_AUDIT_SHOTS says so.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("KARUI_AUDIT_SHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// TestInABrowser opens a report from the disk: it asks for nothing, nothing is
// complained of or too wide, the tables are sorted, and pictures lie over one another.
// Takes some 10 s.
func TestInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	photo := sample.Photo()
	dir := folder(t, map[string][]byte{
		"photo.jpg": photo, "logo.png": sample.Logo(), "film.gif": sample.Animation(), "screenshot.png": sample.Screenshot(),
		"cut.jpg": photo[:len(photo)/2], "page.jpg": []byte("<!doctype html><title>404</title>"),
		strings.ReplaceAll(hostile, "/", "-") + strings.Repeat("long", 30) + ".jpg": photo,
	})
	found, err := collect(t, DefaultLimits(), dir, filepath.Join(dir, "nowhere.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	job := newJob(header.AVIF, header.WebP)
	job.Pictures = int64(2 * len(photo)) // some pictures are smaller copies
	_, _, report := page(t, found.Items, job)
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}

	b := openBrowser(t, "file://"+file)
	b.media(1280, false)
	b.do(chromedp.Navigate(b.page))
	for _, width := range []int64{360, 768, 1280} {
		for _, dark := range []bool{false, true} {
			b.media(width, dark)
			if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("at %d px the page is %d px too wide", width, over)
			}
			b.shoot(map[bool]string{false: "light", true: "dark"}[dark] + "-" + map[int64]string{360: "phone", 768: "tablet", 1280: "desktop"}[width])
		}
	}
	if n := eval[int](b, `Promise.all([...document.images].map((i) => i.decode())).then(() => [...document.images].filter((i) => i.naturalWidth > 0).length)`); n != 10 {
		t.Errorf("%d pictures are shown, not 10", n)
	}
	const firsts = `[...document.querySelectorAll("table.all tbody tr")].map((r) => r.cells[3].dataset.v)`
	sorted := eval[[]string](b, `[...document.querySelectorAll("table.all th button")].find((x) => x.textContent === "before").click(), `+firsts)
	back := eval[[]string](b, `[...document.querySelectorAll("table.all th button")].find((x) => x.textContent === "before").click(), `+firsts)
	for i := 1; i < len(sorted); i++ {
		if eval[bool](b, sorted[i-1]+" < "+sorted[i]) || eval[bool](b, back[i-1]+" > "+back[i]) {
			t.Errorf("not sorted: %q, %q", sorted, back)
		}
	}
	if len(sorted) != 8 || sorted[0] == sorted[7] {
		t.Errorf("%q", sorted)
	}
	if !eval[bool](b, `document.querySelector(".tools button").click(), document.querySelector(".tools input").checkVisibility()`) {
		t.Error("no slider")
	}
	same := eval[bool](b, `(() => { const [x, y] = [...document.querySelector(".pair.over").querySelectorAll("img")].map((i) => i.getBoundingClientRect());
		return x.top === y.top && x.left === y.left && x.width === y.width && x.height === y.height && x.width > 0; })()`)
	cut := eval[string](b, `(() => { const r = document.querySelector(".tools input"); r.value = 30; r.dispatchEvent(new Event("input"));
		return getComputedStyle(document.querySelector(".pair.over .after img")).clipPath; })()`)
	if !same || !strings.Contains(cut, "30%") {
		t.Errorf("one over the other: %t, cut %q", same, cut)
	}
	b.media(1280, false)
	b.shoot("over")
	b.do(chromedp.Navigate("about:blank"))
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		if c != "a request: about:blank" {
			t.Error(c)
		}
	}
}
