package mail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	double "karui/internal/cloudfront"
	"karui/watchdog/event"
	"karui/watchdog/settings"
)

// bench is a Mailer in a bubble of simulated time, with a mail server that can be
// switched off.
type bench struct {
	*Mailer
	t      *testing.T
	dir    string
	config settings.Config
	server *smtpServer
	pipe   *double.Pipe
	logs   *logs
	dials  int
	mu     sync.Mutex
	down   bool
}

func inBubble(t *testing.T, f func(b *bench)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		pipe := double.NewPipe()
		b := &bench{t: t, dir: dir, server: new(smtpServer), pipe: pipe, logs: new(logs), config: configured(pipe.Addr())}
		b.config.Mail.SMTP.Host = "mx.example.com"
		b.server.serve(t, pipe)
		b.Mailer = b.mailer()
		f(b)
	})
}

// mailer is as after a restart.
func (b *bench) mailer() *Mailer {
	b.t.Helper()
	m, err := New(b.dir, b.config, Options{Log: b.logs.logger(), Dial: b.dial})
	if err != nil {
		b.t.Fatal(err)
	}
	return m
}

func (b *bench) dial(ctx context.Context, network, address string) (net.Conn, error) {
	b.mu.Lock()
	down := b.down
	b.dials++
	b.mu.Unlock()
	if down {
		return nil, errors.New("connection refused")
	}
	return b.pipe.Dial(ctx, network, address)
}

func (b *bench) setDown(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// run runs a Mailer; the result ends it and waits for it.
func (b *bench) run(m *Mailer) (end func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	return func() { cancel(); <-done }
}

// off tries once, and is then switched off for a while.
func (b *bench) off(d time.Duration) {
	end := b.run(b.Mailer)
	synctest.Wait()
	end()
	time.Sleep(d)
}

func (b *bench) enqueue(m *Mailer, events ...event.Event) {
	b.t.Helper()
	for _, e := range events {
		if err := m.Enqueue(b.t.Context(), e); err != nil {
			b.t.Fatal(err)
		}
	}
}

// arrived lists event ids and recipients as they came in: "id>ops,boss".
func (b *bench) arrived() []string {
	var out []string
	for _, m := range b.server.inbox() {
		var names []string
		for _, to := range m.to {
			name, _, _ := strings.Cut(to, "@")
			names = append(names, name)
		}
		out = append(out, open(b.t, m.raw).header.Get("X-Karui-Event")+">"+strings.Join(names, ","))
	}
	return out
}

func (b *bench) want(want ...string) {
	b.t.Helper()
	if got := b.arrived(); !slices.Equal(got, want) {
		b.t.Errorf("arrived %q, want %q", got, want)
	}
}

func (b *bench) waiting(m *Mailer, want int) {
	b.t.Helper()
	if n, _, err := m.Waiting(); n != want || err != nil {
		b.t.Errorf("%d wait, want %d (%v)", n, want, err)
	}
}

func (b *bench) files(place string) int {
	files, err := filepath.Glob(filepath.Join(b.dir, "outbox", place, "*.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	return len(files)
}

// told is an event at the bubble's time.
func told(id string, kind event.Kind) event.Event {
	e := sample(kind)
	e.ID, e.ReplyTo, e.At = id, "", time.Now()
	return e
}

func about(site string, e event.Event) event.Event {
	e.Site = site
	return e
}

func TestAMailGoesOutAtOnceAndOnce(t *testing.T) {
	inBubble(t, func(b *bench) {
		end := b.run(b.Mailer)
		begin := time.Now()
		degrade, restore := told("d", event.Degrade), told("r", event.Restore)
		restore.ReplyTo = "d"
		b.enqueue(b.Mailer, degrade)
		synctest.Wait()
		b.want("d>ops,boss")
		b.enqueue(b.Mailer, degrade, restore, about("mise", told("j", event.Degrade)), degrade)
		synctest.Wait()
		b.want("d>ops,boss", "r>ops,boss", "j>tantou")
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %s", took)
		}
		b.waiting(b.Mailer, 0)
		end()

		again := b.mailer()
		defer b.run(again)()
		b.enqueue(again, degrade, restore)
		time.Sleep(time.Hour) // of the bubble
		b.want("d>ops,boss", "r>ops,boss", "j>tantou")

		in := b.server.inbox()
		first, reply, japanese := open(t, in[0].raw), open(t, in[1].raw), open(t, in[2].raw)
		if id := first.header.Get("Message-Id"); id != "<karui.d@example.com>" || reply.header.Get("In-Reply-To") != id || reply.header.Get("References") != id {
			t.Errorf("%q, %v", id, reply.header)
		}
		if reply.subject != "[karui] shop RESTORED the proxy is first again" || !strings.Contains(reply.body, "put first again") {
			t.Errorf("%q\n%s", reply.subject, reply.body)
		}
		if japanese.subject != "[karui] mise DEGRADED プロキシ停止のためオリジンへ切り替えました" || !strings.Contains(japanese.body, "閲覧者への影響") {
			t.Errorf("%q\n%s", japanese.subject, japanese.body)
		}
	})
}

func TestServerDownForAnHour(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.setDown(true)
		defer b.run(b.Mailer)()
		var want []string
		for i := range 6 {
			id := fmt.Sprintf("e%d", 5-i) // not in the order of their names
			b.enqueue(b.Mailer, told(id, event.Degrade))
			want = append(want, id+">ops,boss")
			time.Sleep(10 * time.Minute)
		}
		synctest.Wait()
		b.want()
		n, oldest, err := b.Waiting()
		if n != 6 || err != nil || time.Since(oldest) != time.Hour {
			t.Errorf("%d wait since %s: %v", n, oldest, err)
		}
		if !strings.Contains(b.Trouble(), "connection refused") {
			t.Errorf("trouble %q", b.Trouble())
		}
		// 15 s, 30 s, 1, 2, 4 and then 5 min, and one more for each new mail.
		if b.dials < 12 || b.dials > 12+10 {
			t.Errorf("%d tries", b.dials)
		}
		b.setDown(false)
		time.Sleep(5*time.Minute + 15*time.Second)
		synctest.Wait()
		b.want(want...)
		if b.Trouble() != "" || b.logs.count("level=ERROR") != 1 || b.logs.count("mails go out again") != 1 {
			t.Errorf("trouble %q, logs:\n%s", b.Trouble(), b.logs)
		}
		if body := open(t, b.server.inbox()[0].raw).body; !strings.Contains(body, "late: it could not be sent") {
			t.Errorf("does not say that it is late:\n%s", body)
		}
	})
}

