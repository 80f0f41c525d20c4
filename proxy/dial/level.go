package dial

import (
	"slices"

	"karui/convert"
	"karui/convert/header"
)

// Level says what new conversions are made, and how.
type Level struct {
	Name string
	// Formats are those that are made, of those that the site lists; nil for all.
	Formats []header.Format
	// Deferred: nothing new is made.
	Deferred bool
	// Quality is on the dial of package convert, 1 to 100, and never raises the
	// site's own; 0 leaves that.
	Quality int
	// Effort is WebP's, 0 to 6.
	Effort int
}

// Makes tells whether the level makes a format.
func (l *Level) Makes(f header.Format) bool {
	return !l.Deferred && (l.Formats == nil || slices.Contains(l.Formats, f))
}

// Defaults are the levels of a configuration that has none of its own.
//
// The effort of spare is 0 and not 1: on photographs of 0.4, 1 and 6 MP at quality
// 50, 0 took 3, 9 and 17 % less CPU time for 2, 4 and 11 % more bytes, and less CPU
// time for each byte that it saved. Against full, both make fewer bytes in less than
// 0.7 of the time (BenchmarkEffort of package convert, libwebp 1.2.4).
func Defaults() []Level {
	cheap := []header.Format{header.WebP}
	effort := convert.DefaultEffort(header.WebP)
	return []Level{
		{Name: "full", Effort: effort},
		{Name: "lean", Formats: cheap, Quality: 70, Effort: effort},
		{Name: "spare", Formats: cheap, Quality: 50},
		{Name: "defer", Deferred: true},
	}
}
