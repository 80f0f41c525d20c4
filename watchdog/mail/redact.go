package mail

import (
	"encoding/base64"
	"errors"
	"net"
	"regexp"
	"strings"
)

const redacted = "********"

// redact takes a password out of a text, as it is and as AUTH PLAIN and LOGIN
// encode it.
func redact(text, user, password string) string {
	if password == "" {
		return text
	}
	encoding := base64.StdEncoding
	return strings.NewReplacer(
		password, redacted,
		encoding.EncodeToString([]byte(password)), redacted,
		encoding.EncodeToString([]byte("\x00"+user+"\x00"+password)), redacted,
	).Replace(text)
}

// addresses are the two ends in the text of a net.OpError.
var addresses = regexp.MustCompile(`^(\w+) (?:tcp|pipe)\S* \S+->\S+: `)

// withoutPorts is an error's text without our own port, which differs each time.
func withoutPorts(err error) string {
	var b strings.Builder
	for line := range strings.Lines(addresses.ReplaceAllString(err.Error(), "$1: ")) {
		b.WriteString(strings.TrimSpace(line) + " ")
	}
	text := strings.TrimSpace(b.String())
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !strings.Contains(text, "timeout") {
		text += " (timeout)"
	}
	return text
}
