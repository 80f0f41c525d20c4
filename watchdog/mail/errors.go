package mail

import (
	"errors"
	"strings"
)

// Stages of sending a mail.
const (
	StageConnect   = "connect"   // reaching the server
	StageTLS       = "tls"       // encrypting the connection
	StageAuth      = "auth"      // user and password, or the rights at AWS
	StageSession   = "session"   // a connection that broke or a server that is not ready
	StageSender    = "sender"    // MAIL FROM
	StageRecipient = "recipient" // RCPT TO
	StageData      = "data"      // the mail itself
	StageCompose   = "compose"   // making the mail
)

// Error says why a mail did not go out. It never holds a secret.
type Error struct {
	// Stage is one of the Stage words.
	Stage string
	// Recipient is whom it is about; empty for all of the mail, or of the way.
	Recipient string
	// Code is the server's: "550", or SES's "MessageRejected"; empty without one.
	Code string
	// Text says it in words.
	Text string
	// Hint says what to do.
	Hint string
	// Permanent: the server will say the same again unless somebody changes
	// something.
	Permanent bool

	cause error
}

// Error gives the stage, the recipient, the server's words and the hint.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("mail (" + e.Stage + "): ")
	if e.Recipient != "" {
		b.WriteString(e.Recipient + ": ")
	}
	b.WriteString(e.Text)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unwrap gives what is beneath.
func (e *Error) Unwrap() error { return e.cause }

// key is the same for what is the same trouble, without what differs at each try
// (local ports, request ids, queue ids).
func (e *Error) key() string { return e.Stage + "/" + e.Code + "/" + e.Recipient }

// asError makes any error an Error.
func asError(err error, stage string) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Stage: stage, Text: err.Error(), cause: err}
}
