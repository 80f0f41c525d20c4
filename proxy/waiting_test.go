package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"karui/internal/origintest"
)

func TestInVain(t *testing.T) {
	const left = 300 * time.Millisecond
	free := Queue{Workers: 2, Busy: 1, Each: time.Second}
	short := Queue{Workers: 2, Busy: 2, Waiting: 2, Each: 100 * time.Millisecond, Oldest: 50 * time.Millisecond}
	long := Queue{Workers: 2, Busy: 2, Waiting: 6, Each: 100 * time.Millisecond}
	old := Queue{Workers: 2, Busy: 2, Waiting: 1, Each: 10 * time.Millisecond, Oldest: 400 * time.Millisecond}
	unknown := Queue{Workers: 2, Busy: 2, Waiting: 40}
	slowWorker := Queue{Workers: 1, Busy: 1, Each: 2 * time.Second}
	made := func(q Queue) chance { return chance{makes: true, queue: q} }
	for _, c := range []struct {
		name    string
		formats []chance
		want    bool
	}{
		{"a worker is free", []chance{made(free)}, false},
		{"nobody knows the queue", []chance{made(Queue{})}, false},
		{"a short queue", []chance{made(short)}, false},
		{"a long queue", []chance{made(long)}, true},
		{"the first in the queue has waited for longer", []chance{made(old)}, true},
		{"nothing was converted yet, so nobody knows how long it takes", []chance{made(unknown)}, false},
		{"the one worker is busy for long", []chance{made(slowWorker)}, true},
		{"the one worker is busy with this very picture", []chance{{makes: true, begun: true, queue: slowWorker}}, false},
		{"it is begun, and may be anywhere in the queue", []chance{{makes: true, begun: true, queue: long}}, true},
		{"nothing is made at this level", []chance{{queue: free}}, true},
		{"it failed a moment ago", []chance{{makes: true, resting: true, queue: free}}, true},
		{"the better format is not made, and the next one is", []chance{{queue: long}, made(free)}, false},
		{"the better format takes long, and is waited for first", []chance{made(long), made(free)}, true},
	} {
		if got := inVain(c.formats, left); got != c.want {
			t.Errorf("%s: in vain %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWorkersThatViewersWillNotMiss(t *testing.T) {
	for _, c := range []struct {
		queue Queue
		want  bool
	}{
		{Queue{Workers: 1}, true},
		{Queue{Workers: 1, Busy: 1}, false},
		{Queue{Workers: 2}, true},
		{Queue{Workers: 2, Busy: 1}, false},
		{Queue{Workers: 4, Busy: 1}, true},
		{Queue{Workers: 4, Busy: 2}, false},
		{Queue{Workers: 4, Waiting: 1}, false},
	} {
		if got := c.queue.spare(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.queue, got, c.want)
		}
	}
}

// The body is held back by the origin, so whoever gets its first bytes has not waited
// for a variant.
func TestNobodyWaitsInVain(t *testing.T) {
	queues := map[string]func(l *later){
		"defer":        func(l *later) { _ = l.proxy.Dial().Pin("", 3, time.Time{}) },
		"a long queue": func(l *later) { l.queue(Queue{Workers: 2, Busy: 2, Waiting: 600, Each: time.Second}) },
	}
	for name, set := range queues {
		t.Run(name, func(t *testing.T) {
			l := newLater(t, waiting(limit))
			set(l)
			body := append(photo(t, 256, 1), make([]byte, 1<<20)...)
			gate := origintest.NewGate()
			defer gate.Open()
			stalls := jpegAnswer(body)
			stalls.Stall, stalls.StallAt = gate, 100_000
			l.origin.Set("/a.jpg", stalls)
			request := fmt.Sprintf("GET /a.jpg HTTP/1.1\r\nHost: www.example.com\r\n%s\r\n\r\n", takesWebP)
			resp, _, _ := l.raw(request)
			defer resp.Body.Close()
			if resp.Header.Get("X-Karui") != "miss" || resp.Header.Get("Content-Type") != "image/jpeg" {
				t.Errorf("%v", resp.Header)
			}
			first := make([]byte, 50_000)
			if _, err := io.ReadFull(bufio.NewReader(resp.Body), first); err != nil || string(first) != string(body[:len(first)]) {
				t.Errorf("the first bytes: %v", err)
			}
			if m := l.metrics(); !strings.Contains(m, "karui_unwaited_total 1") {
				t.Error("metrics lack that nobody waited")
			}
			gate.Open()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("status %d", resp.StatusCode)
			}
		})
	}
}

// Where the queue is short enough, the viewer waits and has the variant.
func TestViewersWaitWhereItIsWorthIt(t *testing.T) {
	l := newLater(t, waiting(limit))
	jpg := photo(t, 64, 1)
	l.origin.Set("/a.jpg", jpegAnswer(jpg))
	l.queue(Queue{Workers: 2, Busy: 2, Waiting: 4, Each: 10 * time.Millisecond})
	l.want(l.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "wait"})
}
