package browsertest

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Visit goes to an address, and waits until something there is visible, by its selector.
func (b *Browser) Visit(address, visible string) {
	b.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	b.hosts[u.Host] = true
	b.mu.Unlock()
	b.Do(chromedp.Navigate(address), chromedp.WaitVisible(visible))
}

// Leave goes to an empty page, so that the server of the page before can end unnoticed.
func (b *Browser) Leave() {
	b.t.Helper()
	b.Do(chromedp.Navigate("about:blank"))
}

// Quiet fails the test for what no page may do: throw an exception, write to the
// console, have errors or warnings in the browser's log, crash, or ask a host that was
// not visited.
func (b *Browser) Quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		b.t.Error(c)
	}
}

// heard collects it.
func (b *Browser) heard(event any) {
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
		expected := slices.ContainsFunc(b.options.Expected, func(part string) bool { return strings.Contains(e.Entry.Text, part) })
		if !expected && (e.Entry.Level == "error" || e.Entry.Level == "warning") {
			b.complain("log: " + e.Entry.Text + " " + e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Scheme != "data" && u.Scheme != "blob" && !b.visited(u.Host) {
			b.complain("request to another host: " + e.Request.URL)
		}
	}
}

func (b *Browser) visited(host string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hosts[host]
}

func (b *Browser) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, text)
}
