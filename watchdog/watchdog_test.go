package watchdog_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"karui/watchdog"
	"karui/watchdog/event"
	"karui/watchdog/machine"
	"karui/watchdog/settings"
	"karui/watchdog/store"
)

func TestDownAndBack(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.watch(ctx, 12*time.Minute)
		l.wantTold()
		l.stop("karui.example.com")
		l.watch(ctx, 12*time.Minute)
		l.wantTold(event.Degrade)
		if l.order() != event.OrderDirect || l.updates() != 1 {
			t.Fatalf("%s after %d updates", l.order(), l.updates())
		}
		l.serve("karui.example.com", ping)
		l.watch(ctx, 12*time.Minute)
		l.wantTold(event.Degrade, event.Restore)
		if l.order() != event.OrderProxy || l.updates() != 2 {
			t.Fatalf("%s after %d updates", l.order(), l.updates())
		}
		degrade, restore := l.outbox.all()[0], l.outbox.all()[1]
		if restore.ReplyTo != degrade.ID || restore.ReplyTo == "" {
			t.Errorf("the restore replies to %q, not to %q", restore.ReplyTo, degrade.ID)
		}
		if len(degrade.Probes) != 5 || degrade.Probes[4].Kind != event.FailConnect || degrade.Up || !degrade.Origin.OK || !degrade.Controls[0].OK {
			t.Errorf("probes: %+v", degrade)
		}
		if degrade.Before != event.OrderProxy || degrade.After != event.OrderDirect || degrade.ETagBefore == "" || degrade.ETagAfter == degrade.ETagBefore {
			t.Errorf("order: %+v", degrade)
		}
		if n := len(degrade.Calls); n < 3 || degrade.Calls[n-1].RequestID == "" {
			t.Errorf("calls: %+v", degrade.Calls)
		}
		if restore.Linger == nil || restore.Linger.MaxTTL != 24*time.Hour || restore.Linger.DefaultTTL != time.Hour {
			t.Errorf("linger: %+v", restore.Linger)
		}
		if len(degrade.Commands) == 0 || degrade.Commands[0].Line != "karui-watchdog status shop" {
			t.Errorf("commands: %+v", degrade.Commands)
		}
		l.auditIs("degrade deployed restore deployed")
	})
}

// auditIs checks the actions of the audit log, but for how often "deployed" is
// among them.
func (l *lab) auditIs(want string) {
	l.t.Helper()
	data, err := os.ReadFile(filepath.Join(l.dir, "audit.jsonl"))
	l.must(err)
	var got []string
	for line := range strings.Lines(string(data)) {
		var e store.Entry
		l.must(json.Unmarshal([]byte(line), &e))
		if e.Site == "" || e.Time.IsZero() || e.By == "" || e.Outcome == "" {
			l.t.Errorf("an entry lacks something: %s", line)
		}
		got = append(got, e.Action)
		for _, d := range e.Documents {
			if _, err := os.Stat(d); err != nil {
				l.t.Error(err)
			}
		}
	}
	if text := strings.Join(got, " "); !strings.Contains(text, want) {
		l.t.Errorf("audit: %s, want %s", text, want)
	}
}

func TestARoundIsSwift(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.check(ctx)
		if n := l.dialled("karui.example.com"); n != 1 || l.dialled("origin.example.com") != 0 || l.dialled("control.example.com") != 0 {
			t.Errorf("a normal round cost %d pings, %d and %d others", n, l.dialled("origin.example.com"), l.dialled("control.example.com"))
		}
		l.serve("karui.example.com", hang)
		start := time.Now()
		l.check(ctx)
		calls := l.Calls("UpdateDistribution")
		if len(calls) != 1 {
			t.Fatal("not degraded")
		}
		if took := calls[0].Time.Sub(start); took > 25*time.Second+5*l.config.Ping.Timeout || took < 24*time.Second {
			t.Errorf("the write came after %s", took)
		}
		if n := l.dialled("karui.example.com"); n != 1+5 {
			t.Errorf("%d pings", n-1)
		}
		l.wantTold(event.Degrade)
		if p := l.outbox.all()[0].Probes; p[0].Kind != event.FailTimeout || p[1].At.Sub(p[0].At) != 6*time.Second {
			t.Errorf("%+v", p)
		}
	})
}

