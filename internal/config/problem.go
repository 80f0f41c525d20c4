package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Problem is one mistake in a configuration. Its text names the place it was
// written at, the key, the value and what would be right; a secret's value is
// left out.
type Problem struct {
	// Key is the full dotted key, such as "sites[0].quality"; empty for a file that cannot be read at all.
	Key string
	// Value is what was written, as a reader of the message should see it; empty when nothing was.
	Value string
	// Want completes the sentence "it must be ...".
	Want string
	// What replaces the sentence built from Value and Want, where that would not fit.
	What string
	// Source tells where the value was written. Validate methods leave it alone: Load fills it in.
	Source Source
	// restsOn are other keys that the verdict comes from.
	restsOn []string
}

// RestingOn names other keys that the verdict of Invalid comes from. Where one of
// them could not be read, its default would be judged, and Load says nothing.
func RestingOn(err error, keys ...string) error {
	var p *Problem
	if errors.As(err, &p) {
		p.restsOn = append(p.restsOn, keys...)
	}
	return err
}

// Invalid makes the error for one value that its owner refuses. The key is the
// full dotted one (see Key), want completes "it must be ...", for example "a
// whole number from 1 to 100". A nil value means that something is missing.
func Invalid(key string, value any, want string) error {
	return &Problem{Key: key, Value: show(value), Want: want}
}

// Error implements error.
func (p *Problem) Error() string {
	var b strings.Builder
	if p.Source.Kind != SourceDefault {
		b.WriteString(p.Source.String())
		b.WriteString(": ")
	}
	subject := p.Key
	if subject == "" {
		subject = "the configuration"
	}
	switch {
	case p.What != "":
		b.WriteString(subject + " " + p.What)
	case p.Value == "":
		fmt.Fprintf(&b, "%s is missing: it must be %s", subject, p.Want)
	default:
		fmt.Fprintf(&b, "%s is %s, but it must be %s", subject, p.Value, p.Want)
	}
	return b.String()
}

// Problems lists the problems that err holds, in their order.
func Problems(err error) []*Problem {
	var list []*Problem
	for _, e := range flatten(err) {
		var p *Problem
		if errors.As(e, &p) {
			list = append(list, p)
		}
	}
	return list
}

// flatten takes joined errors apart.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var list []error
	for _, e := range joined.Unwrap() {
		list = append(list, flatten(e)...)
	}
	return list
}

// Key joins the parts of a key: Key("sites", 0, "quality") is
// "sites[0].quality". Empty parts are left out, so that a section's Validate
// can be given its prefix or none.
func Key(parts ...any) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(p) + "]")
		case string:
			if p == "" {
				continue
			}
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(p)
		default:
			panic(fmt.Sprintf("config.Key: a part is a string or an int, not %T", part))
		}
	}
	return b.String()
}

// shownBytes bounds how much of a wrong value a message repeats.
const shownBytes = 100

// show writes a value as the file would have it.
func show(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case plain:
		return string(v)
	case string:
		return strconv.Quote(shorten(v))
	case time.Duration:
		return formatDuration(v)
	default:
		return shorten(fmt.Sprint(v))
	}
}

func shorten(s string) string {
	if len(s) <= shownBytes {
		return s
	}
	return strings.ToValidUTF8(s[:shownBytes], "") + "..."
}

// formatDuration writes whole numbers of the largest unit that fits: "24h", "75s".
func formatDuration(d time.Duration) string {
	for _, u := range []struct {
		length time.Duration
		name   string
	}{
		{time.Hour, "h"},
		{time.Minute, "m"},
		{time.Second, "s"},
		{time.Millisecond, "ms"},
		{time.Microsecond, "us"},
	} {
		if d != 0 && d%u.length == 0 {
			return strconv.FormatInt(int64(d/u.length), 10) + u.name
		}
	}
	return d.String()
}
