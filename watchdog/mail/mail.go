// Package mail tells operators what the watchdog did, by mail: through a mail
// server or Amazon SES, in English or Japanese.
//
// Guaranteed:
//   - What Enqueue took is on disk and goes out once the mail server can be
//     reached, across restarts and SIGKILL at any instant, in the order in which
//     it was taken for each site and recipient.
//   - One recipient that the server refuses costs no other the mail.
//   - No event field can add a header, a recipient or a line of its own; no
//     password is in an error or a log.
//   - Passwords are not sent unencrypted, but to this very machine.
//
// Not guaranteed: that a mail goes out only once. Between the server's answer
// that it has the mail and the rename that notes it there are some microseconds
// in which a crash leaves nobody to know (with several recipients of whom some
// were refused, the write of a small file); and a connection that breaks
// after the last byte of a mail and before the answer leaves open whether the
// server has it. The mail is then sent again. Its Message-ID is the same, by which
// many servers and clients drop the second one; SES puts its own in that place, so
// that only X-Karui-Event tells.
//
// Given up, with an error in the log: a recipient that is refused for good for a
// whole day, a mail that could not be sent for seven days, the oldest of more than
// ten thousand.
package mail

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"karui/watchdog/event"
	"karui/watchdog/settings"
)

// Options are what a Mailer is given from outside. The zero value works for SMTP.
type Options struct {
	// AWS is how SES is reached: credentials, HTTP client; the region comes from
	// the settings.
	AWS aws.Config
	// Log gets what an operator of the watchdog should know. Default: slog's.
	Log *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Zone is shown beside UTC. Default: JST in Japanese mails, none in others.
	Zone *time.Location
	// Dial reaches mail servers. Default: TCP.
	Dial DialFunc
	// Roots are who is trusted to sign a mail server's certificate. Default: the
	// system's.
	Roots *x509.CertPool
	// Look makes a Mailer that touches nothing at its start: for those who only look
	// at the outbox, or have to go on with a disk that takes nothing. The outbox is
	// made when a mail comes.
	Look bool
}

// Mailer is an outbox on disk and what empties it. All methods may be called at
// any time from any goroutine.
type Mailer struct {
	opt   Options
	store store
	wake  chan struct{}

	mu       sync.Mutex
	settings settings.Config
	epoch    int   // counts Configure
	order    int64 // of the newest mail
	trouble  string

	most int // mails that wait

	pump pump // only with the store's lock and sending held
	// sending keeps Run and Flush of one process apart, before the lock that
	// keeps processes apart.
	sending chan struct{}
}

var _ event.Outbox = (*Mailer)(nil)

// New opens (and makes) the outbox in a state directory. It sends nothing yet.
func New(stateDir string, c settings.Config, o Options) (*Mailer, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := store{dir: filepath.Join(stateDir, "outbox")}
	if !o.Look {
		if err := s.make(); err != nil {
			return nil, err
		}
	}
	m := &Mailer{opt: o, store: s, settings: c, most: maxWaiting, wake: make(chan struct{}, 1), sending: make(chan struct{}, 1)}
	m.pump = newPump()
	ids, err := s.list()
	if err != nil && !o.Look {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	for _, id := range ids {
		if e, err := s.read("", id); err == nil {
			m.order = max(m.order, e.Order)
		}
	}
	return m, nil
}

// Configure takes new settings; mails that wait are sent by them.
func (m *Mailer) Configure(c settings.Config) {
	m.mu.Lock()
	m.settings = c
	m.epoch++
	m.mu.Unlock()
	m.nudge()
}

func (m *Mailer) config() (settings.Config, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings, m.epoch
}

func (m *Mailer) nudge() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Enqueue writes an event down to be told. See event.Notifier. Without mail
// settings it does nothing.
func (m *Mailer) Enqueue(_ context.Context, e event.Event) error {
	if c, _ := m.config(); !c.Mail.Enabled() {
		return nil
	}
	now := m.opt.Now()
	m.mu.Lock()
	m.order = max(m.order+1, now.UnixNano())
	order := m.order
	m.mu.Unlock()
	queued, err := newEntry(e, now, order)
	if err != nil {
		return fmt.Errorf("take a mail: %w", err)
	}
	added, err := m.store.add(queued)
	if err != nil {
		return fmt.Errorf("take a mail into %s: %w", m.store.dir, err)
	}
	if added {
		m.nudge()
	}
	return nil
}

// Waiting counts the mails that wait, and tells since when the oldest does. It
// changes nothing.
func (m *Mailer) Waiting() (n int, oldest time.Time, err error) {
	ids, err := m.store.list()
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("read the outbox: %w", err)
	}
	for _, id := range ids {
		e, err := m.store.read("", id)
		if err != nil {
			continue // gone meanwhile, or about to be set aside
		}
		n++
		if oldest.IsZero() || e.Queued.Before(oldest) {
			oldest = e.Queued
		}
	}
	return n, oldest, nil
}

