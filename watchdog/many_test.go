package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"karui/watchdog/event"
	"karui/watchdog/machine"
	"karui/watchdog/settings"
)

// many gives the lab n sites, each with a distribution and a proxy of its own.
func (l *lab) many(n int) {
	l.t.Helper()
	doc := shopXML(l.t)
	l.config.Sites = nil
	for i := range n {
		id := fmt.Sprintf("ESITE%d", i)
		l.must(l.PutDistribution(id, doc))
		s := shop(fmt.Sprintf("site-%d", i), id)
		s.PingURL = fmt.Sprintf("http://karui-%d.example.com/ping.jpg", i)
		l.config.Sites = append(l.config.Sites, s)
	}
}

// A thousand sites in one process in one round: a tenth of them down in every
// way there is, and nobody waits for anybody.
func TestAThousandSites(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand clients of AWS take some seconds")
	}
	inLab(t, func(ctx context.Context, l *lab) {
		const n = manySites
		l.many(n)
		var hanging atomic.Int32
		l.serve("hangs", func(w http.ResponseWriter, r *http.Request) {
			hanging.Add(1)
			hang(w, r)
		})
		l.serve("well", ping)
		l.mu.Lock()
		for i := range n {
			host := fmt.Sprintf("karui-%d.example.com", i)
			switch i % 10 {
			case 3:
				l.servers[host] = l.servers["hangs"]
			default:
				l.servers[host] = l.servers["well"]
			}
		}
		l.mu.Unlock()
		l.SetLatency("GetDistributionConfig", 200*time.Millisecond)
		w := l.watchdog()
		defer w.Close()
		start := time.Now()
		results, errs := w.Check(ctx)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		down := 0
		for i, r := range results {
			want := machine.Up
			if i%10 == 3 {
				want = machine.Down
				down++
			}
			if r.Health != want || (r.Order == event.OrderDirect) != (want == machine.Down) {
				t.Fatalf("%s: %+v", r.Site, r)
			}
			// A site that is well takes its ping and one read, whatever the others do.
			if limit := 10 * time.Second; want == machine.Up && r.Round.Took > limit {
				t.Errorf("%s waited %s", r.Site, r.Round.Took)
			}
		}
		if down != n/10 || len(l.outbox.all()) != down {
			t.Errorf("%d down, %d told", down, len(l.outbox.all()))
		}
		// Five pings of 6 s, the last one's timeout, the swaps' calls, and Deployed.
		if took := time.Since(start); took > 60*time.Second {
			t.Errorf("the round took %s", took)
		}
		if c := l.dialled("control.example.com"); c > 5 {
			t.Errorf("the control was asked %d times", c)
		}
	})
}

func TestOneSlowSiteDelaysNobody(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.many(3)
		l.serve("karui-0.example.com", hang)
		l.serve("karui-1.example.com", ping)
		l.serve("karui-2.example.com", ping)
		l.serve("slow.example.com", hang)
		l.config.Sites[0].OriginURL = "http://slow.example.com/"
		l.watch(ctx, 31*time.Minute)
		for _, host := range []string{"karui-1.example.com", "karui-2.example.com"} {
			if n := l.dialled(host); n < 6 || n > 7 {
				t.Errorf("%s was asked %d times in 31 minutes", host, n)
			}
		}
	})
}

// While one site waits for CloudFront to deploy, rounds go on, its own too.
func TestWaitingForTheEdgeHoldsUpNothing(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.SetDeployDelay(14 * time.Minute)
		l.stop("karui.example.com")
		l.watch(ctx, 2*time.Minute)
		l.serve("karui.example.com", ping)
		before := l.dialled("karui.example.com")
		l.watch(ctx, 11*time.Minute)
		if n := l.dialled("karui.example.com") - before; n < 2 || l.order() != event.OrderProxy {
			t.Errorf("%d rounds, %s", n, l.order())
		}
	})
}

func TestFlappingIsDampedAndTold(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.config.Sites[0].MaxSwapsPerDay = 5
		for range 30 {
			l.stop("karui.example.com")
			l.check(ctx)
			l.serve("karui.example.com", ping)
			for range 4 {
				<-time.After(5 * time.Minute)
				l.check(ctx)
			}
		}
		if l.updates() > 5+5 { // in 11 hours, and the day's window is 24
			t.Errorf("%d updates", l.updates())
		}
		counts := map[event.Kind]int{}
		for _, e := range l.outbox.all() {
			counts[e.Kind]++
		}
		if counts[event.Flapping] != 1 || counts[event.Capped] != 1 || l.order() != event.OrderDirect {
			t.Errorf("%v, %s", counts, l.order())
		}
	})
}

func TestDailyReminder(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.config.Interval = time.Hour
		l.config.Sites[0].Restore = settings.Manual
		l.stop("karui.example.com")
		l.watch(ctx, 77*time.Hour)
		l.wantTold(event.Degrade, event.Reminder, event.Reminder, event.Reminder)
		if e := l.outbox.all()[3]; e.ReplyTo != l.outbox.all()[0].ID || e.DegradedSince.IsZero() {
			t.Errorf("%+v", e)
		}
	})
}

func TestStatusPage(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.stop("karui.example.com")
		l.check(ctx)
		w := l.watchdog()
		defer w.Close()
		s := w.Status()
		if len(s.Sites) != 1 || !strings.Contains(s.Sites[0].Words, "DOWN and degraded") || s.Sites[0].Late || s.Sites[0].Degraded.IsZero() {
			t.Errorf("%+v", s)
		}
		<-time.After(time.Hour)
		if s := w.Status(); !s.Sites[0].Late || !strings.Contains(s.Sites[0].Words, "is the watchdog running?") {
			t.Errorf("%+v", s)
		}
	})
}
