// Package browsertest looks at karui's pages in a real browser, Debian's chromium,
// for tests alone.
//
// Guaranteed: chromium, whatever it started and its profile are gone when the test has
// ended, also where the test failed or was killed; it is bare of the profile and the
// extensions of whoever runs the test. Everything that is asked of it, and every wait,
// ends within Limit, and all of them before the test binary's own time is up, so that a
// test that fails can tell what the page showed. A wait is for a condition, never for a
// time. Where chromium is not installed, and with -short, the test is skipped and says
// why.
//
// Not guaranteed: that other browsers show the same, and that a page which passes Look
// is pleasant: it finds what can be measured.
package browsertest

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// Limit bounds one thing that the browser is asked to do, and one wait. A busy machine
// takes a second for what an idle one does in 10 ms.
const Limit = 2 * time.Minute

// spare is left of the test binary's time to tell what was wrong, and to end the browser.
const spare = 30 * time.Second

// Options are a page's peculiarities. The zero value is good.
type Options struct {
	// Language is the one that the browser asks for, such as ja; empty is chromium's own.
	Language string
	// Expected are parts of entries in the browser's log that are no complaints: it has
	// one for each answer with status 401, say.
	Expected []string
	// Marks selects shapes of drawings that carry a meaning, for Look. Empty: none.
	Marks string
	// Shots names the environment variable with the folder that Shoot keeps pictures in.
	Shots string
	// State is an expression for a string that is logged of a page whose test failed.
	// Empty: its text.
	State string
}

// Browser is chromium with one page, and what that page was not to do.
type Browser struct {
	t       *testing.T
	ctx     context.Context
	options Options
	output  tail // what chromium itself writes

	mu         sync.Mutex
	hosts      map[string]bool // that were visited
	complaints []string
}

// Open starts chromium until the test ends, and skips the test where there is none.
func Open(t *testing.T, o Options) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes some seconds")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed, so that nothing looks at the page: make setup-test installs it (package chromium)")
	}
	b := &Browser{t: t, options: o, hosts: make(map[string]bool)}
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.CombinedOutput(&b.output))
	if o.Language != "" {
		flags = append(flags, chromedp.Flag("accept-lang", o.Language), chromedp.Flag("lang", o.Language))
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, cancel := chromedp.NewContext(allocator)
	deadline, limited := t.Deadline()
	if !limited {
		deadline = time.Now().Add(time.Hour)
	}
	var end context.CancelFunc
	b.ctx, end = context.WithDeadline(ctx, deadline.Add(-spare))
	t.Cleanup(func() {
		b.explain()
		end()
		limited, end := context.WithTimeout(ctx, spare/2)
		defer end()
		_ = chromedp.Cancel(limited) // asks it to end; what follows kills it
		cancel()
		stop()
	})
	if err := chromedp.Listen(ctx, b.heard); err != nil {
		t.Fatal(err)
	}
	// Its processes live as long as the context of the first call.
	late := time.AfterFunc(Limit, cancel)
	_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	if !late.Stop() || err != nil {
		t.Fatalf("chromium does not start within %s: %v", Limit, err)
	}
	if o.Language != "" {
		Call(b, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": o.Language}})
	}
	return b
}

// explain logs, for a test that failed, all that may tell the cause.
func (b *Browser) explain() {
	if !b.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), spare/3)
	defer cancel()
	expression := b.options.State
	if expression == "" {
		expression = `document.body.innerText.slice(0, 6000)`
	}
	state, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression))
	b.t.Logf("the page now (%v):\n%s", err, state)
	b.mu.Lock()
	last := b.complaints[max(0, len(b.complaints)-20):]
	b.mu.Unlock()
	b.t.Logf("the last of what is complained of:\n%s", strings.Join(last, "\n"))
	b.t.Logf("chromium's own last words:\n%s", b.output.words())
}

// Do does one thing after the other.
func (b *Browser) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Limit)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// Call sends a command of the browser's protocol.
func Call[P, R any](b *Browser, command cdp.Command[P, R], params P) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Limit)
	defer cancel()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

// Eval gives what a JavaScript expression comes to, or its promise.
func Eval[T any](b *Browser, expression string) T {
	b.t.Helper()
	got, err := eval[T](b, expression)
	if err != nil {
		b.t.Fatalf("%v: %s", err, expression)
	}
	return got
}

func eval[T any](b *Browser, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, Limit)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Until waits until a JavaScript expression is true. One that cannot be had, as while
// the page is read anew, is not true yet.
func (b *Browser) Until(expression string) {
	b.t.Helper()
	limit := time.NewTimer(Limit)
	defer limit.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		holds, err := eval[bool](b, `Boolean(`+expression+`)`)
		if holds && err == nil {
			return
		}
		select {
		case <-look.C:
		case <-limit.C:
			b.t.Fatalf("not within %s (%v): %s", Limit, err, expression)
		case <-b.ctx.Done():
			b.t.Fatalf("the time of all tests is nearly up (%v): %s", err, expression)
		}
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// tailSize is how much of it, in bytes.
const tailSize = 16 << 10

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, p...)
	l.kept = slices.Clone(l.kept[max(0, len(l.kept)-tailSize):])
	return len(p), nil
}

// words are the lines that may tell something: a machine without a desktop has no bus.
func (l *tail) words() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := slices.Collect(strings.Lines(string(l.kept)))
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, ":dbus/") }), "")
}
