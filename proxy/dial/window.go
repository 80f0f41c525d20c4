package dial

import (
	"fmt"
	"strings"
	"time"
)

// Window is a time at which at least a level is in force.
type Window struct {
	Name  string
	Level int
	// zone is that of local times and days.
	zone *time.Location
	// from and to are the ends, for a window that is once.
	from, to time.Time
	// begin and end are hours and minutes, for one that is every day.
	daily      bool
	begin, end time.Duration
}

// The forms of the ends of a window.
const (
	localForm = "2006-01-02T15:04"
	dayForm   = "15:04"

	wantInstant = "a time such as 2026-08-01T18:00:00+09:00, 2026-08-01T18:00 with a zone, or 18:00 for every day"
)

// WindowError says what cannot be used of a window.
type WindowError struct {
	// Field is from, to or zone.
	Field, Value string
	// Want is what it must be.
	Want string
}

// Error implements error.
func (e *WindowError) Error() string {
	return fmt.Sprintf("%s is %q: it must be %s", e.Field, e.Value, e.Want)
}

// WindowErrors are all that cannot be used of a window.
type WindowErrors []*WindowError

// Error implements error.
func (list WindowErrors) Error() string {
	words := make([]string, len(list))
	for i, e := range list {
		words[i] = e.Error()
	}
	return strings.Join(words, "; ")
}

// ParseWindow reads a window; an error is [WindowErrors]. The ends are both RFC 3339 times
// (2026-08-01T18:00:00+09:00), both local times (2026-08-01T18:00), or both times of
// every day (18:00), which go over midnight where the end is not later than the
// begin. Zone is a name such as Asia/Tokyo; empty means UTC.
//
// Where clocks are set back and a time comes twice, a window begins with the first
// and ends with the second; a time that is left out is taken as if clocks had not
// been set forward. So no window is shorter than its ends say, but for the hour that
// the day itself is.
func ParseWindow(name, from, to, zone string, level int) (Window, error) {
	w := Window{Name: name, Level: level, zone: time.UTC}
	var wrong WindowErrors
	refuse := func(field, value, want string) { wrong = append(wrong, &WindowError{field, value, want}) }
	if zone != "" {
		l, err := time.LoadLocation(zone)
		if err != nil || strings.EqualFold(zone, "local") {
			refuse("zone", zone, "the name of a time zone, such as Asia/Tokyo")
		} else {
			w.zone = l
		}
	}
	begin, fromErr := time.Parse(dayForm, from)
	end, toErr := time.Parse(dayForm, to)
	switch {
	case fromErr == nil && toErr != nil:
		refuse("to", to, "a time of day such as 23:00, as from is")
	case fromErr == nil:
		w.daily, w.begin, w.end = true, sinceMidnight(begin), sinceMidnight(end)
	default:
		if w.from, fromErr = w.instant(from, false); fromErr != nil {
			refuse("from", from, wantInstant)
		}
		var err error
		w.to, err = w.instant(to, true)
		switch {
		case fromErr != nil && (err == nil || toErr == nil): // it is of a form that from may have meant
		case err != nil:
			refuse("to", to, wantInstant)
		case len(wrong) == 0 && !w.from.Before(w.to):
			refuse("to", to, "later than from ("+from+")")
		}
	}
	if len(wrong) > 0 {
		return Window{}, wrong
	}
	return w, nil
}

func sinceMidnight(t time.Time) time.Duration {
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
}

// instant reads one end of a window that is once. Last is whether the second is
// meant of two times that read the same.
func (w *Window) instant(text string, last bool) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	t, err := time.Parse(localForm, text)
	if err != nil {
		return time.Time{}, err
	}
	return local(t, w.zone, last), nil
}

// local gives the instant at which clocks of the zone show what t shows.
func local(t time.Time, zone *time.Location, last bool) time.Time {
	// No zone changes its clocks twice within two days.
	before := t.Add(-offset(t.Add(-24*time.Hour), zone))
	after := t.Add(-offset(t.Add(24*time.Hour), zone))
	shows := func(at time.Time) bool {
		return at.In(zone).Format(time.DateTime) == t.Format(time.DateTime)
	}
	switch {
	case shows(before) && shows(after):
		if last && after.After(before) || !last && after.Before(before) {
			return after.In(zone)
		}
		return before.In(zone)
	case shows(after):
		return after.In(zone)
	}
	return before.In(zone) // also for a time that is left out
}

// offset gives what clocks of the zone are ahead of UTC.
func offset(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// at tells whether the window is open, and if so until when.
func (w *Window) at(now time.Time) (until time.Time, open bool) {
	if !w.daily {
		return w.to, !now.Before(w.from) && now.Before(w.to)
	}
	y, m, d := now.In(w.zone).Date()
	for _, day := range []int{d - 1, d} {
		midnight := time.Date(y, m, day, 0, 0, 0, 0, time.UTC)
		end := midnight.Add(w.end)
		if w.end <= w.begin {
			end = midnight.AddDate(0, 0, 1).Add(w.end)
		}
		from, to := local(midnight.Add(w.begin), w.zone, false), local(end, w.zone, true)
		if !now.Before(from) && now.Before(to) {
			return to, true
		}
	}
	return time.Time{}, false
}

// open gives the window in force with the highest level, nil for none.
func open(windows []Window, now time.Time) (w *Window, until time.Time) {
	for i := range windows {
		end, ok := windows[i].at(now)
		if ok && (w == nil || windows[i].Level > w.Level || windows[i].Level == w.Level && end.After(until)) {
			w, until = &windows[i], end
		}
	}
	return w, until
}