func TestManualBothWays(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.config.Sites[0].Degrade, l.config.Sites[0].Restore = settings.Manual, settings.Manual
		l.stop("karui.example.com")
		l.watch(ctx, 20*time.Minute)
		l.wantTold(event.ManualAwaited)
		if e := l.outbox.all()[0]; e.Want != event.OrderDirect || e.Commands[0].Line != "karui-watchdog degrade shop" {
			t.Errorf("%+v", e)
		}
		if l.updates() != 0 {
			t.Fatal("swapped")
		}
		w := l.watchdog()
		moved, err := w.Move(ctx, "shop", event.OrderDirect, "aki")
		l.must(err)
		l.must(w.Arrived(ctx, "shop"))
		w.Close()
		if !moved.Changed || l.order() != event.OrderDirect {
			t.Fatalf("%+v", moved)
		}
		l.wantTold(event.ManualAwaited, event.Degrade)
		if e := l.outbox.all()[1]; e.Actor != event.ActorPerson || e.Person != "aki" || moved.Event != e.ID {
			t.Errorf("%+v", e)
		}
		l.serve("karui.example.com", ping)
		l.watch(ctx, 20*time.Minute)
		l.wantTold(event.ManualAwaited, event.Degrade, event.ManualAwaited)
		w = l.watchdog()
		_, err = w.Move(ctx, "shop", event.OrderProxy, "aki")
		l.must(err)
		w.Close()
		l.watch(ctx, 20*time.Minute)
		l.wantTold(event.ManualAwaited, event.Degrade, event.ManualAwaited, event.Restore)
		if e := l.outbox.all()[3]; e.ReplyTo != l.outbox.all()[1].ID {
			t.Errorf("%+v", e)
		}
		if l.order() != event.OrderProxy || l.updates() != 2 {
			t.Errorf("%s after %d updates", l.order(), l.updates())
		}
	})
}

func TestOriginDownAsWell(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.stop("karui.example.com")
		l.serve("origin.example.com", answer(502))
		l.watch(ctx, 30*time.Minute)
		l.wantTold(event.OriginSilent)
		if l.updates() != 0 {
			t.Error("swapped to a silent origin")
		}
		w := l.watchdog()
		_, err := w.Move(ctx, "shop", event.OrderDirect, "aki")
		w.Close()
		var silent *watchdog.SilentOriginError
		if !errors.As(err, &silent) || l.updates() != 0 {
			t.Errorf("a person could: %v", err)
		}
		l.serve("origin.example.com", answer(404))
		l.watch(ctx, 10*time.Minute)
		l.wantTold(event.OriginSilent, event.Degrade)
	})
}

// A request for the true origin that fails once must not leave viewers without
// images for an interval.
func TestOriginFailsOnce(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		var asked atomic.Int32
		l.serve("origin.example.com", func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) <= 2 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		l.stop("karui.example.com")
		l.check(ctx)
		l.wantTold(event.Degrade)
		if l.order() != event.OrderDirect || asked.Load() != 3 {
			t.Errorf("%s after %d requests", l.order(), asked.Load())
		}
	})
}

func TestOwnNetworkGone(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.watch(ctx, 10*time.Minute)
		l.lose(true)
		l.watch(ctx, 3*time.Hour)
		l.wantTold()
		if l.updates() != 0 {
			t.Error("swapped")
		}
		if s := l.state(); s.State.Health != machine.Up || s.Last.Verdict != machine.Inconclusive {
			t.Errorf("%+v", s)
		}
		l.lose(false)
		l.watch(ctx, 10*time.Minute)
		l.wantTold()
	})
}

