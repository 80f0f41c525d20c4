package warm

import (
	"fmt"

	"karui/convert/header"
)

// Form is what one request asks for: a format, or the original.
type Form struct {
	format header.Format
}

// Original is the form that viewers get who take no lighter format.
var Original = Form{}

// ParseForm reads the name of a format, or "original".
func ParseForm(name string) (Form, error) {
	if name == Original.String() {
		return Original, nil
	}
	f, ok := header.ParseFormat(name)
	if !ok {
		return Form{}, fmt.Errorf("there is no format %q", name)
	}
	return Form{f}, nil
}

// String names the form as the state file and reports do.
func (f Form) String() string {
	if f == Original {
		return "original"
	}
	return f.format.String()
}

// accept is the Accept header that gets the form and nothing else.
func (f Form) accept() string {
	if f == Original {
		return "image/*,*/*;q=0.8"
	}
	return f.format.ContentType()
}