func TestANewMailIsTriedSoonInAnOutage(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.setDown(true)
		defer b.run(b.Mailer)()
		b.enqueue(b.Mailer, told("a", event.Degrade))
		time.Sleep(47*time.Minute + time.Second)
		b.setDown(false)
		b.enqueue(b.Mailer, told("b", event.Degrade))
		time.Sleep(firstRetry)
		synctest.Wait()
		b.want("a>ops,boss", "b>ops,boss")
	})
}

func TestTheErrorIsLoggedAgainWhenItChanges(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.setDown(true)
		defer b.run(b.Mailer)()
		b.enqueue(b.Mailer, told("a", event.Degrade))
		time.Sleep(time.Hour)
		b.server.set(func(verb, _ string) string {
			if verb == "MAIL" {
				return "421 closing"
			}
			return ""
		})
		b.setDown(false)
		time.Sleep(time.Hour)
		synctest.Wait()
		if b.logs.count("level=ERROR") != 2 || b.logs.count("connection refused") != 1 || b.logs.count("421") != 1 {
			t.Error(b.logs)
		}
	})
}

func TestARecipientWhoIsPutOffKeepsTheOrder(t *testing.T) {
	inBubble(t, func(b *bench) {
		var later atomic.Bool
		b.server.set(func(verb, line string) string {
			if !later.Load() && verb == "RCPT" && strings.Contains(line, "boss@") {
				return "451 4.7.1 greylisted, come back later"
			}
			return ""
		})
		defer b.run(b.Mailer)()
		b.enqueue(b.Mailer, told("d", event.Degrade), told("r", event.Restore), about("mise", told("j", event.Degrade)))
		synctest.Wait()
		b.want("d>ops", "r>ops", "j>tantou")
		time.Sleep(20 * time.Minute)
		later.Store(true)
		time.Sleep(lastRetry)
		synctest.Wait()
		b.want("d>ops", "r>ops", "j>tantou", "d>boss", "r>boss")
		if b.logs.count("greylisted") != 1 {
			t.Error(b.logs)
		}
		b.waiting(b.Mailer, 0)
	})
}

