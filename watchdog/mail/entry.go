package mail

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"karui/watchdog/event"
)

// entry is a mail in the outbox: the event, from which the mail is made when it
// goes out, so that a corrected address or language takes effect, and what became
// of it so far.
type entry struct {
	Event event.Event `json:"event"`
	// Queued is when it was taken; also the mail's Date.
	Queued time.Time `json:"queued"`
	// Order sorts mails as they were taken, also when the clock was set back.
	Order int64 `json:"order"`
	// Done are recipients that are served or given up.
	Done []string `json:"done,omitempty"`
	// Refused are recipients that the server refused for good, and since when.
	Refused map[string]time.Time `json:"refused,omitempty"`
	// Served counts recipients that have it.
	Served int `json:"served,omitempty"`
	// MessageIDs are those that the server gave it in place of ours.
	MessageIDs []string `json:"message_ids,omitempty"`
}

// maxEntry bounds what is read of a file. clean keeps events far below it.
const maxEntry = 16 << 20

var idForm = regexp.MustCompile(`^[a-z0-9-]{1,100}$`)

// newEntry takes an event over, bounded and checked.
func newEntry(e event.Event, now time.Time, order int64) (entry, error) {
	if !idForm.MatchString(e.ID) {
		return entry{}, fmt.Errorf("event id %q: 1 to 100 lower-case letters, digits and dashes expected", e.ID)
	}
	if e.Kind == "" {
		return entry{}, fmt.Errorf("event %s has no kind", e.ID)
	}
	e = clean(e)
	if !idForm.MatchString(e.ReplyTo) {
		e.ReplyTo = ""
	}
	return entry{Event: e, Queued: now.UTC(), Order: order}, nil
}

func decodeEntry(b []byte) (entry, error) {
	var e entry
	if err := json.Unmarshal(b, &e); err != nil {
		return entry{}, err
	}
	switch {
	case !idForm.MatchString(e.Event.ID):
		return entry{}, errors.New("no event id")
	case e.Event.Kind == "":
		return entry{}, errors.New("no kind")
	case e.Queued.IsZero():
		return entry{}, errors.New("no time")
	}
	// What came from a file is no more to be trusted than what came from outside.
	e.Event = clean(e.Event)
	if !idForm.MatchString(e.Event.ReplyTo) {
		e.Event.ReplyTo = ""
	}
	e.MessageIDs = slices.DeleteFunc(e.MessageIDs, func(id string) bool { return !isMessageID(id) })
	return e, nil
}

// pending are the recipients that still wait for it.
func (e entry) pending(recipients []string) []string {
	var out []string
	for _, r := range recipients {
		if !slices.Contains(e.Done, r) {
			out = append(out, r)
		}
	}
	return out
}

// maxMessageIDs bounds what a reply refers to.
const maxMessageIDs = 10

// apply takes over what became of a try. It returns whom it gives up: refused for
// good, and for longer than the patience allows.
func (e *entry) apply(r receipt, now time.Time) (givenUp []*Error) {
	e.Done = append(e.Done, r.taken...)
	e.Served += len(r.taken)
	e.MessageIDs = append(e.MessageIDs, r.ids...)
	e.MessageIDs = e.MessageIDs[:min(len(e.MessageIDs), maxMessageIDs)]
	for _, refusal := range r.refused {
		since, before := e.Refused[refusal.Recipient]
		switch {
		case !refusal.Permanent:
			delete(e.Refused, refusal.Recipient)
		case !before:
			if e.Refused == nil {
				e.Refused = make(map[string]time.Time)
			}
			e.Refused[refusal.Recipient] = now.UTC()
		case now.Sub(since) >= refusedPatience:
			e.Done = append(e.Done, refusal.Recipient)
			givenUp = append(givenUp, refusal)
		}
	}
	return givenUp
}

// inOrder sorts as mails go out: as they were taken, and never a reply before
// what it replies to.
func inOrder(entries []entry) []entry {
	slices.SortFunc(entries, func(a, b entry) int {
		switch {
		case a.Order != b.Order && a.Order < b.Order:
			return -1
		case a.Order != b.Order:
			return 1
		}
		return strings.Compare(a.Event.ID, b.Event.ID)
	})
	at := make(map[string]int, len(entries))
	for i, e := range entries {
		at[e.Event.ID] = i
	}
	out := make([]entry, 0, len(entries))
	placed := make([]bool, len(entries))
	var place func(i int)
	place = func(i int) {
		if placed[i] {
			return
		}
		placed[i] = true // before the visit: a circle of replies ends
		if j, ok := at[entries[i].Event.ReplyTo]; ok {
			place(j)
		}
		out = append(out, entries[i])
	}
	for i := range entries {
		place(i)
	}
	return out
}

// isMessageID tells what may stand between the brackets of a Message-ID here.
func isMessageID(id string) bool {
	return len(id) <= 250 && messageIDForm.MatchString(id)
}

var messageIDForm = regexp.MustCompile(`^[A-Za-z0-9._+=-]+@[A-Za-z0-9.-]+$`)
