package retry

import "testing"

// The rows of the table, at every level and with every place that a second try
// could have.
func TestTable(t *testing.T) {
	url, place, both, none := Around{URL: true}, Around{Place: true}, Around{URL: true, Place: true}, Around{}
	type want map[Around][4]Next // by level
	const s, u, p = Stop, SamePlace, AnotherPlace
	for _, row := range []struct {
		name string
		fate Fate
		sick bool
		want want
	}{
		{"unavailable", Unavailable, false, want{none: {s, s, s, s}, url: {s, u, u, u}, place: {s, s, p, p}, both: {s, u, p, p}}},
		{"unavailable, sick", Unavailable, true, want{none: {s, s, s, s}, url: {s, u, u, u}, place: {s, s, p, p}, both: {s, u, p, p}}},
		{"timeout under 10 %", TimedOut, false, want{none: {s, s, s, s}, url: {s, u, u, u}, place: {s, s, p, p}, both: {s, u, u, p}}},
		{"timeout from 10 %", TimedOut, true, want{none: {s, s, s, s}, url: {s, s, s, s}, place: {s, s, p, p}, both: {s, s, p, p}}},
		{"429 or 503", Overloaded, false, want{none: {s, s, s, s}, url: {s, s, s, s}, place: {s, s, p, p}, both: {s, s, p, p}}},
		{"429 or 503, sick", Overloaded, true, want{none: {s, s, s, s}, url: {s, s, s, s}, place: {s, s, p, p}, both: {s, s, p, p}}},
		{"any other answer", Answered, false, want{none: {s, s, s, s}, url: {s, s, s, s}, place: {s, s, s, s}, both: {s, s, s, s}}},
		{"given up", Void, true, want{none: {s, s, s, s}, url: {s, s, s, s}, place: {s, s, s, s}, both: {s, s, s, s}}},
	} {
		for around, levels := range row.want {
			for level, next := range levels {
				if got := After(Policy{Level: level}, row.fate, row.sick, around); got != next {
					t.Errorf("%s, level %d, %+v: %s, want %s", row.name, level, around, got, next)
				}
				if got := After(Policy{Level: level, Off: true}, row.fate, row.sick, around); got != Stop {
					t.Errorf("%s, level %d, %+v, off: %s", row.name, level, around, got)
				}
			}
		}
	}
}

func TestATryThatNothingFollowsGetsAllTheTime(t *testing.T) {
	for _, tc := range []struct {
		policy Policy
		sick   bool
		around Around
		want   bool
	}{
		{Policy{Level: 2}, false, Around{}, false},
		{Policy{Level: 2}, false, Around{Place: true}, true},
		{Policy{Level: 2}, true, Around{Place: true}, true},
		{Policy{Level: 1}, false, Around{Place: true}, false},
		{Policy{Level: 1}, false, Around{URL: true}, true},
		{Policy{Level: 0}, false, Around{URL: true, Place: true}, false},
		{Policy{Level: 3, Off: true}, false, Around{URL: true, Place: true}, false},
	} {
		if got := MayFollow(tc.policy, tc.sick, tc.around); got != tc.want {
			t.Errorf("%+v, sick %t, %+v: %t", tc.policy, tc.sick, tc.around, got)
		}
	}
}

func TestWordsAreStable(t *testing.T) {
	for fate, word := range map[Fate]string{
		Answered: "answered", Unavailable: "unavailable", TimedOut: "timeout", Overloaded: "overloaded", Void: "void", 0: "unknown",
	} {
		if fate.String() != word {
			t.Errorf("%d is %s", fate, fate)
		}
	}
	for next, word := range map[Next]string{Stop: "stop", SamePlace: "same place", AnotherPlace: "another place", 0: "unknown"} {
		if next.String() != word {
			t.Errorf("%d is %s", next, next)
		}
	}
}
