package purging

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/chromedp/chromedp"

	"karui/internal/api"
	"karui/internal/browsertest"
	double "karui/internal/cloudfront"
	"karui/internal/invalidation"
)

// openBrowser opens the page in a language. That a token is refused is said by the
// browser, too, as every answer of such a status.
func openBrowser(t *testing.T, page, language string) *browsertest.Browser {
	t.Helper()
	b := browsertest.Open(t, browsertest.Options{Language: language, Expected: []string{"the server responded with a status of"}, Shots: "KARUI_PURGE_SHOTS"})
	b.Visit(page, "#token")
	return b
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
	s := serve(t)
	b := openBrowser(t, s.url, "en")

	b.Look("1-token")
	b.Do(chromedp.SendKeys("#token", "guess-0123\n"))
	b.Until(`document.getElementById('enter-error').textContent.includes('none of admin.tokens')`)
	b.Do(chromedp.SendKeys("#token", "token-shop-not\n"))
	b.Until(`document.getElementById('enter-error').textContent.includes('lacks the right purge')`)
	b.Do(chromedp.SendKeys("#token", "token-shop-may\n"), chromedp.WaitVisible("#prefixes"))
	if names := browsertest.Eval[string](b, `[...document.querySelectorAll('#site option')].map(o => o.value).join(' ')`); names != "shop" {
		t.Errorf("the sites are %q", names)
	}
	b.Look("1b-form")
	if got := browsertest.Eval[string](b, `document.querySelector('a[href="/status"]').innerText + '|' + document.getElementById('about-edge').hidden`); got != "Status|false" {
		t.Errorf("the link to the status and the words about the edge: %s", got)
	}

	b.Do(chromedp.Click("#ask-button"))
	b.Until(`document.getElementById('ask-error').textContent !== ''`)
	b.Do(chromedp.SendKeys("#prefixes", "images/a.jpg"), chromedp.Click("#ask-button"))
	b.Until(`document.getElementById('ask-error').textContent.includes('does not begin with a slash')`)
	browsertest.Eval[bool](b, `(() => { document.getElementById('prefixes').value = '/images/spring/\nhttps://www.example.com/写真/ロゴ.png?v=2'; return true })()`)
	b.Do(chromedp.Click("#ask-button"))
	b.Until(`document.querySelector('#purges li[data-state=running]')`)
	b.Look("2-under-way")
	b.Until(`document.querySelector('#purges li[data-state=done]')`)
	if text := browsertest.Eval[string](b, `document.querySelector('#purges li').innerText`); !strings.Contains(text, "/写真/ロゴ.png") || !strings.Contains(text, "Purged at karui and at CloudFront (E123SHOP)") || !strings.Contains(text, "shop-may") {
		t.Errorf("it says %q", text)
	}
	if paths := s.Invalidations(shopID); len(paths) != 1 || len(paths[0].Paths) != 3 {
		t.Errorf("%+v", paths)
	}

	// A whole site is asked about.
	browsertest.Eval[bool](b, `(() => { document.getElementById('prefixes').value = 'https://www.example.com/*'; return true })()`)
	b.Do(chromedp.Click("#ask-button"), chromedp.WaitVisible("#sure"))
	b.Look("3-sure")
	b.Do(chromedp.Click("#sure-no"))
	b.Until(`!document.getElementById('sure').open`)
	if n := len(s.asks()); n != 1 {
		t.Errorf("the proxy was asked %d times", n)
	}
	b.Do(chromedp.Click("#ask-button"), chromedp.WaitVisible("#sure"), chromedp.Click("#sure-yes"))
	b.Until(`document.querySelectorAll('#purges li').length === 2`)

	// A failure says what to do.
	s.Deny(roleARN, "cloudfront:CreateInvalidation")
	browsertest.Eval[bool](b, `(() => { document.getElementById('prefixes').value = '/a/\n/b/'; return true })()`)
	b.Do(chromedp.Click("#ask-button"))
	b.Until(`document.querySelector('#purges li[data-state=failed]')`)
	if text := browsertest.Eval[string](b, `document.querySelector('#purges li').innerText`); !strings.Contains(text, "add cloudfront:CreateInvalidation to the policy of "+roleARN) {
		t.Errorf("it says %q", text)
	}
	b.Look("4-failed")

	// The token is of this tab: it outlives a reload, and nothing outlives its removal.
	b.Do(chromedp.Reload(), chromedp.WaitVisible("#prefixes"))
	if where := browsertest.Eval[string](b, `[sessionStorage.getItem('karui-token'), localStorage.length, document.cookie].join('|')`); where != "token-shop-may|0|" {
		t.Errorf("the token lies in %q", where)
	}
	b.Do(chromedp.Click("#leave"), chromedp.WaitVisible("#token"))
	if n := browsertest.Eval[int](b, `sessionStorage.length`); n != 0 {
		t.Error("the token was not forgotten")
	}
	b.Do(chromedp.SendKeys("#token", "token-all-may\n"), chromedp.WaitVisible("#prefixes"))
	b.Do(chromedp.SetValue("#site", "plain"))
	browsertest.Eval[bool](b, `document.getElementById('site').dispatchEvent(new Event('change'))`)
	b.Until(`document.getElementById('edge-field').hidden && !document.getElementById('no-edge').hidden && document.getElementById('about-edge').hidden`)

	b.Quiet()
}

func (s *served) asks() [][]string {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	return s.proxy.asked
}

func TestBrowserInJapanese(t *testing.T) {
	s := serve(t)
	b := openBrowser(t, s.url, "ja")
	b.Do(chromedp.SendKeys("#token", "token-shop-may\n"), chromedp.WaitVisible("#prefixes"))
	b.Do(chromedp.SendKeys("#prefixes", "/images/"), chromedp.Click("#ask-button"))
	b.Until(`document.querySelector('#purges li[data-state=done]')`)
	if text := browsertest.Eval[string](b, `document.body.innerText`); !strings.Contains(text, "karui と CloudFront（E123SHOP）から消しました。") || !strings.Contains(text, "パージの状況") {
		t.Errorf("it says %q", text)
	}
	b.Look("5-japanese")
	b.Quiet()
}
