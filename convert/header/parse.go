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
// that all calls together cost as much as one [Parse] of the whole. The zero value is ready. It is for one goroutine.
type Scanner struct {
	info  Info
	err   error // of the last call; ErrBroken is for good
	begun bool
	done  bool // the end of the image, or of what can be understood, was reached
	ready bool // the header is complete
	pos   int  // the next byte to look at; may lie beyond the bytes that have arrived
	jpeg  jpegState
	png   pngState
	gif   gifState
}

// Scan is [Parse] on a growing prefix: b begins with all the bytes of the call before.
func (s *Scanner) Scan(b []byte) (Info, error) {
	if !s.begun {
		f := Sniff(b)
		s.info.Format, s.info.Orientation = f, 1
		switch f {
		case Unknown:
			if SniffMore(b) {
				return s.info, ErrShort
			}
			return s.info, fmt.Errorf("%w: no known image", ErrUnsupported)
		case JPEG, PNG, GIF:
			s.begun = true
		default:
			return s.info, fmt.Errorf("%w: %s", ErrUnsupported, f)
		}
	}
	if s.done {
		return s.info, s.err
	}
	switch s.info.Format {
	case JPEG:
		s.err = s.scanJPEG(b)
	case PNG:
		s.err = s.scanPNG(b)
	case GIF:
		s.err = s.scanGIF(b)
		s.info.Uncovered = s.gif.exposed || s.gif.bare && !s.gif.clear
	}
	if s.info.Format != GIF {
		s.info.ExtentWidth, s.info.ExtentHeight = s.info.Width, s.info.Height
	}
	return s.info, s.err
}

// short ends a call for want of bytes: an error only while the header is not complete.
func (s *Scanner) short() error {
	if s.ready {
		return nil
	}
	return ErrShort
}

// stop ends the scan for good, before the end of the image.
func (s *Scanner) stop(format string, args ...any) error {
	s.done = true
	if s.ready {
		s.info.Junk = true
		return nil
	}
	return fmt.Errorf("%w: %s: "+format, append([]any{ErrBroken, s.info.Format}, args...)...)
}
