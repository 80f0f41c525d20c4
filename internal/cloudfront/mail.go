package cloudfront

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"time"
)

// maxMessages bounds what is kept; the oldest go first. AWS takes up to 40 MB a
// message, the double as much as maxBody allows.
const maxMessages = 1000

// Message is a mail that SES took.
type Message struct {
	ID        string
	Time      time.Time
	Principal string
	From      string
	To        []string // Destination's To, Cc and Bcc; of a raw mail without one, its headers'
	Subject   string   // of a simple mail; a raw one has it in Raw, encoded
	Text      string   // of a simple mail
	HTML      string   // of a simple mail
	Headers   map[string]string
	Raw       []byte // whole, of a raw mail
}

type mailState struct {
	messages []Message
	verified []string
}

// Messages lists the mails taken so far, oldest first.
func (d *Double) Messages() []Message {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.mail.messages)
}

// SetVerified puts SES into its sandbox: senders and recipients have to be among
// these addresses or under these domains. Without any, everything is taken.
func (d *Double) SetVerified(addressesOrDomains ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mail.verified = slices.Clone(addressesOrDomains)
}

type contentJSON struct {
	Data    string
	Charset string
}

type sendEmailJSON struct {
	FromEmailAddress string
	Destination      struct{ ToAddresses, CcAddresses, BccAddresses []string }
	Content          struct {
		Raw    *struct{ Data []byte }
		Simple *struct {
			Subject contentJSON
			Body    struct{ Text, Html contentJSON }
			Headers []struct{ Name, Value string }
		}
	}
}

// routeSES reads the sender early, since policies are about senders.
func routeSES(body []byte) (action, *failure) {
	a := action{service: serviceSES, name: actionSendEmail, handle: (*Double).sendEmail}
	var m sendEmailJSON
	if err := json.Unmarshal(body, &m); err != nil {
		return a, failf(http.StatusBadRequest, "BadRequestException", "The request is no valid JSON: %v", err)
	}
	from := m.FromEmailAddress
	if from == "" && m.Content.Raw != nil {
		if parsed, err := mail.ReadMessage(bytes.NewReader(m.Content.Raw.Data)); err == nil {
			from = parsed.Header.Get("From")
		}
	}
	if address, err := mail.ParseAddress(from); err == nil {
		a.sender = address.Address
	}
	return a, nil
}

func badRequest(format string, args ...any) *failure {
	return failf(http.StatusBadRequest, "BadRequestException", format, args...)
}

func (d *Double) sendEmail(c *call) (reply, *failure) {
	var in sendEmailJSON
	if err := json.Unmarshal(c.body, &in); err != nil {
		return reply{}, badRequest("The request is no valid JSON: %v", err)
	}
	if c.sender == "" {
		return reply{}, badRequest("The sender %q is no mail address.", in.FromEmailAddress)
	}
	m := Message{
		ID: newRequestID(), Time: d.now(), Principal: c.by.arn, From: c.sender,
		To: slices.Concat(in.Destination.ToAddresses, in.Destination.CcAddresses, in.Destination.BccAddresses),
	}
	switch {
	case (in.Content.Raw == nil) == (in.Content.Simple == nil):
		return reply{}, badRequest("Exactly one of Content.Raw and Content.Simple is expected.")
	case in.Content.Raw != nil:
		if fail := m.readRaw(in.Content.Raw.Data); fail != nil {
			return reply{}, fail
		}
	default:
		s := in.Content.Simple
		m.Subject, m.Text, m.HTML = s.Subject.Data, s.Body.Text.Data, s.Body.Html.Data
		if m.Subject == "" || m.Text == "" && m.HTML == "" {
			return reply{}, badRequest("A simple mail needs a subject and a body.")
		}
		m.Headers = make(map[string]string)
		for _, h := range s.Headers {
			m.Headers[h.Name] = h.Value
		}
	}
	if len(m.To) == 0 {
		return reply{}, badRequest("Missing final recipient.")
	}
	for i, to := range m.To {
		address, err := mail.ParseAddress(to)
		if err != nil {
			return reply{}, badRequest("The recipient %q is no mail address.", to)
		}
		m.To[i] = address.Address
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if fail := d.checkVerified(append([]string{m.From}, m.To...)); fail != nil {
		return reply{}, fail
	}
	if len(d.mail.messages) >= maxMessages {
		d.mail.messages = slices.Delete(d.mail.messages, 0, maxMessages/10)
	}
	d.mail.messages = append(d.mail.messages, m)
	body, err := json.Marshal(map[string]string{"MessageId": m.ID})
	if err != nil {
		return reply{}, failf(http.StatusInternalServerError, "InternalFailure", "%v", err)
	}
	return reply{status: http.StatusOK, header: map[string]string{"Content-Type": "application/json"}, body: body}, nil
}

// readRaw takes a MIME message, which has to be one.
func (m *Message) readRaw(raw []byte) *failure {
	parsed, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return badRequest("The raw message is no mail: %v", err)
	}
	if body, err := io.ReadAll(parsed.Body); err != nil || len(body) == 0 {
		return badRequest("The raw message has no body.")
	}
	m.Raw = slices.Clone(raw)
	m.Headers = make(map[string]string)
	for name, values := range parsed.Header {
		m.Headers[name] = strings.Join(values, ", ")
	}
	if len(m.To) > 0 {
		return nil
	}
	for _, name := range []string{"To", "Cc", "Bcc"} {
		addresses, err := parsed.Header.AddressList(name)
		if err != nil {
			continue // absent or unreadable; without any recipient the mail is refused
		}
		for _, a := range addresses {
			m.To = append(m.To, a.Address)
		}
	}
	return nil
}

func (d *Double) checkVerified(addresses []string) *failure {
	if len(d.mail.verified) == 0 {
		return nil
	}
	var missing []string
	for _, a := range addresses {
		_, domain, _ := strings.Cut(a, "@")
		if !slices.Contains(d.mail.verified, a) && !slices.Contains(d.mail.verified, domain) {
			missing = append(missing, a)
		}
	}
	if missing == nil {
		return nil
	}
	return failf(http.StatusBadRequest, "MessageRejected",
		"Email address is not verified. The following identities failed the check in region US-EAST-1: %s", strings.Join(missing, ", "))
}
