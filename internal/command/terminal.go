package command

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Terminal tells whether w is a terminal that can move its cursor: one where a bar of
// progress is seen by somebody. It is none with TERM=dumb, or without TERM.
func Terminal(w any) bool {
	if term := os.Getenv("TERM"); term == "" || term == "dumb" {
		return false
	}
	return IsTerminal(w)
}

// IsTerminal tells whether w, a reader or writer, is a terminal of any kind.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS) //nolint:gosec // a file descriptor
	return err == nil
}

// Colour is one that a terminal shows text in.
type Colour string

// The colours that commands use, each for one thing.
const (
	Good    Colour = "\x1b[32m"   // green: all is well
	Caution Colour = "\x1b[33m"   // yellow: a warning
	Bad     Colour = "\x1b[1;31m" // bold red: an error
)

// Paint gives text in a colour where w is a terminal that shows colours, and as it is
// everywhere else: NO_COLOR, when set to anything, asks for none (no-color.org).
func Paint(w io.Writer, c Colour, text string) string {
	if c == "" || os.Getenv("NO_COLOR") != "" || !Terminal(w) {
		return text
	}
	return string(c) + text + "\x1b[0m"
}