// A server that puts off one particular mail for ever does not hold back the
// news.
func TestOneMailThatIsPutOffForEver(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.server.set(func(_, line string) string {
			if line == ". d" {
				return "451 4.3.0 content filter is busy"
			}
			return ""
		})
		defer b.run(b.Mailer)()
		b.enqueue(b.Mailer, told("d", event.Degrade))
		time.Sleep(30 * time.Minute)
		b.enqueue(b.Mailer, told("r", event.Restore))
		time.Sleep(29 * time.Minute)
		b.want()
		time.Sleep(lastRetry + time.Minute)
		synctest.Wait()
		b.want("r>ops,boss")
		b.waiting(b.Mailer, 1)
	})
}

func TestARefusedRecipientIsGivenUpAfterADay(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.server.set(func(verb, line string) string {
			if verb == "RCPT" && strings.Contains(line, "boss@") {
				return "550 5.1.1 no such user"
			}
			return ""
		})
		defer b.run(b.Mailer)()
		b.enqueue(b.Mailer, told("d", event.Degrade), told("r", event.Restore))
		time.Sleep(23 * time.Hour)
		b.want("d>ops", "r>ops")
		b.waiting(b.Mailer, 2)
		if b.logs.count("no such user") != 1 || b.logs.count("level=ERROR") != 0 {
			t.Error(b.logs)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		b.want("d>ops", "r>ops")
		b.waiting(b.Mailer, 0)
		if b.logs.count("does not get a mail") != 2 || b.files(placeSent) != 2 {
			t.Error(b.logs)
		}
	})
}

func TestAMailThatEverybodyIsRefusedEndsInFailed(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.server.set(func(verb, _ string) string {
			if verb == "." {
				return "554 5.7.1 spam"
			}
			return ""
		})
		b.enqueue(b.Mailer, told("d", event.Degrade))
		b.off(25 * time.Hour)
		defer b.run(b.Mailer)()
		synctest.Wait()
		b.waiting(b.Mailer, 0)
		if b.files(placeFailed) != 1 || b.logs.count("does not get a mail") != 2 {
			t.Error(b.logs)
		}
		b.server.set(nil)
		b.enqueue(b.Mailer, told("d", event.Degrade))
		time.Sleep(time.Hour)
		b.want()
	})
}

func TestAWeekIsTheEnd(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.setDown(true)
		b.enqueue(b.Mailer, told("old", event.Degrade))
		b.off(6 * 24 * time.Hour)
		b.enqueue(b.Mailer, told("new", event.Restore))
		end := b.run(b.Mailer)
		time.Sleep(23 * time.Hour)
		b.waiting(b.Mailer, 2)
		time.Sleep(2 * time.Hour)
		b.waiting(b.Mailer, 1)
		if b.logs.count("a mail is given up") != 1 || b.files(placeFailed) != 1 {
			t.Error(b.logs)
		}
		end()
		// Switched off for a month, with a server that works afterwards: late news
		// is better than none.
		time.Sleep(30 * 24 * time.Hour)
		b.setDown(false)
		defer b.run(b.mailer())()
		synctest.Wait()
		b.want("new>ops,boss")
	})
}

