package dial

import (
	"slices"

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
	// Effort is WebP's, 1 to 6; 0 leaves the default.
	Effort int
}

// Makes tells whether the level makes a format.
func (l *Level) Makes(f header.Format) bool {
	return !l.Deferred && (l.Formats == nil || slices.Contains(l.Formats, f))
}

// Defaults are the levels of a configuration that has none of its own.
//
// The effort of spare is 1 and not 0: on photos at quality 50 that takes less time
// and makes fewer bytes (`go run ./bench effort`).
func Defaults() []Level {
	cheap := []header.Format{header.WebP}
	return []Level{
		{Name: "full"},
		{Name: "lean", Formats: cheap, Quality: 70, Effort: 2},
		{Name: "spare", Formats: cheap, Quality: 50, Effort: 1},
		{Name: "defer", Deferred: true},
	}
}
