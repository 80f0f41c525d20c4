package mail

import (
	"strings"
	"time"

	"karui/watchdog/event"
)

// noon is when everything happens in samples: 21:34:56 in Japan.
var noon = time.Date(2026, 3, 8, 12, 34, 56, 0, time.UTC)

// sample is an event with every field that its kind has.
func sample(kind event.Kind) event.Event {
	probe := func(ago time.Duration, failure, text string, took time.Duration) event.Probe {
		return event.Probe{URL: "https://karui.example.com/ping.jpg", At: noon.Add(-ago), Took: took, OK: failure == "", Kind: failure, Text: text}
	}
	const second = time.Second
	down := []event.Probe{
		probe(34*second, event.FailTimeout, "no answer within 5s", 5*second),
		probe(28*second, event.FailConnect, "connection refused", 2*time.Millisecond),
		probe(22*second, event.FailStatus, "503, text/plain", 40*time.Millisecond),
		probe(16*second, event.FailDNS, "no such host", 10*time.Millisecond),
		probe(10*second, event.FailBody, "200, image/jpeg, broken JPEG", 60*time.Millisecond),
	}
	up := []event.Probe{probe(0, "", "200, image/jpeg, 5.1 kB", 34*time.Millisecond)}
	e := event.Event{
		ID: "20260308t123456-abcdefghijklm-" + strings.ReplaceAll(string(kind), "_", "-"), Kind: kind, Site: "shop", At: noon,
		Since: noon.Add(-34 * second), Actor: event.ActorAuto, Probes: down,
		Origin: &event.Probe{URL: "https://origin.example.com/favicon.ico", At: noon.Add(-4 * second), Took: 20 * time.Millisecond, OK: true, Status: 404, Text: "404, text/html"},
		Controls: []event.Probe{
			{URL: "https://sts.amazonaws.com/", At: noon.Add(-4 * second), Took: 90 * time.Millisecond, OK: true, Status: 200, Text: "200"},
			{URL: "https://cloudfront.amazonaws.com/", At: noon.Add(-4 * second), Took: 5 * second, Kind: event.FailTimeout, Text: "no answer within 5s"},
		},
		Distribution: event.Distribution{ID: "E123EXAMPLE", Group: "images", Proxy: "karui-proxy", Direct: "origin-bucket"},
		RestoreMode:  "auto", GoodRounds: 2, Interval: 5 * time.Minute, Degrades: 1, SwapsToday: 1, MaxSwapsPerDay: 12,
		AfterRestore: "none",
		Commands: []event.Command{
			{For: event.ForStatus, Line: "karui-watchdog status shop"},
			{For: event.ForRestore, Line: "karui-watchdog restore shop"},
			{For: event.ForDegrade, Line: "karui-watchdog degrade shop"},
			{For: event.ForRehearse, Line: "karui-watchdog rehearse --config /etc/karui/watchdog.yaml --no-write shop"},
		},
	}
	swapped := func(before, after event.Order) {
		e.Before, e.After, e.ETagBefore, e.ETagAfter = before, after, "E2QWRUHEXAMPLE", "E3FYZCYEXAMPLE"
		e.Calls = []event.Call{
			{At: noon.Add(-3 * second), Action: "sts:AssumeRole", RequestID: "8d2d1f62-2a4b-4a06-9be7-000000000001", Outcome: "ok"},
			{At: noon.Add(-2 * second), Action: "cloudfront:GetDistributionConfig", RequestID: "8d2d1f62-2a4b-4a06-9be7-000000000002", Outcome: "ok"},
			{At: noon.Add(-1 * second), Action: "cloudfront:UpdateDistribution", RequestID: "8d2d1f62-2a4b-4a06-9be7-000000000003", Outcome: "ok"},
		}
	}
	still := func(o event.Order) { e.Before, e.After = o, o }
	healthy := func() { e.Up, e.Probes, e.Origin, e.Controls = true, up, nil, nil }
	degraded := func(since time.Duration) {
		e.DegradedSince = noon.Add(-since)
		e.ReplyTo = "20260307t103456-zyxwvutsrqpon-degrade"
	}
	const day = 24 * time.Hour
	switch kind {
	case event.Degrade:
		swapped(event.OrderProxy, event.OrderDirect)
		e.DegradedSince = noon
		e.Warnings = []event.Advice{{
			Text: "The failover criteria of the group lack 403.", Hint: "Add 403, so that a bucket that denies an object falls over as well.",
		}}
	case event.Restore:
		healthy()
		degraded(day + 2*time.Hour)
		swapped(event.OrderDirect, event.OrderProxy)
		e.Linger = &event.Linger{DefaultTTL: time.Hour, MaxTTL: day}
		e.AfterRestore = "invalidate"
		for _, name := range strings.Fields("images photos banner logos icons brand shop news blog press events") {
			e.InvalidatePaths = append(e.InvalidatePaths, "/"+name+"/*")
		}
	case event.SwapFailed:
		e.Want = event.OrderDirect
		still(event.OrderProxy)
		e.Calls = []event.Call{{At: noon, Action: "cloudfront:UpdateDistribution", RequestID: "8d2d1f62-2a4b-4a06-9be7-000000000003", Outcome: "AccessDenied"}}
		e.Failure = &event.Failure{
			Kind: "denied", Text: "the role may not do cloudfront:UpdateDistribution on distribution E123EXAMPLE",
			Hint: "add cloudfront:UpdateDistribution for arn:aws:cloudfront::111122223333:distribution/E123EXAMPLE to the role's policy",
		}
	case event.ManualAwaited:
		e.Want = event.OrderDirect
		still(event.OrderProxy)
	case event.OriginSilent:
		still(event.OrderProxy)
		e.Origin.OK, e.Origin.Kind, e.Origin.Text, e.Origin.Took = false, event.FailTLS, "certificate expired on 2026-03-08", 50*time.Millisecond
	case event.Drift:
		healthy()
		e.Before, e.After = event.OrderProxy, event.OrderDirect
		e.ETagAfter = "E3FYZCYEXAMPLE"
	case event.Flapping:
		still(event.OrderDirect)
		degraded(0)
		e.Degrades, e.SwapsToday, e.GoodRounds = 3, 5, 4
	case event.Capped:
		healthy()
		e.Want = event.OrderProxy
		still(event.OrderDirect)
		degraded(50 * time.Minute)
		e.Degrades, e.SwapsToday = 6, 11
	case event.Reminder:
		still(event.OrderDirect)
		degraded(3*day + 5*time.Hour)
	case event.Rehearsal:
		e = event.Event{ID: e.ID, Kind: kind, Site: e.Site, At: e.At, Commands: e.Commands[:1]}
	}
	return e
}

