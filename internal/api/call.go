package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
)

// Call is one request that may use its route.
type Call struct {
	*http.Request
	// Caller is the token's name, "" where no token is needed.
	Caller string
	token  Token
	body   []byte
}

// Whole tells whether the caller may act on all sites at once.
func (c *Call) Whole() bool { return len(c.token.Sites) == 0 }

// Only gives the site of a caller whose token is for one alone.
func (c *Call) Only() (site string, ok bool) {
	if len(c.token.Sites) != 1 {
		return "", false
	}
	return c.token.Sites[0], true
}

// May tells whether the caller may see and change the site.
func (c *Call) May(site string) bool { return c.Whole() || slices.Contains(c.token.Sites, site) }

// Require is May as an error.
func (c *Call) Require(site string) error {
	if c.May(site) {
		return nil
	}
	return Forbidden(fmt.Sprintf("the token %q is not for site %q", c.Caller, site), "use a token whose sites in admin.tokens name it")
}

// RequireWhole refuses a token that is for some sites only.
func (c *Call) RequireWhole() error {
	if c.Whole() {
		return nil
	}
	return Forbidden(fmt.Sprintf("the token %q is for some sites only, and this is about all of them", c.Caller),
		"use a token without sites in admin.tokens")
}

// Decode reads the body, one JSON value, into v. Unknown fields are refused, and so is
// text that would not be read as it was sent. A body that is missing leaves v as it is. A field's tag `example` is what an error
// about the field recommends.
func (c *Call) Decode(v any) error {
	if len(c.body) == 0 {
		return nil
	}
	if err := unclear(c.body); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(c.body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return unreadable(err, v)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Invalid("the body holds more than one JSON value", "")
	}
	return nil
}

// readBody takes the body in, within the route's bound.
func (c *Call) readBody(w http.ResponseWriter, most int64) error {
	b, err := io.ReadAll(http.MaxBytesReader(w, c.Body, most))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return &Error{
			Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge,
			Message: fmt.Sprintf("the body is over %d bytes", most),
		}
	}
	if err != nil {
		return &Error{Status: http.StatusBadRequest, Code: CodeInvalid, Message: "the body did not arrive whole"}
	}
	if len(b) > 0 {
		// The types that a form of a web page can send are not among these.
		media, _, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
		if err != nil || media != "application/json" {
			return &Error{
				Status: http.StatusUnsupportedMediaType, Code: CodeMediaType,
				Message: fmt.Sprintf("the body is %q", c.Header.Get("Content-Type")), Remedy: "send JSON with Content-Type: application/json",
			}
		}
	}
	c.body = b
	return nil
}
