package api

import (
	"net/http"
	"strings"
)

// Prefix is the path below which all routes are.
const Prefix = "/api/v1"

// Right is what a token allows.
type Right string

// The rights.
const (
	Read  Right = "read"  // looking
	Purge Right = "purge" // purging, and warming what was purged
	Dial  Right = "dial"  // the dial, shedding, places and retries
)

// Route is one entry of the table.
type Route struct {
	// Method is GET, POST, PUT or DELETE. A GET also answers HEAD.
	Method string
	// Pattern is the path below Prefix in the form of http.ServeMux, without a
	// method: "/quarantine/{digest}".
	Pattern string
	Right   Right
	// Whole routes are about all sites at once: a token for some sites is refused.
	// The other routes look at [Call.May] themselves.
	Whole bool
	// MaxBody bounds the request's body, in bytes. 0 takes none.
	MaxBody int64
	// Handle gives what is answered as JSON with 200, or with 204 for nil. An
	// [*Error] is answered as it says, any other error is logged and answered with
	// 500.
	Handle func(*Call) (any, error)
}

// writes tells whether the route changes anything.
func (r Route) writes() bool { return r.Method != http.MethodGet }

// Error is an answer that is no success.
type Error struct {
	Status int `json:"-"`
	// Code is one of a fixed set of words.
	Code string `json:"code"`
	// Message says what is wrong, Remedy what to do about it.
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
	// header is sent with the answer.
	header http.Header
}

// Error implements error.
func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Message
	}
	return strings.TrimSuffix(e.Message, ".") + ": " + e.Remedy
}

// The codes of errors. Routes of other packages may add to them.
const (
	CodeUnauthorized = "unauthorized"
	CodeForbidden    = "forbidden"
	CodeForeign      = "foreign_request"
	CodeTooMany      = "too_many_attempts"
	CodeNotFound     = "not_found"
	CodeMethod       = "method_not_allowed"
	CodeTooLarge     = "too_large"
	CodeMediaType    = "unsupported_media_type"
	CodeInvalid      = "invalid"
	CodeConflict     = "conflict"
	CodeInternal     = "internal"
)

// NotFound says that what the path names is not there.
func NotFound(message, remedy string) *Error {
	return &Error{Status: http.StatusNotFound, Code: CodeNotFound, Message: message, Remedy: remedy}
}

// Invalid says that what was sent cannot be meant.
func Invalid(message, remedy string) *Error {
	return &Error{Status: http.StatusUnprocessableEntity, Code: CodeInvalid, Message: message, Remedy: remedy}
}

// Forbidden says that the token does not reach that far.
func Forbidden(message, remedy string) *Error {
	return &Error{Status: http.StatusForbidden, Code: CodeForbidden, Message: message, Remedy: remedy}
}

// Conflict says that what is there does not allow it.
func Conflict(message, remedy string) *Error {
	return &Error{Status: http.StatusConflict, Code: CodeConflict, Message: message, Remedy: remedy}
}
