package purge

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Margin is how much later than a purge a fetch must have begun for its answer not to
// be hit: clocks of the machines of a cluster differ by so much at most.
const Margin = 2 * time.Second

// MaxPrefix bounds a prefix in bytes. What is longer is cut, and hits more.
const MaxPrefix = 1024

// Purge says that nothing of a site under a prefix that was fetched before it is to
// be answered any more.
type Purge struct {
	// Site is the site's id.
	Site string
	// Prefix is the beginning of paths; it begins with a slash. See Clean.
	Prefix string
	// At is when the purge was asked for.
	At time.Time
}

// Clean gives a prefix in the form that is compared: without a query, which no path
// has, and no longer than MaxPrefix. One that is longer is cut, where it is all plain,
// anywhere, else at the end of a folder: within a character or an escape, what is left
// would no longer hit the same path in other spellings.
func Clean(prefix string) string {
	prefix, _, _ = strings.Cut(prefix, "?")
	if len(prefix) <= MaxPrefix {
		return prefix
	}
	kept := prefix[:MaxPrefix]
	if ascii(prefix) && !strings.Contains(prefix, "%") {
		return kept
	}
	return kept[:strings.LastIndexByte(kept, '/')+1]
}

// Check tells what keeps a purge from being remembered.
func (p Purge) Check() error {
	switch {
	case !strings.HasPrefix(p.Prefix, "/"):
		return fmt.Errorf("prefix is %q, want a path that begins with a slash", p.Prefix)
	case p.At.IsZero():
		return errors.New("a purge needs the time when it was asked for")
	}
	return nil
}