// state is the shop's record on disk.
func (l *lab) state() store.Record {
	l.t.Helper()
	st, err := store.Open(l.dir)
	l.must(err)
	rec, err := st.Site("shop").Peek("ESHOP/images: karui, origin")
	l.must(err)
	return rec
}

// A copy of the state directory, made while the write is on its way, is what a
// SIGKILL between the swap and its mail leaves.
func TestKilledBetweenSwapAndMail(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.check(ctx)
		l.stop("karui.example.com")
		killed := filepath.Join(t.TempDir(), "killed")
		l.Before("UpdateDistribution", func() { l.must(os.CopyFS(killed, os.DirFS(l.dir))) })
		l.outbox.set(errFull, false) // nothing of the first process gets out
		l.check(ctx)
		if l.order() != event.OrderDirect {
			t.Fatal("not degraded")
		}
		l.wantTold()
		first := l.dir
		l.dir = killed
		l.outbox.set(nil, false)
		l.watch(ctx, 12*time.Minute)
		l.wantTold(event.Degrade)
		if l.updates() != 1 {
			t.Errorf("%d updates", l.updates())
		}
		// The first process had the same event pending: told under the same ID.
		l.dir = first
		l.check(ctx)
		l.wantTold(event.Degrade)
	})
}

func TestARestartRepeatsAndLosesNothing(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.stop("karui.example.com")
		l.outbox.set(errFull, false)
		l.watch(ctx, 6*time.Minute)
		l.wantTold()
		l.outbox.set(nil, false)
		for range 5 {
			l.watch(ctx, 6*time.Minute)
		}
		l.wantTold(event.Degrade)
		l.serve("karui.example.com", ping)
		for range 5 {
			l.watch(ctx, 6*time.Minute)
		}
		l.wantTold(event.Degrade, event.Restore)
	})
}

func TestLostStateBeginsFromTheDistribution(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.check(ctx)
		l.must(os.WriteFile(filepath.Join(l.dir, "sites", "shop", "state.json"), []byte("{"), 0o600))
		l.check(ctx)
		l.wantTold()
		l.stop("karui.example.com")
		l.check(ctx)
		l.wantTold(event.Degrade)
		l.must(os.WriteFile(filepath.Join(l.dir, "sites", "shop", "state.json"), []byte("{"), 0o600))
		l.check(ctx)
		l.wantTold(event.Degrade, event.Drift)
		if e := l.outbox.all()[1]; !e.FirstSight {
			t.Errorf("%+v", e)
		}
		l.serve("karui.example.com", ping)
		l.check(ctx)
		l.wantTold(event.Degrade, event.Drift, event.Restore)
	})
}

func TestDriftIsTolerated(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.watch(ctx, 6*time.Minute)
		l.must(l.PutDistribution("ESHOP", swapped(t, shopXML(t))))
		l.watch(ctx, 30*time.Minute)
		l.wantTold(event.Drift)
		if l.order() != event.OrderDirect || l.updates() != 0 {
			t.Error("fought")
		}
		l.stop("karui.example.com")
		l.watch(ctx, 12*time.Minute)
		l.serve("karui.example.com", ping)
		l.watch(ctx, 12*time.Minute)
		l.wantTold(event.Drift, event.Restore)
		if l.order() != event.OrderProxy {
			t.Error("not restored after the next change of health")
		}
	})
}

func TestFailedSwapIsToldOnceAndTriedAgain(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.stop("karui.example.com")
		l.Deny(roleARN, "cloudfront:UpdateDistribution")
		l.watch(ctx, 30*time.Minute)
		l.wantTold(event.SwapFailed)
		e := l.outbox.all()[0]
		if e.Failure == nil || e.Failure.Kind != "denied" || !strings.Contains(e.Failure.Hint, "cloudfront:UpdateDistribution") || e.Want != event.OrderDirect {
			t.Errorf("%+v %+v", e, e.Failure)
		}
		l.Allow(roleARN, "cloudfront:UpdateDistribution")
		l.watch(ctx, 12*time.Minute)
		l.wantTold(event.SwapFailed, event.Degrade)
	})
}

