package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"karui/internal/api"
	"karui/internal/page"
	"karui/proxy/origin"
)

// maxAtOnce bounds the events that one look may find of a kind; the rest is one more.
const maxAtOnce = 20

// changes gives what happened between two looks.
func changes(before, after *Facts) []Event {
	var events []Event
	for _, found := range [][]Event{
		dialChanges(before, after), shedChanges(before, after), latencyChanges(before, after), healthChanges(before, after),
		volumeChanges(before, after), workerChanges(before, after), quarantineChanges(before, after), placeChanges(before, after),
	} {
		if n := len(found); n > maxAtOnce {
			more := Event{At: after.At, Kind: found[0].Kind, Tone: found[0].Tone, Machine: true, Text: fmt.Sprintf("and %d more of the same kind", n-maxAtOnce)}
			found = append(found[:maxAtOnce:maxAtOnce], more)
		}
		events = append(events, found...)
	}
	return events
}

func dialChanges(before, after *Facts) []Event {
	var events []Event
	for _, m := range slices.Backward(after.Dial.Moves) {
		if !slices.Contains(before.Dial.Moves, m) {
			events = append(events, dialEvent(m))
		}
	}
	return events
}

func dialEvent(m Move) Event {
	e := Event{At: m.At, Kind: "dial", Site: m.Site, Tone: toneWarn, Text: fmt.Sprintf("The dial went from %s to %s", m.From, m.To), Cause: causeOf(m)}
	if m.Level == 0 {
		e.Tone = toneGood
	}
	return e
}

// causeOf says why the dial moved, in words.
func causeOf(m Move) string {
	if m.Detail != "" {
		return m.Detail
	}
	switch m.Cause {
	case "load":
		return "the workers have too much to do"
	case "calm":
		return "the workers have had time for a while"
	case "pin":
		return "an operator's word"
	case "expiry":
		return "the time of an operator's setting is over"
	case "schedule":
		return "the schedule"
	case "config":
		return "the configuration"
	case "restart":
		return "what was set before the restart"
	}
	return m.Cause
}

