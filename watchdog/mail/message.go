package mail

import (
	"bytes"
	"encoding/base64"
	"fmt"
	netmail "net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"karui/watchdog/event"
)

// draft is what a mail is made of.
type draft struct {
	from       string   // mailbox, with or without a name
	to         []string // shown; who gets it is the envelope's business
	language   string
	subject    string
	body       string // lines ending in \n
	date       time.Time
	id         string   // Message-ID without brackets
	references []string // Message-IDs of what it is a reply to, the first the most direct
	event      event.Event
}

// compose makes an RFC 5322 message with CRLF. All of it is ASCII.
func compose(d draft) ([]byte, error) {
	english := isASCII(d.body)
	encoding := gomail.EncodingB64
	if english {
		encoding = gomail.EncodingQP // readable as it is
	}
	m := gomail.NewMsg(gomail.WithCharset(gomail.CharsetUTF8), gomail.WithEncoding(encoding), gomail.WithNoDefaultUserAgent())
	from, err := netmail.ParseAddress(d.from)
	if err != nil {
		return nil, &Error{Stage: StageCompose, Text: fmt.Sprintf("mail.from %q: %v", d.from, err), Permanent: true, cause: err}
	}
	m.FromMailAddress(from)
	for _, to := range d.to {
		address, err := netmail.ParseAddress(to)
		if err != nil {
			return nil, &Error{Stage: StageCompose, Text: fmt.Sprintf("recipient %q: %v", to, err), Permanent: true, cause: err}
		}
		m.AddToMailAddress(address)
	}
	m.SetDateWithValue(d.date.UTC())
	m.SetMessageIDWithValue(d.id)
	if len(d.references) > 0 {
		m.SetGenHeader(gomail.HeaderInReplyTo, "<"+d.references[0]+">")
		m.SetGenHeader(gomail.HeaderReferences, "<"+strings.Join(d.references, "> <")+">")
	}
	m.SetGenHeaderPreformatted(gomail.HeaderSubject, encodeSubject(d.subject))
	m.SetGenHeader("Auto-Submitted", "auto-generated")        // RFC 3834
	m.SetGenHeader("X-Auto-Response-Suppress", "All")         // Exchange
	m.SetGenHeader("Content-Language", d.language)            // RFC 3282
	m.SetGenHeader("X-Karui-Event", d.event.ID)               // the same however often it is sent
	m.SetGenHeader("X-Karui-Kind", string(d.event.Kind))      // for filters
	m.SetGenHeader("X-Karui-Site", oneLine(d.event.Site, 64)) // for filters
	m.SetBodyString(gomail.TypeTextPlain, strings.ReplaceAll(d.body, "\n", "\r\n"))
	var b bytes.Buffer
	if _, err := m.WriteTo(&b); err != nil {
		return nil, &Error{Stage: StageCompose, Text: err.Error(), cause: err}
	}
	return b.Bytes(), nil
}

// subjectChunk is how many bytes of UTF-8 go into one encoded word: 44 become 60
// of base64, 72 with the frame of RFC 2047, which allows 75, and 73 with the
// space that folds the line.
const subjectChunk = 44

// encodeSubject makes the value of a Subject header. What comes before the first
// character that is not ASCII stays readable for filters and for programs that
// decode nothing; the rest becomes encoded words, one a line, none of which holds
// part of a character.
func encodeSubject(subject string) string {
	subject = oneLine(subject, 200)
	if isASCII(subject) && !strings.Contains(subject, "=?") {
		return foldASCII(subject)
	}
	plain := ""
	if i := strings.IndexFunc(subject, func(r rune) bool { return r >= 0x80 }); i >= 0 {
		if space := strings.LastIndexByte(subject[:i], ' '); space > 0 && space <= 60 && !strings.Contains(subject[:space], "=?") {
			plain = subject[:space]
			subject = subject[space+1:]
		}
	}
	var lines []string
	chunk := ""
	flush := func() {
		if chunk != "" {
			lines = append(lines, encodeWord(chunk))
		}
		chunk = ""
	}
	for _, r := range subject {
		if len(chunk)+len(string(r)) > subjectChunk {
			flush()
		}
		chunk += string(r)
	}
	flush()
	if plain != "" {
		lines = append([]string{plain}, lines...)
	}
	return strings.Join(lines, "\r\n ")
}

// encodeWord makes one encoded word of RFC 2047.
func encodeWord(s string) string {
	return "=?UTF-8?B?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

// foldASCII breaks a value at spaces, as if after "Subject: ".
func foldASCII(value string) string {
	var b strings.Builder
	at := len("Subject: ")
	for i, word := range strings.Split(value, " ") {
		switch {
		case i == 0:
		case at+1+len(word) > 75:
			b.WriteString("\r\n ")
			at = 1
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}