// Trouble is why mails do not go out at present, empty if they do: the last error
// of the way to the mail server.
func (m *Mailer) Trouble() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trouble
}

// Try sends an event at once, past the outbox, to all of the site's recipients:
// connection, TLS, login and a real mail. The error joins one Error for each
// recipient, or is one.
func (m *Mailer) Try(ctx context.Context, e event.Event) error {
	c, _ := m.config()
	if !c.Mail.Enabled() {
		return &Error{Stage: StageConnect, Permanent: true, Text: "no mail is configured", Hint: "set mail.smtp.host or mail.ses.region"}
	}
	entry, err := newEntry(e, m.opt.Now(), 0)
	if err != nil {
		return asError(err, StageCompose)
	}
	to, language := m.recipients(c, entry.Event.Site)
	if len(to) == 0 {
		return errNoRecipients(entry.Event.Site)
	}
	l, err := m.letter(c, entry, to, language)
	if err != nil {
		return err
	}
	s, err := m.way(c).transport().open(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	r, err := s.send(ctx, l, to)
	if err != nil {
		return err
	}
	return joinRefusals(r.refused)
}

func (m *Mailer) way(c settings.Config) way {
	return way{mail: c.Mail, aws: m.opt.AWS, roots: m.opt.Roots, dial: m.opt.Dial}
}

func errNoRecipients(site string) *Error {
	return &Error{Stage: StageCompose, Permanent: true, Text: "nobody is to be told about " + site, Hint: "set mail.to, or the site's own"}
}

// recipients are the plain addresses for a site, each once, and the language. A
// site that is no longer configured has the global ones.
func (m *Mailer) recipients(c settings.Config, site string) ([]string, string) {
	s, _ := c.Site(site)
	list, language := c.Recipients(s)
	var to []string
	for _, r := range list {
		if address, err := netmail.ParseAddress(r); err == nil && !slices.Contains(to, address.Address) {
			to = append(to, address.Address)
		}
	}
	return to, cmp.Or(language, settings.English)
}

// letter makes the mail of an entry.
func (m *Mailer) letter(c settings.Config, e entry, to []string, language string) (letter, error) {
	from, err := netmail.ParseAddress(c.Mail.From)
	if err != nil {
		return letter{}, &Error{Stage: StageCompose, Permanent: true, Text: fmt.Sprintf("mail.from %q: %v", c.Mail.From, err), cause: err}
	}
	subject, body, err := textAt(e.Event, language, m.opt.Zone, m.opt.Now())
	if err != nil {
		return letter{}, asError(err, StageCompose)
	}
	domain := domainOf(from.Address)
	raw, err := compose(draft{
		from: c.Mail.From, to: to, language: language, subject: subject, body: body, date: e.Queued,
		id: messageID(e.Event.ID, domain), references: m.references(e.Event.ReplyTo, domain), event: e.Event,
	})
	return letter{from: from.Address, raw: raw}, err
}

// references are the Message-IDs that the mail about an event has at its readers:
// the server's, if it gave any, and ours.
func (m *Mailer) references(id, domain string) []string {
	if id == "" {
		return nil
	}
	var out []string
	if e, err := m.store.read(placeSent, id); err == nil {
		out = e.MessageIDs
	}
	return append(out, messageID(id, domain))
}

// messageID is the same for an event whenever it is sent.
func messageID(id, domain string) string { return "karui." + id + "@" + domain }

func domainOf(address string) string {
	domain := address[strings.LastIndexByte(address, '@')+1:]
	if !isMessageID("x@" + domain) {
		return "karui.invalid" // a domain that is not ASCII
	}
	return domain
}
