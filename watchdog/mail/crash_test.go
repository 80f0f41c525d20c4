package mail

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"karui/watchdog/event"
)

// The test's own binary, told by these, is a watchdog to be killed.
const (
	childDir  = "KARUI_TEST_OUTBOX"
	childAddr = "KARUI_TEST_SMTP"

	crashMails = 12
)

// child enqueues all events anew, as the watchdog does after a crash, says so, and
// sends until it is killed or nothing waits.
func child(dir string) {
	address, err := net.ResolveTCPAddr("tcp", os.Getenv(childAddr))
	if err != nil {
		panic(err)
	}
	m, err := New(dir, configured(address), Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	for i := range crashMails {
		e := sample(event.Degrade)
		e.ID = fmt.Sprintf("e%02d", i)
		if err := m.Enqueue(ctx, e); err != nil {
			panic(err)
		}
		fmt.Println(e.ID)
	}
	for ctx.Err() == nil {
		if err := m.Flush(ctx); err != nil {
			panic(err)
		}
		n, _, err := m.Waiting()
		if err != nil {
			panic(err)
		}
		if n == 0 {
			cancel()
		}
	}
	<-done
	os.Exit(0)
}

// Killed at each step of handing over a mail, and while mails are taken: nothing
// is lost, nothing comes twice, nothing out of order.
func TestKilledAtAnyStep(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := new(smtpServer)
	s.serve(t, listener)
	dir := t.TempDir()
	// "." is killed before the server has the mail; with "RSET" or "QUIT" or the
	// MAIL after it, right after it was handed over.
	steps := []string{"(connected)", "EHLO", "MAIL", "RCPT", "DATA", ".", "MAIL 2", "RCPT 2", ". 2", "MAIL 3", "taken 1", "taken 7", "taken 12", ""}
	acknowledged := make(map[string]bool)
	for _, step := range steps {
		t.Run("killed at "+or(step, "no step"), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), childDir+"="+dir, childAddr+"="+listener.Addr().String())
			out, in := io.Pipe()
			cmd.Stdout, cmd.Stderr = in, os.Stderr
			seen, killed := 0, false
			started := make(chan struct{})
			kill := func() { <-started; _ = cmd.Process.Kill() }
			verb, nth, _ := strings.Cut(step, " ")
			var mu sync.Mutex
			s.set(func(v, line string) string {
				mu.Lock()
				defer mu.Unlock()
				if killed {
					return "drop" // what a dead process had sent before
				}
				if v == verb || line == step {
					seen++
				}
				if step == "" || fmt.Sprint(max(seen, 1)) != or(nth, "1") || seen == 0 {
					return ""
				}
				killed = true
				kill()
				if v == "." {
					return "451 not taken"
				}
				return "drop"
			})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			close(started)
			finished := make(chan struct{})
			go func() {
				defer close(finished)
				n := 0
				for lines := bufio.NewScanner(out); lines.Scan(); {
					acknowledged[lines.Text()] = true
					if n++; verb == "taken" && fmt.Sprint(n) == nth {
						kill()
					}
				}
			}()
			timeout := time.AfterFunc(30*time.Second, kill)
			err := cmd.Wait()
			timeout.Stop()
			_ = in.Close()
			<-finished
			if step == "" && err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if step != "" && verb != "taken" && !killed {
				t.Errorf("never came to it: %v", err)
			}
		})
	}
	var got []string
	for _, m := range s.inbox() {
		got = append(got, open(t, m.raw).header.Get("X-Karui-Event"))
	}
	var want []string
	for i := range crashMails {
		want = append(want, fmt.Sprintf("e%02d", i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("arrived %q", got)
	}
	if len(acknowledged) != crashMails {
		t.Errorf("%d were taken", len(acknowledged))
	}
}