// A restore is not made blindly, and that it waits is no secret.
func TestUnreadableOrderHoldsUpARestore(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.stop("karui.example.com")
		l.watch(ctx, 6*time.Minute)
		l.wantTold(event.Degrade)
		l.Deny(roleARN, "cloudfront:GetDistributionConfig")
		l.serve("karui.example.com", ping)
		l.watch(ctx, 30*time.Minute)
		l.wantTold(event.Degrade, event.SwapFailed)
		l.watch(ctx, 24*time.Hour)
		l.wantTold(event.Degrade, event.SwapFailed, event.Reminder)
		for _, e := range l.outbox.all()[1:] {
			if e.Failure == nil || e.Failure.Kind != "denied" || !strings.Contains(e.Failure.Hint, "add cloudfront:GetDistributionConfig") {
				t.Errorf("%s: %+v", e.Kind, e.Failure)
			}
			if e.ReplyTo != l.outbox.all()[0].ID || !e.Up || e.After != event.OrderDirect {
				t.Errorf("%+v", e)
			}
		}
		if e := l.outbox.all()[1]; e.Want != event.OrderProxy {
			t.Errorf("%+v", e)
		}
		l.Allow(roleARN, "cloudfront:GetDistributionConfig")
		l.watch(ctx, 6*time.Minute)
		l.wantTold(event.Degrade, event.SwapFailed, event.Reminder, event.Restore)
	})
}

func TestNotToAnOriginThatFellSilentMeanwhile(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.stop("karui.example.com")
		l.Fail("UpdateDistribution", 6, http.StatusBadRequest, "Throttling", "Rate exceeded")
		go func() {
			time.Sleep(25 * time.Second) // the pings took 24 s
			l.stop("origin.example.com")
		}()
		if r := l.check(ctx)[0]; l.updates() != 0 || l.order() != event.OrderProxy || !strings.Contains(r.Error, "true origin does not answer") {
			t.Fatalf("%s after %d updates, %+v", l.order(), l.updates(), r)
		}
		l.wantTold()
		l.check(ctx)
		l.wantTold(event.OriginSilent)
		l.serve("origin.example.com", answer(200))
		l.Calm()
		l.check(ctx)
		l.wantTold(event.OriginSilent, event.Degrade)
	})
}

// That the watchdog was ended in the middle is nobody's concern: the next one goes on.
func TestEndedInTheMiddleOfASwap(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.stop("karui.example.com")
		l.SetLatency("UpdateDistribution", time.Hour)
		l.watch(ctx, time.Minute)
		if len(l.Calls("UpdateDistribution")) == 0 {
			t.Fatal("not in the middle of a swap")
		}
		l.wantTold()
		l.SetLatency("UpdateDistribution", 0)
		l.watch(ctx, 12*time.Minute)
		l.wantTold(event.Degrade)
	})
}

func TestUndoneDegradeNamesTheCommand(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.stop("karui.example.com")
		l.check(ctx)
		l.must(l.PutDistribution("ESHOP", shopXML(t)))
		l.check(ctx)
		l.wantTold(event.Degrade, event.Drift)
		if e := l.outbox.all()[1]; len(e.Commands) == 0 || e.Commands[0].Line != "karui-watchdog degrade shop" {
			t.Errorf("%+v", e.Commands)
		}
	})
}

