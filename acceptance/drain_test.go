package acceptance

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"karui/internal/origintest"
)

// outcome is one request of a client that goes on asking during a drain.
type outcome struct {
	started, ended time.Time
	reply          *reply
	reused         bool
}

// keepAsking asks until stop is closed, over one connection as long as it lasts or over a new one each time.
func (k *instance) keepAsking(stop <-chan struct{}, keepAlive bool, target, accept string, note func(outcome)) {
	var c *connection
	defer func() {
		if c != nil {
			_ = c.Close()
		}
	}()
	for {
		select {
		case <-stop:
			return
		default:
		}
		q := request{target: target, host: "www.example.com", fields: []string{accept}}
		o := outcome{started: time.Now(), reused: c != nil}
		if c == nil {
			var err error
			if c, err = k.tryDial(); err != nil {
				o.ended, o.reply = time.Now(), &reply{request: q, err: err}
				note(o)
				pause(5 * time.Millisecond)
				continue
			}
		}
		o.reply = c.do(q)
		o.ended = time.Now()
		note(o)
		if o.reply.err != nil || !keepAlive || o.reply.last {
			_ = c.Close()
			c = nil
		}
	}
}

// SIGTERM under load: whoever asks gets a whole image or a 503 until the process
// is gone; a slow download under way ends whole; the exit code is 0.
func TestDrainBreaksNoImageWhileClientsKeepAsking(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	bodies := map[string][]byte{}
	for i := range 4 {
		target := fmt.Sprintf("/%d.jpg", i)
		bodies[target] = photo(t, uint64(i))
		origin.Set(target, origintest.Image("image/jpeg", bodies[target]))
	}
	slowBody := photo(t, 50)
	stall := origintest.NewGate()
	defer stall.Open()
	slow := origintest.Image("image/jpeg", slowBody)
	slow.Stall, slow.StallAt = stall, 2048
	origin.Set("/slow.jpg", slow)
	k := serve(t, origin, with("drain", "20s"))
	variants := map[string][]byte{}
	for target := range bodies {
		variants[target] = k.settle(target, takesWebP).body
	}
	download := k.dial()
	q := request{target: "/slow.jpg", host: "www.example.com", fields: []string{takesWebP}}
	if _, err := download.Write(q.bytes()); err != nil {
		t.Fatal(err)
	}
	_ = download.SetDeadline(time.Now().Add(60 * time.Second))
	under := download.readHead(q)
	if under.status != 200 {
		t.Fatalf("%v", under)
	}

	var mu sync.Mutex
	var outcomes []outcome
	note := func(o outcome) {
		mu.Lock()
		outcomes = append(outcomes, o)
		mu.Unlock()
	}
	count := func(drained bool) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, o := range outcomes {
			if o.reply.status == 200 && !drained || o.reply.header.Get("X-Karui-Reason") == "drain" && drained {
				n++
			}
		}
		return n
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 16 {
		target := fmt.Sprintf("/%d.jpg", i%4)
		accept := takesWebP
		if i%3 == 0 {
			accept = takesAny
		}
		wg.Go(func() { k.keepAsking(stop, i%2 == 0, target, accept, note) })
	}
	eventually(t, 20*time.Second, "answers before the drain", func() bool { return count(false) > 200 })
	k.signal(syscall.SIGTERM)
	termed := time.Now()
	eventually(t, 10*time.Second, "/readyz fails", func() bool { status, _ := k.ask("/readyz"); return status != 200 })
	eventually(t, 10*time.Second, "503 drain", func() bool { return count(true) > 100 })
	if a := k.do(request{target: "/.karui/ping.jpg"}); a.status != 503 || a.header.Get("X-Karui-Reason") != "drain" {
		t.Errorf("the ping during the drain: %v", a)
	}
	if !k.running() {
		t.Fatal("the process ended with a download under way")
	}
	stall.Open()
	download.readBody(under)
	if under.err != nil || !bytes.Equal(under.body, slowBody) {
		t.Errorf("the download under way: %d of %d bytes, %v", len(under.body), len(slowBody), under.err)
	}
	if code := k.await(30 * time.Second); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	gone := time.Now()
	close(stop)
	wg.Wait()
	k.noChildren()

	for _, o := range outcomes {
		a := o.reply
		target := a.request.target
		switch {
		case a.status == 200 && a.err == nil:
			if !bytes.Equal(a.body, bodies[target]) && !bytes.Equal(a.body, variants[target]) {
				t.Errorf("%s: a broken image of %d bytes", target, len(a.body))
			}
			if o.started.After(termed.Add(2 * time.Second)) {
				t.Errorf("%s: still served %v after SIGTERM", target, o.started.Sub(termed))
			}
		case a.status == 503 && a.err == nil:
			if a.header.Get("X-Karui-Reason") != "drain" || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v", target, a)
			}
		case a.head == "" && o.ended.After(gone.Add(-farewell())) && closed(a.err):
			// The process went away under a connection or before it; nothing of an answer was seen.
		default:
			t.Errorf("%s: %v before the end, reused connection: %v, answer: %v", target, gone.Sub(o.ended), o.reused, a)
		}
	}
	t.Logf("%d requests, %d of them turned away", len(outcomes), count(true))
}

// farewell is what the process may take to end after it stopped listening.
func farewell() time.Duration {
	if raced() {
		return 5 * time.Second
	}
	return 2 * time.Second
}

// closed reports whether a connection was refused or ended without an answer.
func closed(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || err != nil && bytes.Contains([]byte(err.Error()), []byte("EOF"))
}

// What is still under way when the time is up is cut, by an aborted connection, and the exit code is 0 all the same.
func TestDrainEndsWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	stall := origintest.NewGate()
	defer stall.Open()
	body := photo(t, 1)
	answer := origintest.Image("image/jpeg", body)
	answer.Stall, answer.StallAt = stall, 2048
	origin.Set("/slow.jpg", answer)
	k := serve(t, origin, with("drain", "2s"), with("origin.idle", "60s"))
	c := k.dial()
	q := request{target: "/slow.jpg", host: "www.example.com", fields: []string{takesAny}}
	if _, err := c.Write(q.bytes()); err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	a := c.readHead(q)
	started := time.Now()
	k.signal(syscall.SIGTERM)
	code := k.await(20 * time.Second)
	if took := time.Since(started); code != 0 || took > 12*time.Second {
		t.Errorf("exit code %d after %v, want 0 after about 2 s", code, took)
	}
	if c.readBody(a); a.err == nil {
		t.Errorf("half a body looks whole: %v", a)
	}
}

func TestIdleProcessEndsAtOnce(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	k := serve(t, origin, with("drain", "30s"))
	c := k.dial()
	if a := c.do(request{target: "/a.jpg", host: "www.example.com"}); a.status != 404 {
		t.Errorf("%v", a)
	}
	started := time.Now()
	k.signal(syscall.SIGTERM)
	if code := k.await(40 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(started); took > 15*time.Second {
		t.Errorf("gone after %v with nothing under way", took)
	}
}

func TestSecondSignalDoesNoHarm(t *testing.T) {
	t.Parallel()
	k := serve(t, origintest.New(t))
	k.signal(syscall.SIGTERM)
	_ = k.cmd.Process.Signal(syscall.SIGTERM)
	k.await(20 * time.Second)
	k.noChildren()
}
