package mail

import (
	"context"
	"crypto/x509"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"karui/watchdog/settings"
)

// transport is a way to hand over mails.
type transport interface {
	// open reaches the server. The session has to be closed.
	open(ctx context.Context) (session, error)
}

// session hands over one mail after the other.
type session interface {
	// send hands over a letter to some of its recipients. An error means that the
	// session is of no more use and that nothing is known of the letter.
	send(ctx context.Context, l letter, to []string) (receipt, error)
	close()
}

// letter is a mail ready to go.
type letter struct {
	from string // address only
	raw  []byte
}

// receipt is what became of a letter.
type receipt struct {
	taken   []string // recipients that the server answers for from now on
	refused []*Error // one for each other recipient
	ids     []string // message ids that the server gave it in place of ours
}

// DialFunc connects to an address as net.Dialer does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// way is what a transport is made of.
type way struct {
	mail  settings.Mail
	aws   aws.Config
	roots *x509.CertPool
	dial  DialFunc
}

func (w way) transport() transport {
	if w.mail.SES.Region != "" {
		return newSES(w)
	}
	return &smtpTransport{SMTP: w.mail.SMTP, roots: w.roots, dial: w.dial}
}

// Limits of waiting for a server.
const (
	connectTimeout = 15 * time.Second
	// commandTimeout is for one command and its answer. RFC 5321 4.5.3.2 gives
	// five minutes; two keep a sick server from holding everything up.
	commandTimeout = 2 * time.Minute
	// doneTimeout is for the answer to the end of the mail: 10 min, as RFC 5321
	// 4.5.3.2.6 has it, since giving up early makes a server send it twice.
	doneTimeout = 10 * time.Minute
	// quitTimeout is for a good-bye that nobody needs.
	quitTimeout = 2 * time.Second
)