func TestInvalidatesAfterRestore(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.config.Sites[0].AfterRestore, l.config.Sites[0].InvalidatePaths = settings.Invalidate, []string{"/images/*"}
		l.stop("karui.example.com")
		l.watch(ctx, 12*time.Minute)
		l.serve("karui.example.com", ping)
		l.watch(ctx, 20*time.Minute)
		l.wantTold(event.Degrade, event.Restore)
		made := l.Invalidations("ESHOP")
		if len(made) != 1 || len(made[0].Paths) != 1 || made[0].Paths[0] != "/images/*" {
			t.Fatalf("%+v", made)
		}
		restored := l.Calls("UpdateDistribution")[1].Time
		if after := made[0].Made.Sub(restored); after < 4*time.Minute {
			t.Errorf("invalidated after %s, before the edge had the order", after)
		}
		if l.state().Deploying != nil {
			t.Error("still waiting")
		}
	})
}

func TestInvalidationSurvivesARestart(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.config.Sites[0].AfterRestore, l.config.Sites[0].InvalidatePaths = settings.Invalidate, []string{"/images/*"}
		l.stop("karui.example.com")
		l.watch(ctx, 12*time.Minute)
		l.serve("karui.example.com", ping)
		l.watch(ctx, time.Minute) // ends before the order has reached the edge
		if l.order() != event.OrderProxy || len(l.Invalidations("ESHOP")) != 0 {
			t.Fatal("not as the test wants it")
		}
		l.watch(ctx, 10*time.Minute)
		if len(l.Invalidations("ESHOP")) != 1 {
			t.Error("forgotten")
		}
	})
}

func TestOneActsAtATime(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.stop("karui.example.com")
		st, err := store.Open(l.dir)
		l.must(err)
		lock, err := st.Site("shop").Lock(ctx, "rehearse shop", 0)
		l.must(err)
		w := l.watchdog()
		results, errs := w.Check(ctx)
		var busy *store.BusyError
		if len(errs) != 1 || !errors.As(errs[0], &busy) || l.updates() != 0 || results[0].Error == "" {
			t.Errorf("%+v %v", results, errs)
		}
		if _, err := w.Move(ctx, "shop", event.OrderDirect, "aki"); !errors.As(err, &busy) {
			t.Error(err)
		}
		lock.Unlock()
		w.Close()
		l.check(ctx)
		l.wantTold(event.Degrade)
	})
}

func TestSecondDaemonStandsBy(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		first, end := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.watch(first, time.Hour)
		}()
		go func() {
			<-time.After(30 * time.Minute)
			end()
		}()
		<-time.After(time.Minute)
		second := l.watchdog()
		defer second.Close()
		before := l.dialled("karui.example.com")
		both, cancel := context.WithTimeout(ctx, 50*time.Minute)
		defer cancel()
		second.Run(both, nil)
		<-ended
		// 30 minutes of the first and 20 of the second, at 5 minutes a round.
		if n := l.dialled("karui.example.com") - before; n < 8 || n > 11 {
			t.Errorf("%d pings", n)
		}
		if !strings.Contains(l.logs.String(), "standing by") {
			t.Error("the second did not say that it waits")
		}
	})
}

func TestNothingEndsRun(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.stop("karui.example.com")
		l.outbox.set(nil, true)
		l.watch(ctx, 12*time.Minute)
		if l.order() != event.OrderDirect || !strings.Contains(l.logs.String(), "a mistake in the program was survived") {
			t.Error("not degraded, or the panic was swallowed")
		}
		l.outbox.set(nil, false)
		l.watch(ctx, 6*time.Minute)
		l.wantTold(event.Degrade)
	})
}

func TestDegradesWithoutADisk(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		w := l.watchdog()
		defer w.Close()
		// Files where directories belong: nothing can be written for the site.
		l.must(os.MkdirAll(filepath.Join(l.dir, "sites", "shop", "state.json"), 0o700))
		l.stop("karui.example.com")
		running, cancel := context.WithTimeout(ctx, 20*time.Minute)
		defer cancel()
		w.Run(running, nil)
		if l.order() != event.OrderDirect || l.updates() != 1 {
			t.Errorf("%s after %d updates", l.order(), l.updates())
		}
		l.wantTold(event.Degrade)
	})
}

