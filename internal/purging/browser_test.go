package purging

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"karui/internal/api"
	double "karui/internal/cloudfront"
	"karui/internal/invalidation"
)

// stepLimit bounds one thing that the browser is asked to do. It is a busy machine's.
const stepLimit = time.Minute

// browser is Debian's chromium on one page, with its complaints.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

func openBrowser(t *testing.T, site, tongue string) *browser {
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
	allocator, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("accept-lang", tongue), chromedp.Flag("lang", tongue))...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until the browser has ended
		cancel()
		stop()
		eventually(t, "the browser's profile is gone", func() bool { return os.RemoveAll(profile) == nil })
	})
	if err := chromedp.Listen(ctx, b.heard(u.Host)); err != nil {
		t.Fatal(err)
	}
	limited, end := context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(end)
	b.ctx = limited
	t.Cleanup(func() {
		if t.Failed() {
			state, err := chromedp.Run(context.WithoutCancel(b.ctx), chromedp.Evaluate[string](`document.body.innerText`))
			t.Logf("the page now (%v):\n%s", err, state)
		}
	})
	call(b, network.Enable, network.EnableParams{})
	call(b, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": tongue}})
	b.do(chromedp.Navigate(site))
	return b
}

// heard collects what should not happen on the page. That a token is refused is said
// by the browser, too, as every answer of such a status.
func (b *browser) heard(host string) func(any) {
	return func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			words, _ := json.Marshal(e.ExceptionDetails)
			b.complain("exception: " + string(words))
		case *runtime.EventConsoleAPICalled:
			words, _ := json.Marshal(e.Args)
			b.complain("console: " + string(words))
		case *log.EventEntryAdded:
			if (e.Entry.Level == "error" || e.Entry.Level == "warning") && !strings.Contains(e.Entry.Text, "the server responded with a status of") {
				b.complain("log: " + e.Entry.Text + " " + e.Entry.URL)
			}
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(e.Request.URL); err != nil || u.Host != host {
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

func call[P, R any](b *browser, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

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

func (b *browser) until(expression string) {
	b.t.Helper()
	eventually(b.t, expression, func() bool { return eval[bool](b, `Boolean(`+expression+`)`) })
}

// media sets how the page is shown.
func (b *browser) media(width int64, dark bool) {
	b.t.Helper()
	scheme := map[bool]string{false: "light", true: "dark"}[dark]
	b.do(chromedp.EmulateViewport(width, 900))
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// looked checks widths and contrast, and keeps pictures where KARUI_PURGE_SHOTS says so.
func (b *browser) looked(name string) {
	b.t.Helper()
	for _, width := range []int64{360, 1280} {
		for _, dark := range []bool{false, true} {
			b.media(width, dark)
			if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				b.t.Errorf("%s at %d px is %d px too wide", name, width, over)
			}
			for _, problem := range eval[[]string](b, contrastScript) {
				b.t.Errorf("%s, dark %v: %s", name, dark, problem)
			}
			dir := os.Getenv("KARUI_PURGE_SHOTS")
			if dir == "" {
				continue
			}
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
		if (!walk.currentNode.textContent.trim() || e.closest('.hidden, noscript, .skip, [hidden], dialog:not([open])')) continue;
		const g = ground(e), t = over(rgba(getComputedStyle(e).color), g);
		const [a, b] = [light(g), light(t)].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5) out.add(ratio.toFixed(2) + ' to 1: ' + e.className + ' ' + e.tagName + ' ' + walk.currentNode.textContent.trim().slice(0, 40));
	}
	return [...out];
})()`

// namesScript looks for names, labels and what descriptions refer to.
const namesScript = `(() => {
	const out = [];
	const name = (e) => (e.getAttribute('aria-label') || (e.labels && [...e.labels].map(l => l.textContent).join(' ')) || e.textContent || '').trim();
	for (const e of document.querySelectorAll('button, a, input, select, textarea, progress')) if (!name(e)) out.push('no name: ' + e.outerHTML);
	for (const e of document.querySelectorAll('[aria-labelledby], [aria-describedby]'))
		for (const id of ((e.getAttribute('aria-labelledby') || '') + ' ' + (e.getAttribute('aria-describedby') || '')).trim().split(/\s+/))
			if (!document.getElementById(id)) out.push('nothing has the id ' + id);
	const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
	for (const id of new Set(ids)) if (ids.filter(i => i === id).length > 1) out.push('id twice: ' + id);
	return out;
})()`

// eventually waits for something to become true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	limit := time.NewTimer(stepLimit)
	defer limit.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for !done() {
		select {
		case <-look.C:
		case <-limit.C:
			t.Fatalf("not within %s: %s", stepLimit, what)
		}
	}
}

// served is the page with an API of tokens before a double, in real time.
type served struct {
	*Service
	*double.Double
	url   string
	proxy *proxy
}

func serve(t *testing.T) *served {
	t.Helper()
	document, err := os.ReadFile("../cloudfront/testdata/shop.xml")
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s := &served{Double: double.New(double.Options{InvalidationDelay: 3 * time.Second}), proxy: &proxy{}}
	must(s.PutCachePolicy(double.CachePolicy{ID: "b2884449-e4de-46a7-ac36-70bc7f1ddd6d", Name: "images", Headers: []string{"Accept"}}))
	must(s.PutDistribution(shopID, document))
	user, err := s.AddUser("karui", double.AllowAll)
	must(err)
	_, err = s.PutRole(double.Role{Name: "karui-purge", ExternalID: "external-17", Policy: policy})
	must(err)
	control, err := s.Start("127.0.0.1:0")
	must(err)
	target := invalidation.Target{Distribution: shopID, RoleARN: roleARN, ExternalID: "external-17"}
	transport := &http.Transport{}
	s.Service = New(Options{
		Proxy: s.proxy, Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Sites: func() []Site {
			return []Site{{ID: "shop", Target: target, Queries: true}, {ID: "blog", Target: target}, {ID: "plain"}}
		},
		Connect: func(_ context.Context, t invalidation.Target) (Distribution, error) {
			return invalidation.New(aws.Config{
				BaseEndpoint: &control.URL, HTTPClient: &http.Client{Transport: transport, Timeout: 15 * time.Second},
				Credentials: credentials.NewStaticCredentialsProvider(user.AccessKeyID, user.SecretAccessKey, ""),
			}, t), nil
		},
	})
	page, err := Page(slog.New(slog.DiscardHandler))
	must(err)
	mux := http.NewServeMux()
	mux.Handle(Path, page)
	mux.Handle(Path+"/", page)
	mux.Handle(api.Prefix+"/", api.New(api.Options{Routes: s.Routes(), Tokens: who(), Log: slog.New(slog.DiscardHandler)}))
	server := httptest.NewServer(mux)
	s.url = server.URL + Path
	t.Cleanup(func() {
		server.Close()
		s.Service.Close()
		transport.CloseIdleConnections()
		must(control.Close(context.Background()))
	})
	return s
}

// TestBrowser does in a real browser what the staff of a site does. It takes about 15 s.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s")
	}
	s := serve(t)
	b := openBrowser(t, s.url, "en")

	b.do(chromedp.WaitVisible("#token"))
	b.looked("1-token")
	b.do(chromedp.SendKeys("#token", "guess-0123\n"))
	b.until(`document.getElementById('enter-error').textContent.includes('none of admin.tokens')`)
	b.do(chromedp.SendKeys("#token", "token-shop-not\n"))
	b.until(`document.getElementById('enter-error').textContent.includes('lacks the right purge')`)
	b.do(chromedp.SendKeys("#token", "token-shop-may\n"), chromedp.WaitVisible("#prefixes"))
	if names := eval[string](b, `[...document.querySelectorAll('#site option')].map(o => o.value).join(' ')`); names != "shop" {
		t.Errorf("the sites are %q", names)
	}
	for _, problem := range eval[[]string](b, namesScript) {
		t.Error(problem)
	}

	b.do(chromedp.Click("#ask-button"))
	b.until(`document.getElementById('ask-error').textContent !== ''`)
	b.do(chromedp.SendKeys("#prefixes", "images/a.jpg"), chromedp.Click("#ask-button"))
	b.until(`document.getElementById('ask-error').textContent.includes('does not begin with a slash')`)
	eval[bool](b, `(() => { document.getElementById('prefixes').value = '/images/spring/\nhttps://www.example.com/写真/ロゴ.png?v=2'; return true })()`)
	b.do(chromedp.Click("#ask-button"))
	b.until(`document.querySelector('#purges li[data-state=running]')`)
	b.looked("2-under-way")
	b.until(`document.querySelector('#purges li[data-state=done]')`)
	if text := eval[string](b, `document.querySelector('#purges li').innerText`); !strings.Contains(text, "/写真/ロゴ.png") || !strings.Contains(text, "Purged at karui and at CloudFront (E123SHOP)") || !strings.Contains(text, "shop-may") {
		t.Errorf("it says %q", text)
	}
	if paths := s.Invalidations(shopID); len(paths) != 1 || len(paths[0].Paths) != 3 {
		t.Errorf("%+v", paths)
	}

	// A whole site is asked about.
	eval[bool](b, `(() => { document.getElementById('prefixes').value = 'https://www.example.com/*'; return true })()`)
	b.do(chromedp.Click("#ask-button"), chromedp.WaitVisible("#sure"))
	b.looked("3-sure")
	b.do(chromedp.Click("#sure-no"))
	b.until(`!document.getElementById('sure').open`)
	if n := len(s.asks()); n != 1 {
		t.Errorf("the proxy was asked %d times", n)
	}
	b.do(chromedp.Click("#ask-button"), chromedp.WaitVisible("#sure"), chromedp.Click("#sure-yes"))
	b.until(`document.querySelectorAll('#purges li').length === 2`)

	// A failure says what to do.
	s.Deny(roleARN, "cloudfront:CreateInvalidation")
	eval[bool](b, `(() => { document.getElementById('prefixes').value = '/a/\n/b/'; return true })()`)
	b.do(chromedp.Click("#ask-button"))
	b.until(`document.querySelector('#purges li[data-state=failed]')`)
	if text := eval[string](b, `document.querySelector('#purges li').innerText`); !strings.Contains(text, "add cloudfront:CreateInvalidation to the policy of "+roleARN) {
		t.Errorf("it says %q", text)
	}
	b.looked("4-failed")

	// The token is of this tab: it outlives a reload, and nothing outlives its removal.
	b.do(chromedp.Reload(), chromedp.WaitVisible("#prefixes"))
	if where := eval[string](b, `[sessionStorage.getItem('karui-token'), localStorage.length, document.cookie].join('|')`); where != "token-shop-may|0|" {
		t.Errorf("the token lies in %q", where)
	}
	b.do(chromedp.Click("#leave"), chromedp.WaitVisible("#token"))
	if n := eval[int](b, `sessionStorage.length`); n != 0 {
		t.Error("the token was not forgotten")
	}
	b.do(chromedp.SendKeys("#token", "token-all-may\n"), chromedp.WaitVisible("#prefixes"))
	b.do(chromedp.SetValue("#site", "plain"))
	eval[bool](b, `document.getElementById('site').dispatchEvent(new Event('change'))`)
	b.until(`document.getElementById('edge-field').hidden && !document.getElementById('no-edge').hidden`)

	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		t.Error(c)
	}
}

func (s *served) asks() [][]string {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	return s.proxy.asked
}

func TestBrowserInJapanese(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	s := serve(t)
	b := openBrowser(t, s.url, "ja")
	b.do(chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", "token-shop-may\n"), chromedp.WaitVisible("#prefixes"))
	b.do(chromedp.SendKeys("#prefixes", "/images/"), chromedp.Click("#ask-button"))
	b.until(`document.querySelector('#purges li[data-state=done]')`)
	if text := eval[string](b, `document.body.innerText`); !strings.Contains(text, "karui と CloudFront（E123SHOP）から消しました。") || !strings.Contains(text, "パージの状況") {
		t.Errorf("it says %q", text)
	}
	b.looked("5-japanese")
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		t.Error(c)
	}
}
