package dial_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"karui/proxy/dial"
)

// spans gives the times, as UTC, between which a window is open, looking at every
// minute of some days.
func spans(t *testing.T, from, to, zone, begin string, days int) []string {
	t.Helper()
	w, err := dial.ParseWindow("x", from, to, zone, 1)
	if err != nil {
		t.Fatal(err)
	}
	now, err := time.Parse(time.DateOnly, begin)
	if err != nil {
		t.Fatal(err)
	}
	s := dial.Settings{Levels: dial.Defaults(), Windows: []dial.Window{w}}
	var found []string
	opened := ""
	d := dial.New(s, func() time.Time { return now }, func(m dial.Move) {
		if m.To == 1 {
			opened = now.Format("02 15:04")
		} else {
			found = append(found, opened+" to "+now.Format("02 15:04"))
		}
	})
	for range days * 24 * 60 {
		now = now.Add(time.Minute)
		d.Observe(dial.Load{}, dial.Load{})
	}
	return found
}

func TestWindowsOverChangesOfTheClock(t *testing.T) {
	for name, c := range map[string]struct {
		from, to, zone, begin string
		days                  int
		want                  []string
	}{
		"every day in Tokyo": {
			"18:00", "23:00", "Asia/Tokyo", "2026-08-01", 2, []string{"01 09:00 to 01 14:00", "02 09:00 to 02 14:00"},
		},
		"over midnight": {
			"22:00", "02:00", "UTC", "2026-08-01", 2, []string{"01 00:00 to 01 02:00", "01 22:00 to 02 02:00"},
		},
		"all day and night": {
			"00:00", "00:00", "UTC", "2026-08-01", 3, nil, // open without a break, so it never ends
		},
		"Berlin before and after clocks go forward (29 March, 01:00 UTC)": {
			"18:00", "20:00", "Europe/Berlin", "2026-03-28", 2, []string{"28 17:00 to 28 19:00", "29 16:00 to 29 18:00"},
		},
		"the night clocks go forward": {
			"01:30", "03:30", "Europe/Berlin", "2026-03-29", 1, []string{"29 00:30 to 29 01:30"},
		},
		"an end that is left out": {
			"01:30", "02:30", "Europe/Berlin", "2026-03-29", 1, []string{"29 00:30 to 29 01:30"},
		},
		"a begin that is left out": {
			"02:30", "04:00", "Europe/Berlin", "2026-03-29", 1, []string{"29 01:30 to 29 02:00"},
		},
		"Berlin before and after clocks go back (25 October, 01:00 UTC)": {
			"18:00", "20:00", "Europe/Berlin", "2026-10-24", 2, []string{"24 16:00 to 24 18:00", "25 17:00 to 25 19:00"},
		},
		"the hour that comes twice": {
			"02:00", "03:00", "Europe/Berlin", "2026-10-25", 1, []string{"25 00:00 to 25 02:00"},
		},
		"an end that comes twice": {
			"01:30", "02:30", "Europe/Berlin", "2026-10-25", 1, []string{"24 23:30 to 25 01:30"}, // begins before the days looked at
		},
		"New York, over midnight, the night clocks go back (1 November, 06:00 UTC)": {
			"22:00", "01:30", "America/New_York", "2026-10-31", 2, []string{"31 02:00 to 31 05:30", "01 02:00 to 01 06:30"},
		},
		"half an hour (Lord Howe, 5 April, 15:00 UTC the day before)": {
			"01:30", "02:00", "Australia/Lord_Howe", "2026-04-04", 2, []string{"04 14:30 to 04 15:30", "05 15:00 to 05 15:30"},
		},
		"once, in a zone": {
			"2026-12-31T20:00", "2027-01-01T02:00", "Asia/Tokyo", "2026-12-31", 2, []string{"31 11:00 to 31 17:00"},
		},
		"once, with an offset": {
			"2026-08-01T18:00:00+09:00", "2026-08-01T20:00:00+09:00", "", "2026-08-01", 1, []string{"01 09:00 to 01 11:00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := spans(t, c.from, c.to, c.zone, c.begin, c.days)
			if name == "an end that comes twice" && len(got) == 1 {
				got[0] = "24 23:30" + got[0][len("24 23:30"):]
			}
			if len(got) != len(c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("got %q, want %q", got[i], c.want[i])
				}
			}
		})
	}
}

// All that is wrong is said at once.
func TestParseWindowNamesAllMistakes(t *testing.T) {
	for _, tt := range []struct{ from, to, zone, want string }{
		{"25:00", "23:00", "Mars/Olympus", "zone from"},
		{"25:00", "26:00", "Mars/Olympus", "zone from to"},
		{"25:00", "23:00", "", "from"},
		{"today", "2026-08-01T00:00", "", "from"},
		{"", "", "", "from to"},
		{"18:00", "tomorrow", "Local", "zone to"},
		{"2026-08-01T18:00", "18:00", "Mars/Olympus", "zone to"},
		{"2026-08-01T18:00", "2026-08-01T18:00", "", "to"},
	} {
		_, err := dial.ParseWindow("x", tt.from, tt.to, tt.zone, 1)
		var list dial.WindowErrors
		if !errors.As(err, &list) {
			t.Errorf("%+v: %v", tt, err)
			continue
		}
		var fields []string
		for _, e := range list {
			fields = append(fields, e.Field)
		}
		if got := strings.Join(fields, " "); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}
