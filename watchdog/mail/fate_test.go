package mail

import (
	"testing"
	"testing/synctest"
	"time"

	"karui/watchdog/event"
)

func TestFate(t *testing.T) {
	inBubble(t, func(b *bench) {
		want := func(id, fate string) {
			t.Helper()
			if got := b.Fate(id); got != fate {
				t.Errorf("%s: %q, want %q", id, got, fate)
			}
		}
		want("d", "")
		b.setDown(true)
		end := b.run(b.Mailer)
		b.enqueue(b.Mailer, told("d", event.Degrade))
		synctest.Wait()
		want("d", FateWaiting)
		b.setDown(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		want("d", FateSent)
		b.server.set(func(verb, _ string) string {
			if verb == "." {
				return "554 5.7.1 spam"
			}
			return ""
		})
		b.enqueue(b.Mailer, told("e", event.Degrade))
		synctest.Wait()
		want("e", FateWaiting)
		time.Sleep(26 * time.Hour)
		synctest.Wait()
		want("e", FateGivenUp)
		end()
	})
}