// variants are events whose mails differ from those of sample.
func variants() map[string]event.Event {
	out := make(map[string]event.Event)
	for _, kind := range event.Kinds() {
		out[string(kind)] = sample(kind)
	}
	change := func(name string, kind event.Kind, f func(e *event.Event)) {
		e := sample(kind)
		f(&e)
		out[string(kind)+"-"+name] = e
	}
	person := func(e *event.Event) { e.Actor, e.Person = event.ActorPerson, "yamada" }
	restored := sample(event.Restore)
	change("person", event.Degrade, person)
	change("rehearsal", event.Degrade, func(e *event.Event) { e.Actor = event.ActorRehearsal })
	change("manual-restore", event.Degrade, func(e *event.Event) { e.RestoreMode = "manual" })
	change("person", event.Restore, func(e *event.Event) { person(e); e.Linger, e.AfterRestore, e.InvalidatePaths = nil, "none", nil })
	change("rehearsal", event.Restore, func(e *event.Event) { e.Actor = event.ActorRehearsal })
	change("restore", event.SwapFailed, func(e *event.Event) {
		e.Want, e.Before, e.After, e.Up, e.Probes = event.OrderProxy, event.OrderDirect, event.OrderDirect, true, restored.Probes
	})
	change("person", event.SwapFailed, person)
	change("restore", event.ManualAwaited, func(e *event.Event) {
		e.Want, e.Before, e.After, e.Up, e.Probes = event.OrderProxy, event.OrderDirect, event.OrderDirect, true, restored.Probes
		e.RestoreMode, e.DegradedSince, e.ReplyTo = "manual", restored.DegradedSince, restored.ReplyTo
	})
	change("first-sight", event.Drift, func(e *event.Event) { e.Before, e.FirstSight = "", true })
	change("unknown", event.Drift, func(e *event.Event) { e.After = "" })
	change("proxy-down", event.Drift, func(e *event.Event) {
		down := sample(event.Degrade)
		e.Before, e.After, e.Up, e.Probes, e.Origin = event.OrderDirect, event.OrderProxy, false, down.Probes, down.Origin
	})
	change("manual", event.Flapping, func(e *event.Event) { e.RestoreMode = "manual" })
	change("degrade", event.Capped, func(e *event.Event) {
		down := sample(event.Degrade)
		e.Want, e.Before, e.After, e.Up, e.Probes = event.OrderDirect, event.OrderProxy, event.OrderProxy, false, down.Probes
		e.DegradedSince, e.ReplyTo = time.Time{}, ""
	})
	change("up", event.Reminder, func(e *event.Event) { e.Up, e.Probes, e.Origin, e.Controls = true, restored.Probes, nil, nil })
	return out
}