func TestFilesThatCannotBeReadAreSetAside(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.enqueue(b.Mailer, told("good", event.Degrade))
		good, err := os.ReadFile(filepath.Join(b.dir, "outbox", "good.json"))
		if err != nil {
			t.Fatal(err)
		}
		for name, body := range map[string]string{
			"empty.json": "", "half.json": string(good[:len(good)/2]), "binary.json": "\x00\xff", "another.json": string(good),
			"array.json": "[]", "nothing.json": "{}", "nokind.json": `{"event":{"id":"nokind"},"queued":"2026-01-01T00:00:00Z"}`,
			"notes.txt": "not ours", "Upper.json": "not ours",
		} {
			if err := os.WriteFile(filepath.Join(b.dir, "outbox", name), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		defer b.run(b.mailer())()
		time.Sleep(time.Hour)
		b.want("good>ops,boss")
		if b.files(placeCorrupt) != 7 || b.files("") != 1 || b.logs.count("cannot be read") != 7 {
			t.Errorf("%d set aside, %d stay: %s", b.files(placeCorrupt), b.files(""), b.logs)
		}
	})
}

func TestTooManyMails(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.setDown(true)
		b.most = 5
		defer b.run(b.Mailer)()
		for i := range 8 {
			b.enqueue(b.Mailer, told(fmt.Sprintf("e%d", i), event.Degrade))
		}
		time.Sleep(time.Minute)
		b.waiting(b.Mailer, 5)
		b.setDown(false)
		time.Sleep(lastRetry)
		synctest.Wait()
		b.want("e3>ops,boss", "e4>ops,boss", "e5>ops,boss", "e6>ops,boss", "e7>ops,boss")
		if b.logs.count("a mail is given up") != 3 {
			t.Error(b.logs)
		}
	})
}

func TestOneConnectionForManyMailsAsLongAsTheServerKeepsIt(t *testing.T) {
	inBubble(t, func(b *bench) {
		mails := 0
		b.server.set(func(verb, _ string) string {
			switch verb {
			case "EHLO":
				mails = 0
			case "MAIL":
				if mails++; mails > 3 {
					return "421 enough for one connection"
				}
			}
			return ""
		})
		var want []string
		for i := range 10 {
			id := fmt.Sprintf("e%d", i)
			b.enqueue(b.Mailer, told(id, event.Degrade))
			want = append(want, id+">ops,boss")
		}
		if err := b.Flush(b.t.Context()); err != nil {
			t.Error(err)
		}
		b.want(want...)
		if b.server.dialogs != 4 {
			t.Errorf("%d connections", b.server.dialogs)
		}
	})
}

