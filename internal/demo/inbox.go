package demo

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
)

// Bounds of the inbox.
const (
	maxMails  = 50
	mailBytes = 256 << 10
)

// letter is a mail that arrived.
type letter struct {
	Number  int // counted from 1
	At      time.Time
	Kind    string // X-Karui-Kind: degrade, restore, rehearsal, ...
	Lang    string
	From    string
	To      string
	Subject string
	Text    string
}

// inbox is a mail server that keeps the newest mails and passes none on. It
// refuses mails over 256 KiB.
type inbox struct {
	Address string
	server  *smtp.Server
	now     func() time.Time
	arrived func(letter) // nil for nobody
	running sync.WaitGroup

	mu      sync.Mutex
	count   int
	letters []letter
}

// openInbox starts the mail server on a free port of this machine.
func openInbox(now func() time.Time, arrived func(letter)) (*inbox, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the mail server: %w", err)
	}
	b := &inbox{Address: l.Addr().String(), now: now, arrived: arrived}
	b.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &delivery{inbox: b}, nil }))
	b.server.Domain = "localhost"
	b.server.MaxMessageBytes, b.server.MaxRecipients, b.server.MaxLineLength = mailBytes, 50, 4000
	b.server.ReadTimeout, b.server.WriteTimeout = 30*time.Second, 30*time.Second
	b.server.ErrorLog = silent{}
	b.running.Go(func() { _ = b.server.Serve(l) })
	return b, nil
}

func (b *inbox) close() {
	_ = b.server.Close()
	b.running.Wait()
}

// all lists the mails, newest first, and how many came in all.
func (b *inbox) all() ([]letter, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := slices.Clone(b.letters)
	slices.Reverse(out)
	return out, b.count
}

func (b *inbox) take(raw []byte) error {
	m, err := parseLetter(raw)
	if err != nil {
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: err.Error()}
	}
	m.At = b.now()
	b.mu.Lock()
	b.count++
	m.Number = b.count
	b.letters = append(b.letters, m)
	if n := len(b.letters) - maxMails; n > 0 {
		b.letters = slices.Delete(b.letters, 0, n)
	}
	b.mu.Unlock()
	if b.arrived != nil {
		b.arrived(m)
	}
	return nil
}

// delivery is one connection to the inbox.
type delivery struct{ inbox *inbox }

func (*delivery) Reset()                               {}
func (*delivery) Logout() error                        { return nil }
func (*delivery) Mail(string, *smtp.MailOptions) error { return nil }
func (*delivery) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (d *delivery) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return d.inbox.take(raw)
}

// silent is a logger for what clients do wrong.
type silent struct{}

func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}

// parseLetter reads a mail of one part of text, as the watchdog writes it.
func parseLetter(raw []byte) (letter, error) {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return letter{}, fmt.Errorf("the mail cannot be read: %w", err)
	}
	kind, _, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "text/plain" {
		return letter{}, fmt.Errorf("the mail is %q, and only text/plain is read here", m.Header.Get("Content-Type"))
	}
	body := m.Body
	switch strings.ToLower(m.Header.Get("Content-Transfer-Encoding")) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(io.LimitReader(body, mailBytes))
	if err != nil {
		return letter{}, fmt.Errorf("the mail's text cannot be read: %w", err)
	}
	decode := func(name string) string {
		value := m.Header.Get(name)
		if plain, err := new(mime.WordDecoder).DecodeHeader(value); err == nil {
			return plain
		}
		return value
	}
	return letter{
		Kind: m.Header.Get("X-Karui-Kind"), Lang: m.Header.Get("Content-Language"),
		From: decode("From"), To: decode("To"), Subject: decode("Subject"),
		Text: strings.ToValidUTF8(strings.ReplaceAll(string(text), "\r\n", "\n"), "�"),
	}, nil
}
