package logging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"karui/internal/logging"
)

// stuck is a reader of the log that takes nothing until it is let go.
type stuck struct {
	began, release chan struct{}
	once           sync.Once
	mu             sync.Mutex
	got            bytes.Buffer
}

func newStuck() *stuck { return &stuck{began: make(chan struct{}), release: make(chan struct{})} }

func (s *stuck) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.began) })
	<-s.release
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(b)
}

func TestQueueWritesEverythingInOrder(t *testing.T) {
	var out bytes.Buffer
	q := logging.NewQueue(&out, 1<<20)
	var want strings.Builder
	for i := range 1000 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		if n, err := q.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out.String() != want.String() || q.Dropped() != 0 {
		t.Errorf("%d bytes of %d arrived, %d lines dropped", out.Len(), want.Len(), q.Dropped())
	}
	if _, _ = q.Write([]byte("late\n")); q.Dropped() != 1 || out.Len() != want.Len() {
		t.Error("a line after the end was not dropped")
	}
}

func TestQueueDropsWholeLinesWhileNobodyReads(t *testing.T) {
	reader := newStuck()
	q := logging.NewQueue(reader, 60)
	if _, err := q.Write([]byte("first line\n")); err != nil {
		t.Fatal(err)
	}
	<-reader.began // its write is under way, and the queue is empty
	const line = "twenty characters..\n"
	for range 100 {
		if _, err := q.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if q.Dropped() != 97 {
		t.Errorf("%d lines dropped, want 97: there is room for three", q.Dropped())
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Close(over); !errors.Is(err, context.Canceled) {
		t.Errorf("Close did not give up on a reader that takes nothing: %v", err)
	}
	close(reader.release)
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader.mu.Lock()
	defer reader.mu.Unlock()
	if want := "first line\n" + strings.Repeat(line, 3); reader.got.String() != want {
		t.Errorf("got %q", reader.got.String())
	}
}

func TestSharedWritesOneLineAtATime(t *testing.T) {
	var out bytes.Buffer
	w := logging.Shared(&out)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				if _, err := w.Write([]byte("a whole line\n")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if out.String() != strings.Repeat("a whole line\n", 400) {
		t.Error("lines are torn")
	}
}