func shedChanges(before, after *Facts) []Event {
	var events []Event
	ids := map[string]bool{}
	for id := range before.Shed {
		ids[id] = true
	}
	for id := range after.Shed {
		ids[id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		was, is := before.Shed[id].Percent, after.Shed[id].Percent
		switch {
		case is > 0 && was != is:
			events = append(events, Event{
				At: after.At, Kind: "shedding", Site: id, Tone: toneWarn, Cause: "an operator's word" + until(after.Shed[id].Until),
				Text: fmt.Sprintf("%g %% of requests are turned away", is),
			})
		case was > 0 && is == 0:
			events = append(events, Event{At: after.At, Kind: "shedding", Site: id, Tone: toneGood, Text: "Operators turn nothing away any more"})
		}
	}
	return events
}

func until(at time.Time) string {
	if at.IsZero() {
		return ", until it is changed"
	}
	return ", until " + at.UTC().Format("Jan 2 15:04 UTC")
}

type groupName struct{ name, site string }

func (g groupName) words() string {
	switch {
	case g.site != "":
		return "Fetches of new pictures"
	case g.name == "hits":
		return "Answers from the cache"
	}
	return "Requests of all kinds together"
}

func latencyChanges(before, after *Facts) []Event {
	shed := func(f *Facts) map[groupName]Group {
		out := map[groupName]Group{}
		for _, g := range f.Groups {
			if g.Shedding {
				out[groupName{g.Name, g.Site}] = g
			}
		}
		return out
	}
	was, is := shed(before), shed(after)
	var events []Event
	for _, g := range after.Groups {
		key := groupName{g.Name, g.Site}
		if _, already := was[key]; already || !g.Shedding {
			continue
		}
		events = append(events, Event{
			At: timeOf(g.Since, after.At), Kind: "shedding", Site: g.Site, Tone: toneBad,
			Text:  key.words() + " are turned away with 503 latency",
			Cause: fmt.Sprintf("their mean time to the first byte reached %s", page.Took(after.Limits.Latency)),
		})
	}
	for _, g := range before.Groups {
		key := groupName{g.Name, g.Site}
		if _, still := is[key]; still || !g.Shedding {
			continue
		}
		events = append(events, Event{
			At: after.At, Kind: "shedding", Site: g.Site, Tone: toneGood, Text: key.words() + " are answered again",
			Cause: "the last samples were quick, or none came for " + page.Long(after.Limits.Window),
		})
	}
	return events
}

// timeOf gives the time that is known, else that at which it was noticed.
func timeOf(known, noticed time.Time) time.Time {
	if known.IsZero() || known.After(noticed) {
		return noticed
	}
	return known
}

func healthChanges(before, after *Facts) []Event {
	var events []Event
	switch {
	case before.Ready && !after.Ready:
		events = append(events, Event{At: after.At, Kind: "health", Tone: toneBad, Text: "Not ready: /readyz and the ping fail", Cause: "it drains, or conversions fail"})
	case !before.Ready && after.Ready:
		events = append(events, Event{At: after.At, Kind: "health", Tone: toneGood, Text: "Ready: /readyz and the ping succeed"})
	}
	switch {
	case before.Reloaded && !after.Reloaded:
		events = append(events, Event{At: after.At, Kind: "configuration", Machine: true, Tone: toneBad, Text: "The configuration cannot be used and stays as it was", Cause: "the log says why"})
	case after.Reloaded && !after.ReloadedAt.Equal(before.ReloadedAt):
		events = append(events, Event{At: timeOf(after.ReloadedAt, after.At), Kind: "configuration", Machine: true, Tone: tonePlain, Text: "The configuration was reloaded"})
	}
	switch {
	case !before.DiskFull && after.DiskFull:
		events = append(events, Event{
			At: after.At, Kind: "shedding", Tone: toneBad, Text: "All requests are turned away with 503 disk",
			Cause: fmt.Sprintf("every volume is out of use or at %g %% and over (disk.stress)", after.Limits.Stress),
		})
	case before.DiskFull && !after.DiskFull:
		events = append(events, Event{At: after.At, Kind: "shedding", Tone: toneGood, Text: "Requests are answered again", Cause: "a disk has room"})
	}
	return events
}

func volumeChanges(before, after *Facts) []Event {
	if before.Cache == nil || after.Cache == nil {
		return nil
	}
	was := map[string]string{}
	for _, v := range before.Cache.Volumes {
		was[v.Path] = v.State
	}
	var events []Event
	for _, v := range after.Cache.Volumes {
		if state, known := was[v.Path]; !known || state == v.State {
			continue
		}
		e := Event{At: after.At, Kind: "volume", Machine: true, Tone: toneBad}
		switch v.State {
		case "ok":
			e.Tone, e.Text = toneGood, fmt.Sprintf("Volume %s is in use again", v.Path)
		case volumeOut:
			e.Text, e.Cause = fmt.Sprintf("Volume %s is out of use", v.Path), "its disk gives errors; it is tried again each minute"
		default:
			e.Tone, e.Text = toneWarn, fmt.Sprintf("Volume %s is now %s", v.Path, v.State)
		}
		events = append(events, e)
	}
	return events
}

// peaceful are the ends of workers that nobody needs to hear of.
func peaceful(cause string) bool {
	return cause == "closed" || cause == "recycled" || cause == "unused"
}

func workerChanges(before, after *Facts) []Event {
	if before.Workers == nil || after.Workers == nil {
		return nil
	}
	var events []Event
	for _, cause := range slices.Sorted(maps.Keys(after.Workers.Ended)) {
		was, is := before.Workers.Ended[cause], after.Workers.Ended[cause]
		if is <= was || peaceful(cause) {
			continue
		}
		events = append(events, Event{
			At: after.At, Kind: "workers", Machine: true, Tone: toneWarn, Text: page.Plural(is-was, "worker process") + " ended and is replaced",
			Cause: cause + ": " + endedWords(cause),
		})
		if is-was > 1 {
			events[len(events)-1].Text = page.Count(is-was) + " worker processes ended and are replaced"
		}
	}
	return events
}

func endedWords(cause string) string {
	switch cause {
	case "crash":
		return "it died while it converted"
	case "idle":
		return "it died between jobs"
	case "timeout":
		return "it took longer than convert.timeout"
	case "memory":
		return "it outgrew convert.worker_memory"
	case "garbage":
		return "what it sent made no sense"
	case "start":
		return "it could not be started"
	case "stopped":
		return "somebody had stopped it, or it took no job"
	}
	return "see the log"
}

func quarantineChanges(before, after *Facts) []Event {
	held := func(f *Facts) map[string]api.Quarantined {
		out := map[string]api.Quarantined{}
		for _, q := range f.Quarantine {
			if q.Held {
				out[q.Digest] = q
			}
		}
		return out
	}
	was, is := held(before), held(after)
	var events []Event
	for _, q := range after.Quarantine {
		if _, already := was[q.Digest]; q.Held && !already {
			events = append(events, Event{
				At: after.At, Kind: "quarantine", Machine: true, Tone: toneWarn, Cause: q.Cause + ": it ended a worker",
				Text: fmt.Sprintf("Original %.12s is left alone until %s", q.Digest, q.Until.UTC().Format("Jan 2 15:04 UTC")),
			})
		}
	}
	for _, q := range before.Quarantine {
		if _, still := is[q.Digest]; q.Held && !still {
			e := Event{At: after.At, Kind: "quarantine", Machine: true, Tone: tonePlain, Text: fmt.Sprintf("Original %.12s may be tried again", q.Digest), Cause: "an operator's word"}
			if !after.At.Before(q.Until) {
				e.Cause = "its time is over"
			}
			events = append(events, e)
		}
	}
	return events
}

func placeChanges(before, after *Facts) []Event {
	was := map[placeName]origin.State{}
	retries := map[string]string{}
	for _, p := range before.Places {
		retries[p.Site] = p.Retries
		for _, one := range p.Places {
			was[placeName{p.Site, one.Name}] = one.State
		}
	}
	var events []Event
	for _, p := range after.Places {
		for _, one := range p.Places {
			name := placeName{p.Site, one.Name}
			state, known := was[name]
			if !known {
				continue
			}
			if state == one.State {
				events = append(events, silence(after, name, one, before.silent[name], after.silent[name])...)
				continue
			}
			e := Event{At: after.At, Kind: "place", Site: p.Site, Text: fmt.Sprintf("Place %s is %s", one.Name, one.State)}
			e.Tone, e.Cause = placeWords(one, state)
			events = append(events, e)
		}
		if mode, known := retries[p.Site]; known && mode != p.Retries {
			e := Event{At: after.At, Kind: "retries", Site: p.Site, Tone: toneWarn, Text: "Second tries are " + p.Retries}
			switch p.Retries {
			case "on":
				e.Tone, e.Cause = toneGood, "few tries fail, or an operator's word"
				if nothingTried(p) {
					e.Tone, e.Cause = tonePlain, "nothing was tried for a minute, or an operator's word"
				}
			case "cut":
				e.Cause = "too many tries fail"
			default:
				e.Cause = "an operator's word, or the configuration" + strings.TrimSuffix(until(p.Until), ", until it is changed")
			}
			events = append(events, e)
		}
	}
	return events
}

// silence tells of a place that answers nothing any more, or again. One that answered
// nothing and was not asked for a minute may still do so: that is no event.
func silence(f *Facts, name placeName, p origin.PlaceStatus, was, is bool) []Event {
	e := Event{At: f.At, Kind: "place", Site: name.site}
	switch failed := failedTries(p); {
	case is && !was:
		e.Tone, e.Text = toneBad, fmt.Sprintf("Place %s answers nothing", p.Name)
		e.Cause = fmt.Sprintf("%s of %s tries within a minute failed", page.Count(failed), page.Count(p.Tries))
		if p.LastFailure != "" {
			e.Cause += ": " + p.LastFailure
		}
	case was && !is:
		e.Tone, e.Text = toneGood, fmt.Sprintf("Place %s answers again", p.Name)
	default:
		return nil
	}
	return []Event{e}
}

// nothingTried tells whether no place of a site was asked within the last minute.
func nothingTried(site origin.PlacesStatus) bool {
	return !slices.ContainsFunc(site.Places, func(p origin.PlaceStatus) bool { return p.Tries > 0 })
}

func placeWords(p origin.PlaceStatus, before origin.State) (tone, cause string) {
	switch p.State {
	case origin.StateOut:
		return toneWarn, "an operator's word" + until(p.Until)
	case origin.StateSick:
		return toneWarn, fmt.Sprintf("of %s tries within a minute, %d timed out and %d found it unavailable", page.Count(p.Tries), p.TimedOut, p.Unavailable)
	case origin.StateDown:
		return toneBad, "it was unavailable several times in a row; a heartbeat tells when it is back"
	case origin.StateIn:
		if before == origin.StateOut {
			return toneGood, "an operator's word, or its time is over"
		}
		return toneGood, "it answers again"
	}
	return tonePlain, ""
}
