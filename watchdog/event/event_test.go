package event_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"testing"
	"time"

	"karui/watchdog/distribution"
	"karui/watchdog/event"
)

func TestIDs(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("JST", 9*3600))
	a, b := event.NewID(at), event.NewID(at)
	if form := regexp.MustCompile(`^20260101t180405-[a-z0-9]{13}$`); !form.MatchString(a) || !form.MatchString(b) || a == b {
		t.Errorf("%s %s", a, b)
	}
	if later := event.NewID(at.Add(time.Second)); later <= a {
		t.Errorf("%s does not sort after %s", later, a)
	}
}

func TestEventsSurviveBeingWrittenDown(t *testing.T) {
	e := event.Event{
		ID: "x", Kind: event.Restore, At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Probes: []event.Probe{{Took: time.Second, OK: true}},
		Origin: &event.Probe{Kind: event.FailDNS}, Linger: &event.Linger{MaxTTL: time.Hour}, Failure: &event.Failure{Kind: "denied"},
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var again event.Event
	if err := json.Unmarshal(data, &again); err != nil || !reflect.DeepEqual(e, again) {
		t.Errorf("%v\n%+v\n%+v", err, e, again)
	}
}

func TestOrdersAreThoseOfTheClient(t *testing.T) {
	for own, client := range map[event.Order]distribution.Order{
		event.OrderUnknown: distribution.OrderUnknown, event.OrderProxy: distribution.OrderProxy, event.OrderDirect: distribution.OrderDirect,
	} {
		if string(own) != string(client) {
			t.Errorf("%q and %q", own, client)
		}
	}
}
