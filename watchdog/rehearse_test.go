package watchdog_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"karui/watchdog"
	"karui/watchdog/event"
)

// edge serves viewer_url by the order in effect, and fails over.
func (l *lab) edge(host string) {
	l.serve(host, func(w http.ResponseWriter, _ *http.Request) {
		l.mu.Lock()
		proxy := l.servers["karui.example.com"] != nil
		l.mu.Unlock()
		w.Header().Set("X-Cache", "Miss from cloudfront")
		doc, _ := l.Deployed("ESHOP")
		if proxy && orderOf(doc) == event.OrderProxy {
			w.Header().Set("X-Karui", "hit")
			w.Header().Set("ETag", `"k-0123456789abcdef"`)
			return
		}
		w.Header().Set("ETag", `"original"`)
	})
	l.config.Sites[0].ViewerURL = "http://" + host + "/images/logo.jpg"
}

// points are those that are not passed, by name; the lab has no mail.
func points(r watchdog.Rehearsal) map[string]watchdog.Point {
	odd := map[string]watchdog.Point{}
	for _, p := range r.Points {
		if p.Status != watchdog.Pass && p.Name != "mail" {
			odd[p.Name] = p
		}
	}
	return odd
}

// What is well is said once for behaviours that are alike, and each look is told of
// before it begins.
func TestARehearsalIsShortAndNeverSilent(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.edge("www.example.com")
		doc := string(shopXML(t))
		one := doc[strings.Index(doc, "<CacheBehavior><"):strings.Index(doc, "</Items></CacheBehaviors>")]
		two := one + strings.Replace(one, "/images/*", "/photos/*", 1)
		doc = strings.Replace(doc, "<CacheBehaviors><Quantity>1</Quantity><Items>"+one, "<CacheBehaviors><Quantity>2</Quantity><Items>"+two, 1)
		l.must(l.PutDistribution("ESHOP", []byte(doc)))
		w := l.watchdog()
		defer w.Close()
		var told []string
		r, err := w.Rehearse(ctx, "shop", watchdog.Rehearse{
			NoWrite:  true,
			Begin:    func(text string) { told = append(told, text) },
			Progress: func(p watchdog.Point) { told = append(told, p.Name) },
		})
		l.must(err)
		for _, name := range []string{"cache_key", "lifetimes"} {
			found := ""
			for _, p := range r.Points {
				if p.Name == name {
					found += p.Text + "\n"
				}
			}
			if strings.Count(found, "\n") != 1 || !strings.HasPrefix(found, "2 behaviours (/images/*, /photos/*): ") {
				t.Errorf("%s:\n%s", name, found)
			}
		}
		for _, p := range r.Points {
			if p.Name == "viewer" && !strings.HasSuffix(p.Text, ` "k-0123456789abcdef"`) {
				t.Errorf("%+v", p)
			}
		}
		if len(told) == 0 || !strings.Contains(told[0], "STS") || !strings.Contains(strings.Join(told, ";"), ";reading distribution ESHOP;read;") {
			t.Errorf("%q", told)
		}
	})
}

// A proxy that dies in a rehearsal is taken out as soon as the rehearsal has put
// the order back, before all is proved; and what fails names the proxy.
func TestProxyDiesInARehearsal(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.edge("www.example.com")
		l.config.Interval = 2 * time.Minute
		running, cancel := context.WithCancel(ctx)
		var wait sync.WaitGroup
		daemon, command := l.watchdog(), l.watchdog()
		wait.Go(func() { daemon.Run(running, nil) })
		time.Sleep(time.Minute)
		atRestore, atEnd := 0, 0
		r, err := command.Rehearse(ctx, "shop", watchdog.Rehearse{Swap: true, Progress: func(p watchdog.Point) {
			switch p.Name {
			case "swap_degrade":
				l.stop("karui.example.com")
			case "swap_restore":
				atRestore = l.updates()
			case "swap_viewer_variant":
				atEnd = l.updates()
			}
		}})
		l.must(err)
		time.Sleep(time.Minute)
		cancel()
		wait.Wait()
		daemon.Close()
		command.Close()
		odd := points(r)
		last := odd["swap_viewer_variant"]
		if len(odd) != 1 || last.Status != watchdog.Fail || !strings.Contains(last.Text, "the proxy does not answer: connection refused") || strings.Contains(last.Hint, "X-Karui-Key") {
			t.Errorf("%+v", odd)
		}
		if atRestore != 3 || atEnd != 4 {
			t.Errorf("%d updates at the restore, %d at the end: the daemon was kept from acting", atRestore, atEnd)
		}
		l.wantTold(event.Degrade)
	})
}

// What a killed rehearsal left is settled by a round, and the next rehearsal says so.
func TestAfterAKilledRehearsal(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.edge("www.example.com")
		l.check(ctx)
		again := func(restored bool) watchdog.Rehearsal {
			w := l.watchdog()
			defer w.Close()
			running, kill := context.WithCancel(ctx)
			defer kill()
			r, err := w.Rehearse(running, "shop", watchdog.Rehearse{Swap: true, Progress: func(p watchdog.Point) {
				if p.Name == "swap_degrade" && !restored {
					// As if it had been killed: nothing can be put back any more.
					l.Deny(roleARN, "cloudfront:UpdateDistribution")
					kill()
				}
			}})
			l.must(err)
			l.Allow(roleARN, "cloudfront:UpdateDistribution")
			return r
		}
		again(false)
		if l.order() != event.OrderDirect {
			t.Fatal("put back")
		}
		if p := points(again(true))["swap"]; p.Status != watchdog.Fail || !strings.Contains(p.Hint, "'karui-watchdog check'") {
			t.Errorf("while degraded: %+v", p)
		}
		l.must(l.PutDistribution("ESHOP", shopXML(t))) // somebody puts the order back by hand
		if p := points(again(true))["swap"]; p.Status != watchdog.Fail || !strings.Contains(p.Text, "has not been settled") || !strings.Contains(p.Hint, "'karui-watchdog check'") {
			t.Errorf("not settled: %+v", p)
		}
		l.check(ctx)
		if odd := points(again(true)); len(odd) != 0 {
			t.Errorf("after a check: %+v", odd)
		}
	})
}
