package warm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// parseList reads addresses or paths, one a line. Empty lines and those that begin
// with # are passed over. It returns what it read together with the error that
// stopped it.
func parseList(body []byte) ([]string, error) {
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))))
	lines.Buffer(make([]byte, 0, 4096), maxAddress)
	var out []string
	n := 0
	for lines.Scan() {
		n++
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if lower := strings.ToLower(cut(line, 8)); !strings.HasPrefix(line, "/") && !strings.HasPrefix(lower, "http://") && !strings.HasPrefix(lower, "https://") {
			return out, fmt.Errorf("line %d is %q: it must be a URL, or a path that begins with /", n, cut(line, 60))
		}
		if len(out) >= maxEntries {
			return out, fmt.Errorf("it has more than %d lines", maxEntries)
		}
		out = append(out, line)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return out, fmt.Errorf("line %d is longer than %d bytes", n+1, maxAddress)
	}
	return out, lines.Err()
}
