package mail

import (
	"fmt"
	"strings"
	"time"

	"karui/watchdog/event"
	"karui/watchdog/settings"
)

// view is an event as templates see it: what is to be said, decided here, so that
// all languages say the same.
type view struct {
	event.Event
	language string
	zone     *time.Location
	now      time.Time
}

// What viewers see.
const (
	seeNotTold   = "not told"  // the event is not about them
	seeLighter   = "lighter"   // converted images, as is normal
	seeOriginals = "originals" // the true origin is first
	seeFailover  = "failover"  // the proxy is first and down: the edge falls over
	seeRisk      = "risk"      // neither answers
	seeUnknown   = "unknown"   // the group is not as configured
)

// Viewers is one of the words above.
func (v view) Viewers() string {
	switch {
	case v.Kind == event.Rehearsal:
		return seeNotTold
	case v.Kind == event.OriginSilent, v.Down() && v.Origin != nil && !v.Origin.OK:
		return seeRisk
	case v.Kind == event.Restore:
		return seeLighter
	case v.Kind == event.Degrade || v.Kind == event.Flapping || v.Kind == event.Reminder, v.After == event.OrderDirect:
		return seeOriginals
	case v.Kind == event.Drift && v.After == event.OrderUnknown:
		return seeUnknown
	case v.Down():
		return seeFailover
	case v.Kind == event.SwapFailed || v.Kind == event.ManualAwaited || v.Kind == event.Capped:
		// The order could not be read; what was wanted tells how things are.
		if v.Want == event.OrderProxy && v.After == event.OrderUnknown {
			return seeOriginals
		}
		if v.Want == event.OrderDirect && len(v.Probes) == 0 && v.Actor != event.ActorPerson {
			return seeFailover
		}
	}
	if v.After == event.OrderProxy {
		return seeLighter
	}
	return seeUnknown
}

// Entry is the entry of the runbook about mails of this kind, empty for a kind from
// a later version.
func (v view) Entry() string { return states[v.Kind] }

// Down tells that the round found the proxy down.
func (v view) Down() bool { return len(v.Probes) > 0 && !v.Up }

// Wants tells the direction that SwapFailed, ManualAwaited and Capped are about.
func (v view) Wants() string {
	if v.Want == event.OrderProxy {
		return "restore"
	}
	return "degrade"
}

// Manual tells that a restore is left to a person.
func (v view) Manual() bool { return v.RestoreMode == settings.Manual }

// ByPerson tells who brought it about, as does ByRehearsal.
func (v view) ByPerson() bool    { return v.Actor == event.ActorPerson }
func (v view) ByRehearsal() bool { return v.Actor == event.ActorRehearsal }

// Cmd is the command line for a purpose, empty if the event has none.
func (v view) Cmd(purpose string) string {
	for _, c := range v.Commands {
		if c.For == purpose {
			return c.Line
		}
	}
	return ""
}

// local is a time in the zone, or in UTC if there is none.
func (v view) local(t time.Time) time.Time {
	if v.zone == nil {
		return t.UTC()
	}
	return t.In(v.zone)
}

// Time shows a moment in the zone, and in UTC.
func (v view) Time(t time.Time) string {
	const layout = "2006-01-02 15:04:05"
	utc := t.UTC().Format(layout) + " UTC"
	local := v.local(t)
	if _, offset := local.Zone(); offset == 0 {
		return utc
	}
	return local.Format(layout+" MST") + " (" + utc + ")"
}

// Clock shows the time of day in the zone.
func (v view) Clock(t time.Time) string { return v.local(t).Format("15:04:05") }

// Zone names the zone of Clock.
func (v view) Zone() string {
	if v.zone == nil {
		return "UTC"
	}
	name, _ := v.At.In(v.zone).Zone()
	return name
}

// Dur shows a duration in at most two units, rounded down.
func (v view) Dur(d time.Duration) string {
	units := []struct {
		size   time.Duration
		en, ja string
	}{{24 * time.Hour, " d", "日"}, {time.Hour, " h", "時間"}, {time.Minute, " min", "分"}, {time.Second, " s", "秒"}}
	var parts []string
	for _, u := range units {
		n := d / u.size
		d %= u.size
		if n == 0 && len(parts) == 0 {
			continue
		}
		if n > 0 {
			if v.language == settings.Japanese {
				parts = append(parts, fmt.Sprintf("%d%s", n, u.ja))
			} else {
				parts = append(parts, fmt.Sprintf("%d%s", n, u.en))
			}
		}
		if len(parts) == 2 || n == 0 {
			break
		}
	}
	if len(parts) == 0 {
		return v.words("less than 1 s", "1秒未満")
	}
	if v.language == settings.Japanese {
		return strings.Join(parts, "")
	}
	return strings.Join(parts, " ")
}

// Took shows how long a request took.
func (v view) Took(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d%s", d.Milliseconds(), v.words(" ms", "ミリ秒"))
	}
	return fmt.Sprintf("%.1f%s", d.Seconds(), v.words(" s", "秒"))
}

// For is how long it has been so at the event's time; empty if that is not
// known or not a second yet.
func (v view) For(since time.Time) string {
	if since.IsZero() || v.At.Sub(since) < time.Second {
		return ""
	}
	return v.Dur(v.At.Sub(since))
}

// Late is how much later than the event the mail is made, empty if it is not
// worth a word: outages of the mail server are told, retries are not.
func (v view) Late() string {
	if v.now.IsZero() || v.now.Sub(v.At) < 10*time.Minute {
		return ""
	}
	return v.Dur(v.now.Sub(v.At))
}

// PingURL is what the probes asked.
func (v view) PingURL() string {
	if len(v.Probes) == 0 {
		return ""
	}
	return v.Probes[0].URL
}

// FirstPaths are the paths that are shown, MorePaths counts the others.
func (v view) FirstPaths() []string { return v.InvalidatePaths[:min(len(v.InvalidatePaths), maxPaths)] }
func (v view) MorePaths() int       { return max(0, len(v.InvalidatePaths)-maxPaths) }

const maxPaths = 10

// ControlsOK counts the controls that answered.
func (v view) ControlsOK() int {
	n := 0
	for _, c := range v.Controls {
		if c.OK {
			n++
		}
	}
	return n
}

// Sentence ends a text with a full stop and begins it with a capital.
func (v view) Sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimRight(text[1:], ". ") + "."
}

// Inc makes a list number of an index.
func (v view) Inc(i int) int { return i + 1 }

func (v view) words(en, ja string) string {
	if v.language == settings.Japanese {
		return ja
	}
	return en
}
