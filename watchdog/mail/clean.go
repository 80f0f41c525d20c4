package mail

import (
	"reflect"
	"strings"
	"unicode"

	"karui/watchdog/event"
)

// Bounds of what came from outside. An event within them is some MiB at the very
// most.
const (
	maxText = 1000 // runes of a text
	maxList = 200  // elements of a list
)

// clean makes an event fit for a mail and for disk: texts of one line, without
// control characters and within bounds.
func clean(e event.Event) event.Event {
	v := reflect.New(reflect.TypeFor[event.Event]()).Elem()
	copyClean(v, reflect.ValueOf(e))
	e, _ = v.Interface().(event.Event)
	return e
}

// copyClean copies deep what can hold texts, so that the caller's event stays.
func copyClean(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.String:
		to.SetString(oneLine(from.String(), maxText))
	case reflect.Slice:
		if from.IsNil() {
			return
		}
		n := min(from.Len(), maxList)
		to.Set(reflect.MakeSlice(from.Type(), n, n))
		for i := range n {
			copyClean(to.Index(i), from.Index(i))
		}
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			copyClean(to.Elem(), from.Elem())
		}
	case reflect.Struct:
		to.Set(from) // with the unexported fields of time.Time
		for i := range from.NumField() {
			if from.Type().Field(i).IsExported() {
				copyClean(to.Field(i), from.Field(i))
			}
		}
	default:
		to.Set(from)
	}
}

// oneLine is a text without line breaks, control characters and what turns the
// direction of writing, at most so many runes.
func oneLine(text string, most int) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range text { // an invalid byte comes as U+FFFD
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			space = b.Len() > 0
			continue
		case unicode.Is(unicode.Cf, r):
			continue
		}
		if n >= most {
			b.WriteString("...")
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
			n++
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
