package rules

import "testing"

func TestNoneMatches(t *testing.T) {
	const tag = `"k-0123"`
	tests := []struct {
		name  string
		lines []string
		etag  string
		want  bool
	}{
		{"absent", nil, tag, false},
		{"same", []string{`"k-0123"`}, tag, true},
		{"another", []string{`"abc"`}, tag, false},
		{"weak from the viewer", []string{`W/"k-0123"`}, tag, true},
		{"weak from the origin", []string{`"a"`}, `W/"a"`, true},
		{"list", []string{`"x", W/"y" ,"k-0123"`}, tag, true},
		{"several lines", []string{`"x"`, `"k-0123"`}, tag, true},
		{"comma inside a tag", []string{`"x,k-0123"`}, tag, false},
		{"the very tag has a comma", []string{`"z", "a,b"`}, `"a,b"`, true},
		{"star", []string{"*"}, tag, true},
		{"star without a tag", []string{" * "}, "", true},
		{"no tag", []string{`""`}, "", false},
		{"garbage", []string{`k-0123`}, tag, false},
		{"empty tag", []string{`""`}, `""`, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := NoneMatches(test.lines, test.etag); got != test.want {
				t.Errorf("NoneMatches(%q, %q) = %v, want %v", test.lines, test.etag, got, test.want)
			}
		})
	}
}

func TestRangeMatches(t *testing.T) {
	tests := []struct {
		ifRange, etag string
		want          bool
	}{
		{`"a"`, `"a"`, true},
		{` "a" `, `"a"`, true},
		{`"a"`, `"b"`, false},
		{`W/"a"`, `W/"a"`, false},
		{`W/"a"`, `"a"`, false},
		{`"a"`, `W/"a"`, false},
		{"", "", false},
		{"", `"a"`, false},
		{`""`, `""`, false},
		{"Tue, 03 Nov 2026 11:59:00 GMT", `"a"`, false},
	}
	for _, test := range tests {
		if got := RangeMatches(test.ifRange, test.etag); got != test.want {
			t.Errorf("RangeMatches(%q, %q) = %v, want %v", test.ifRange, test.etag, got, test.want)
		}
	}
}

func TestParseRange(t *testing.T) {
	tests := []struct {
		value         string
		start, length int64
		ok            bool
	}{
		{"bytes=0-0", 0, 1, true},
		{"bytes=10-", 10, 90, true},
		{"bytes=10-19", 10, 10, true},
		{"bytes=90-1000", 90, 10, true},
		{"bytes=-5", 95, 5, true},
		{"bytes=-500", 0, 100, true},
		{"bytes= 1 - 2 ", 1, 2, true},
		{"bytes=-0", 0, 0, false},
		{"bytes=100-", 0, 0, false},
		{"bytes=5-4", 0, 0, false},
		{"bytes=0-1,5-6", 0, 0, false},
		{"bytes=", 0, 0, false},
		{"bytes=-", 0, 0, false},
		{"bytes=+1-2", 0, 0, false},
		{"bytes=99999999999999999999-", 0, 0, false},
		{"items=0-1", 0, 0, false},
		{"", 0, 0, false},
	}
	for _, test := range tests {
		start, length, ok := ParseRange(test.value, 100)
		if start != test.start || length != test.length || ok != test.ok {
			t.Errorf("ParseRange(%q, 100) = %d, %d, %v; want %d, %d, %v", test.value, start, length, ok, test.start, test.length, test.ok)
		}
	}
	if _, _, ok := ParseRange("bytes=0-", 0); ok {
		t.Error("an empty body has no range")
	}
}

func FuzzParseRange(f *testing.F) {
	f.Add("bytes=0-1", int64(10))
	f.Add("bytes=-1", int64(1))
	f.Fuzz(func(t *testing.T, value string, size int64) {
		start, length, ok := ParseRange(value, size)
		if ok && (start < 0 || length < 1 || start > size-length) {
			t.Errorf("ParseRange(%q, %d) = %d, %d lies outside", value, size, start, length)
		}
	})
}

func FuzzNoneMatches(f *testing.F) {
	f.Add(`W/"a", "b"`, `"b"`)
	f.Add(`*`, ``)
	f.Fuzz(func(t *testing.T, line, etag string) {
		NoneMatches([]string{line}, etag)
	})
}