// On a disk that takes nothing it degrades, tells so past the outbox and does not
// restore; nothing is told twice.
func TestReadOnlyFromTheStart(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		// A file where the directory belongs, as root writes to directories of any mode.
		l.must(os.WriteFile(l.dir, nil, 0o600))
		l.outbox.set(errFull, false)
		w := l.watchdogAt(store.At(l.dir))
		defer w.Close()
		l.stop("karui.example.com")
		back := time.AfterFunc(20*time.Minute, func() { l.serve("karui.example.com", ping) })
		defer back.Stop()
		running, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		w.Run(running, nil)
		if l.order() != event.OrderDirect || l.updates() != 1 {
			t.Errorf("%s after %d updates", l.order(), l.updates())
		}
		tried := l.outbox.straight()
		if len(tried) != 2 || tried[0].Kind != event.Degrade || tried[1].Kind != event.SwapFailed || tried[1].Failure.Kind != "state" {
			t.Errorf("%+v", tried)
		}
		if s := w.Status(); s.Sites[0].Health != machine.Up || s.Sites[0].Order != event.OrderDirect {
			t.Errorf("%+v", s)
		}
	})
}

func TestDegradesByHandWithoutADisk(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.must(os.WriteFile(l.dir, nil, 0o600))
		l.outbox.set(errFull, false)
		w := l.watchdogAt(store.At(l.dir))
		defer w.Close()
		moved, err := w.Move(ctx, "shop", event.OrderDirect, "aki")
		if err != nil || !moved.Changed || moved.Unwritten == nil || l.order() != event.OrderDirect {
			t.Errorf("%v %+v", err, moved)
		}
		if tried := l.outbox.straight(); len(tried) != 1 || tried[0].Kind != event.Degrade {
			t.Errorf("%+v", tried)
		}
		if _, err = w.Move(ctx, "shop", event.OrderProxy, "aki"); err == nil || l.order() != event.OrderDirect {
			t.Errorf("restored: %v", err)
		}
	})
}

func TestHeartbeatFollowsRounds(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		var beats atomic.Int32
		l.serve("hc.example.com", func(http.ResponseWriter, *http.Request) { beats.Add(1) })
		l.config.HeartbeatURL = "http://hc.example.com/secret"
		l.watch(ctx, 26*time.Minute)
		if n := beats.Load(); n < 5 || n > 6 {
			t.Errorf("%d beats", n)
		}
		l.serve("hc.example.com", answer(500))
		l.watch(ctx, 6*time.Minute)
		if log := l.logs.String(); !strings.Contains(log, "heartbeat failed") || strings.Contains(log, "secret") {
			t.Error("not told, or with its secret")
		}
	})
}

func TestReload(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.must(l.PutDistribution("EBLOG", shopXML(t)))
		w := l.watchdog()
		defer w.Close()
		reload := make(chan settings.Config)
		running, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(running, reload)
		}()
		<-time.After(6 * time.Minute)
		next := l.config
		next.Sites = append(next.Sites[:1:1], shop("blog", "EBLOG"))
		reload <- next
		<-time.After(6 * time.Minute)
		if s := w.Status(); len(s.Sites) != 2 || s.Sites[1].Health != machine.Up {
			t.Errorf("%+v", s)
		}
		next.Sites = next.Sites[1:]
		reload <- next
		<-time.After(time.Second)
		before := l.dialled("karui.example.com")
		<-time.After(20 * time.Minute)
		if n := l.dialled("karui.example.com") - before; n < 3 || n > 5 {
			t.Errorf("%d pings of one site", n)
		}
		cancel()
		<-ended
	})
}

func TestStateDirectoryIsPrivate(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.stop("karui.example.com")
		l.check(ctx)
		l.must(filepath.WalkDir(l.dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s is open to others: %s", path, info.Mode())
			}
			return err
		}))
	})
}