func TestSeveralProcessesOnOneOutbox(t *testing.T) {
	inBubble(t, func(b *bench) {
		others := []*Mailer{b.mailer(), b.mailer()}
		for _, m := range others {
			defer b.run(m)()
		}
		var wg sync.WaitGroup
		var want []string
		for i := range 30 {
			e := told(fmt.Sprintf("e%02d", i), event.Degrade)
			want = append(want, e.ID+">ops,boss")
			for _, m := range []*Mailer{b.Mailer, others[0], others[1]} {
				wg.Go(func() {
					if err := m.Enqueue(context.Background(), e); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		got := b.arrived()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		if b.logs.count("level=ERROR") != 0 {
			t.Error(b.logs)
		}
	})
}

// A proxy that serves many sites goes down.
func TestManyMailsAtOnce(t *testing.T) {
	inBubble(t, func(b *bench) {
		const n = 300
		defer b.run(b.Mailer)()
		for i := range n {
			b.enqueue(b.Mailer, about(fmt.Sprintf("site%d", i), told(fmt.Sprintf("e%04d", i), event.Degrade)))
		}
		synctest.Wait()
		b.waiting(b.Mailer, 0)
		seen := make(map[string]bool)
		for _, id := range b.arrived() {
			seen[id] = true
		}
		if len(seen) != n || len(b.server.inbox()) != n {
			t.Errorf("%d mails, %d different", len(b.server.inbox()), len(seen))
		}
	})
}

func TestFlush(t *testing.T) {
	inBubble(t, func(b *bench) {
		if err := b.Flush(b.t.Context()); err != nil {
			t.Errorf("empty: %v", err)
		}
		b.setDown(true)
		b.enqueue(b.Mailer, told("a", event.Degrade), told("b", event.Degrade))
		if err := b.Flush(b.t.Context()); err == nil || !strings.Contains(err.Error(), "2 mails wait") || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%v", err)
		}
		b.setDown(false)
		if err := b.Flush(b.t.Context()); err != nil { // without waiting for the next try
			t.Error(err)
		}
		b.want("a>ops,boss", "b>ops,boss")

		unlock, ok, err := b.mailer().acquire()
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
		defer cancel()
		if err := b.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		b.enqueue(b.Mailer, told("c", event.Degrade))
		time.AfterFunc(time.Second, unlock)
		if err := b.Flush(b.t.Context()); err != nil {
			t.Error(err)
		}
		b.want("a>ops,boss", "b>ops,boss", "c>ops,boss")
	})
}

func TestTheEndWaitsForAMailUnderWay(t *testing.T) {
	for _, slow := range []time.Duration{2 * time.Second, time.Hour} {
		inBubble(t, func(b *bench) {
			reached := make(chan struct{}, 1)
			b.server.set(func(verb, _ string) string {
				if verb == "." {
					reached <- struct{}{}
					time.Sleep(slow)
				}
				return ""
			})
			b.enqueue(b.Mailer, told("a", event.Degrade), told("b", event.Degrade))
			end := b.run(b.Mailer)
			<-reached
			begin := time.Now()
			end()
			took := time.Since(begin)
			if slow > grace {
				b.waiting(b.Mailer, 2)
				if took != grace {
					t.Errorf("took %s", took)
				}
				return
			}
			b.want("a>ops,boss")
			b.waiting(b.Mailer, 1) // none is begun
			if took != slow {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestCorrectedSettingsTakeEffectAtOnce(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.server.set(func(verb, line string) string {
			if verb == "RCPT" && strings.Contains(line, "boss@") {
				return "550 5.1.1 no such user"
			}
			return ""
		})
		defer b.run(b.Mailer)()
		b.enqueue(b.Mailer, told("d", event.Degrade))
		time.Sleep(3 * time.Hour)
		b.want("d>ops")
		c := b.config
		c.Mail.To = []string{"ops@example.com", "chief@example.com"}
		b.Configure(c)
		synctest.Wait()
		b.want("d>ops", "d>chief")
		b.waiting(b.Mailer, 0)
	})
}

func TestASiteThatIsGoneIsToldGlobally(t *testing.T) {
	inBubble(t, func(b *bench) {
		c := b.config
		c.Sites = c.Sites[:1]
		b.Configure(c)
		b.enqueue(b.Mailer, about("mise", told("d", event.Degrade)))
		if err := b.Flush(b.t.Context()); err != nil {
			t.Error(err)
		}
		b.want("d>ops,boss")
		c.Mail.To = nil
		b.Configure(c)
		b.enqueue(b.Mailer, about("mise", told("e", event.Degrade)))
		if err := b.Flush(b.t.Context()); err == nil || !strings.Contains(err.Error(), "nobody is to be told") {
			t.Errorf("%v", err)
		}
		b.waiting(b.Mailer, 1)
	})
}

// A disk that takes no writes must not make a mail go out again and again.
func TestAMailThatCannotBeMarkedAsSentIsNotSentAgain(t *testing.T) {
	inBubble(t, func(b *bench) {
		sent := filepath.Join(b.dir, "outbox", placeSent)
		defer b.run(b.Mailer)()
		synctest.Wait()
		if err := os.Remove(sent); err != nil {
			t.Fatal(err)
		}
		b.enqueue(b.Mailer, told("d", event.Degrade))
		time.Sleep(time.Hour)
		b.want("d>ops,boss")
		b.waiting(b.Mailer, 1)
		if b.logs.count("state_dir read-only") != 1 {
			t.Error(b.logs)
		}
		if err := os.Mkdir(sent, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pollEvery + time.Second)
		b.want("d>ops,boss")
		b.waiting(b.Mailer, 0)
	})
}

func TestEnqueueRefusesWhatHasNoName(t *testing.T) {
	inBubble(t, func(b *bench) {
		for _, id := range []string{"", "../x", "A", "a b", strings.Repeat("a", 101), "a.b", "ä"} {
			if err := b.Enqueue(b.t.Context(), told(id, event.Degrade)); err == nil {
				t.Errorf("%q is taken", id)
			}
		}
		if err := b.Enqueue(b.t.Context(), told("a", "")); err == nil {
			t.Error("no kind is taken")
		}
		b.waiting(b.Mailer, 0)
	})
}

func TestAClockThatIsSetBackChangesNoOrder(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.setDown(true)
		now := time.Now()
		b.opt.Now = func() time.Time { return now }
		b.enqueue(b.Mailer, told("first", event.Degrade))
		now = now.Add(-time.Hour)
		b.enqueue(b.Mailer, told("second", event.Restore))
		after := b.mailer()
		after.opt.Now = func() time.Time { return now.Add(-time.Hour) }
		b.enqueue(after, told("third", event.Degrade))
		b.setDown(false)
		if err := after.Flush(b.t.Context()); err != nil {
			t.Error(err)
		}
		b.want("first>ops,boss", "second>ops,boss", "third>ops,boss")
	})
}

func TestWhatRootLeavesBelongsToTheOwnerOfTheStateDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	inBubble(t, func(b *bench) {
		const owner = 12345
		if err := os.Chown(b.dir, owner, owner); err != nil {
			t.Fatal(err)
		}
		b.server.set(func(verb, line string) string {
			if verb == "RCPT" && strings.Contains(line, "boss@") {
				return "550 no"
			}
			return ""
		})
		m := b.mailer()
		b.enqueue(m, told("a", event.Degrade), about("mise", told("b", event.Degrade)))
		if err := m.Flush(b.t.Context()); err == nil {
			t.Error("the boss got it")
		}
		entries := 0
		err := filepath.WalkDir(filepath.Join(b.dir, "outbox"), func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			entries++
			if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != owner || stat.Gid != owner {
				t.Errorf("%s belongs to %+v", path, stat)
			}
			return nil
		})
		if err != nil || entries != 7 { // four directories, the lock, two mails
			t.Errorf("%d files: %v", entries, err)
		}
	})
}

// What somebody put into the outbox that is no file must not stop the others.
func TestWhatIsNoFileIsSetAside(t *testing.T) {
	inBubble(t, func(b *bench) {
		for _, id := range []string{"pipe", "loose-end"} {
			path := filepath.Join(b.dir, "outbox", id+".json")
			if id == "pipe" {
				if err := syscall.Mkfifo(path, 0o600); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Symlink("/dev/zero", path); err != nil {
				t.Fatal(err)
			}
		}
		m := b.mailer() // reads what waits
		if n, _, err := m.Waiting(); n != 0 || err != nil {
			t.Errorf("%d wait, %v", n, err)
		}
		if err := m.Enqueue(context.Background(), sample(event.Degrade)); err != nil {
			t.Fatal(err)
		}
		if err := m.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := len(b.server.inbox()); n != 1 {
			t.Errorf("%d mails", n)
		}
		for _, id := range []string{"pipe", "loose-end"} {
			if _, err := os.Lstat(filepath.Join(b.dir, "outbox", "corrupt", id+".json")); err != nil {
				t.Error(err)
			}
		}
	})
}

// Whoever only looks leaves no trace, and yet can take a mail.
func TestLookingTouchesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	m, err := New(dir, configured(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 25}), Options{Look: true})
	if err != nil {
		t.Fatal(err)
	}
	if n, _, err := m.Waiting(); n != 0 || err != nil {
		t.Errorf("%d wait, %v", n, err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("it made %s: %v", dir, err)
	}
	if err := m.Enqueue(context.Background(), sample(event.Degrade)); err != nil {
		t.Fatal(err)
	}
	if n, _, err := m.Waiting(); n != 1 || err != nil {
		t.Errorf("%d wait, %v", n, err)
	}
}
