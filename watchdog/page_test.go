package watchdog_test

import (
	"context"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"karui/watchdog"
	"karui/watchdog/event"
	"karui/watchdog/store"
)

// statusPage gets the page of a watchdog, with its white space and times taken out.
func statusPage(t *testing.T, w *watchdog.Watchdog) string {
	t.Helper()
	rec := httptest.NewRecorder()
	w.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/status", nil))
	if rec.Code != 200 || !strings.Contains(rec.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Fatalf("%d %v", rec.Code, rec.Header())
	}
	return regexp.MustCompile(`\s+`).ReplaceAllString(rec.Body.String(), " ")
}

// holds wants all the words on the page.
func holds(t *testing.T, page string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(page, w) {
			t.Errorf("the page lacks %q:\n%s", w, page)
		}
	}
}

// What rounds found and what was told stands on the page, also after a restart, and
// that of commands and of `check` with it.
func TestThePageTellsTheStory(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		fresh := l.watchdog()
		holds(t, statusPage(t, fresh), "Nothing has been looked at yet", "no round yet", `data-state="not yet"`)
		fresh.Close()
		l.watch(ctx, 16*time.Minute) // up: a round about every five minutes
		l.stop("karui.example.com")
		l.watch(ctx, 11*time.Minute)
		w := l.watchdog()
		rounds := regexp.MustCompile(`shop: last (\d+) rounds: (\d+) up, (\d+) down, 0 inconclusive; 1 move of the order`)
		before := rounds.FindStringSubmatch(statusPage(t, w))
		if before == nil || before[2] == "0" || before[3] == "0" {
			t.Fatalf("%q:\n%s", before, statusPage(t, w))
		}
		holds(t, statusPage(t, w), "1 site is down and degraded", `data-state="degraded"`, "true origin first", "the true origin comes first", "ping 5", "control 1")
		w.Close()

		// Another process: a person, and a round of `check`.
		w = l.watchdog()
		_, err := w.Move(ctx, "shop", event.OrderProxy, "satou")
		l.must(err)
		w.Close()
		l.lose(true)
		l.check(ctx)
		w = l.watchdog()
		defer w.Close()
		holds(t, statusPage(t, w), "the proxy comes first again by satou’s command", "inconclusive", "1 inconclusive; 2 moves of the order", "1 site could not be judged")
	})
}

// The next round is known to the watchdog that runs, and shown.
func TestThePageKnowsTheNextRound(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		w := l.watchdog()
		defer w.Close()
		running, cancel := context.WithTimeout(ctx, 23*time.Minute)
		defer cancel()
		looked := 0
		for d := 7 * time.Minute; d < 23*time.Minute; d += 5 * time.Minute {
			time.AfterFunc(d, func() {
				looked++
				s := w.Status().Sites[0]
				if wait := s.NextRound.Sub(w.Status().At); wait < 0 || wait > 6*time.Minute || s.Last == nil {
					t.Errorf("the next round in %s: %+v", wait, s)
				}
				holds(t, statusPage(t, w), "next "+s.NextRound.Format(time.TimeOnly))
			})
		}
		w.Run(running, nil)
		if looked < 3 {
			t.Errorf("looked %d times", looked)
		}
	})
}

// Without a disk, the history is in memory.
func TestThePageWithoutADisk(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.must(os.WriteFile(l.dir, nil, 0o600))
		w := l.watchdogAt(store.At(l.dir))
		defer w.Close()
		running, cancel := context.WithTimeout(ctx, 23*time.Minute)
		defer cancel()
		w.Run(running, nil)
		if !regexp.MustCompile(`shop: last [45] rounds: [45] up`).MatchString(statusPage(t, w)) {
			t.Error(statusPage(t, w))
		}
	})
}
