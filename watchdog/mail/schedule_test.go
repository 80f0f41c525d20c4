package mail

import (
	"slices"
	"testing"
	"time"

	"karui/watchdog/event"
)

func TestBackoff(t *testing.T) {
	want := []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute}
	for i, w := range want {
		if got := backoff(i + 1); got != w {
			t.Errorf("after %d failures %s, want %s", i+1, got, w)
		}
	}
	if got := backoff(1_000_000); got != lastRetry {
		t.Errorf("%s", got)
	}
}

func TestAWaitEndsAlthoughTheClockIsSetBack(t *testing.T) {
	var w trial
	w.failed(noon)
	for _, tt := range []struct {
		at   time.Duration
		want bool
	}{{0, false}, {14 * time.Second, false}, {15 * time.Second, true}, {-time.Hour, true}} {
		if got := w.ready(noon.Add(tt.at)); got != tt.want {
			t.Errorf("%s later: %v", tt.at, got)
		}
	}
}

func TestOrder(t *testing.T) {
	queued := func(id, replyTo string, order int64) entry {
		return entry{Event: event.Event{ID: id, ReplyTo: replyTo}, Order: order}
	}
	for _, tt := range []struct {
		name string
		in   []entry
		want []string
	}{
		{"as taken", []entry{queued("b", "", 2), queued("a", "", 3), queued("c", "", 1)}, []string{"c", "b", "a"}},
		{"at the same time by id", []entry{queued("b", "", 1), queued("a", "", 1)}, []string{"a", "b"}},
		{"a reply after what it replies to", []entry{queued("r", "d", 1), queued("x", "", 2), queued("d", "", 3)}, []string{"d", "r", "x"}},
		{"a reply to what is gone", []entry{queued("r", "gone", 1), queued("x", "", 2)}, []string{"r", "x"}},
		{"a circle", []entry{queued("a", "b", 1), queued("b", "a", 2)}, []string{"b", "a"}},
		{"a reply to itself", []entry{queued("a", "a", 1)}, []string{"a"}},
	} {
		var got []string
		for _, e := range inOrder(tt.in) {
			got = append(got, e.Event.ID)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte(`{"event":{"id":"a","kind":"degrade","reply_to":"../x"},"queued":"2026-01-01T00:00:00Z","message_ids":["a b@c"]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEntry(b)
		if err != nil {
			return
		}
		if !idForm.MatchString(e.Event.ID) || e.Event.ReplyTo != "" && !idForm.MatchString(e.Event.ReplyTo) {
			t.Errorf("%q %q", e.Event.ID, e.Event.ReplyTo)
		}
		for _, id := range e.MessageIDs {
			if !isMessageID(id) {
				t.Errorf("%q", id)
			}
		}
		for _, language := range languages {
			if _, _, err := Text(e.Event, language, nil); err != nil {
				t.Error(err)
			}
		}
	})
}
