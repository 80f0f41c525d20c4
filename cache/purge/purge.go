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
	// Prefix is the beginning of paths; it begins with a slash and has no query.
	Prefix string
	// At is when the purge was asked for.
	At time.Time
}

// Parse gives the prefix that somebody means: a path, or a URL of which only the path
// counts. A query, a fragment and a star at the end are left out. The error says what
// is wrong with it.
func Parse(text string) (prefix string, err error) {
	prefix = strings.TrimSpace(text)
	if scheme, rest, found := strings.Cut(prefix, "://"); found && !strings.ContainsAny(scheme, "/?#") {
		begin := strings.IndexAny(rest, "/?#")
		if begin < 0 || rest[begin] != '/' {
			prefix = "/"
		} else {
			prefix = rest[begin:]
		}
	}
	if end := strings.IndexAny(prefix, "?#"); end >= 0 {
		prefix = prefix[:end]
	}
	prefix = strings.TrimRight(prefix, "*")
	if !strings.HasPrefix(prefix, "/") {
		return "", fmt.Errorf("prefix is %q, want a path that begins with a slash, such as /images/, or a URL", text)
	}
	return bounded(prefix), nil
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

// bounded cuts a prefix that is too long.
func bounded(prefix string) string { return prefix[:min(len(prefix), MaxPrefix)] }
