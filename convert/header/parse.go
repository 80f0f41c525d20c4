package header

import "fmt"

// Parse reads the header at the beginning of b, which is a whole file or a prefix of one.
//
// A nil error means that everything that stands before the pixel data was read, and that width, height and the kind
// of image are known; Info.Whole then says whether b also held the end, and with it the last word about Frames,
// Scans and Duration.
func Parse(b []byte) (Info, error) {
	var s Scanner
	return s.Scan(b)
}

// Scanner reads a header from a body that is still arriving: each call continues where the last one had to stop, so
// that all calls together cost as much as one [Parse] of the whole. The zero value is ready.
type Scanner struct {
	info Info
}

// Scan is [Parse] on a growing prefix: b begins with all the bytes of the call before.
func (s *Scanner) Scan(b []byte) (Info, error) {
	s.info.Format = Sniff(b)
	return s.info, fmt.Errorf("%s: %w", s.info.Format, ErrUnsupported)
}
