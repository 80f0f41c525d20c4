package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"strconv"
	"strings"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"karui/watchdog/settings"
)

// smtpTransport hands mails to a mail server. TLS and AUTH are go-mail's; the
// transaction is driven here, since go-mail gives up the whole mail when one
// recipient is refused.
type smtpTransport struct {
	settings.SMTP
	roots *x509.CertPool // nil: the system's
	dial  DialFunc
}

func (t *smtpTransport) open(ctx context.Context) (session, error) {
	conn, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	// go-mail's dialog does not watch the context, and leaves the connection open
	// when it fails.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	client, err := gomail.NewClient(t.Host, t.options(conn)...)
	if err == nil {
		var dialog *smtp.Client
		if dialog, err = client.DialToSMTPClientWithContext(ctx); err == nil {
			return &smtpSession{t: t, conn: conn, client: dialog}, nil
		}
	}
	_ = conn.Close()
	return nil, t.explainOpen(ctx, err)
}

func (t *smtpTransport) options(conn net.Conn) []gomail.Option {
	options := []gomail.Option{
		gomail.WithPort(t.Port),
		gomail.WithTimeout(connectTimeout),
		gomail.WithTLSConfig(t.tlsConfig()),
		gomail.WithDialContextFunc(func(context.Context, string, string) (net.Conn, error) { return conn, nil }),
	}
	if t.TLS == settings.StartTLS {
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	} else {
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS)) // encrypted from the start, or not at all
	}
	if t.User == "" {
		return options
	}
	// PLAIN and LOGIN first: every account has them, while a server may offer
	// challenges that an account was never set up for.
	mechanisms := []gomail.SMTPAuthType{
		gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthCramMD5,
	}
	if t.TLS == settings.None { // connect has made sure that it is the loopback
		mechanisms = []gomail.SMTPAuthType{gomail.SMTPAuthPlainNoEnc, gomail.SMTPAuthLoginNoEnc}
	}
	return append(options, gomail.WithUsername(t.User), gomail.WithPassword(t.Password), gomail.WithOpportunisticSMTPAuth(mechanisms...))
}

func (t *smtpTransport) tlsConfig() *tls.Config {
	return &tls.Config{ServerName: t.Host, RootCAs: t.roots, MinVersion: tls.VersionTLS12}
}

// connect reaches the server, encrypted if TLS is implicit.
func (t *smtpTransport) connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	address := net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
	dial := t.dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, &Error{
			Stage: StageConnect, Text: "connect to " + address + ": " + withoutPorts(err),
			Hint: "are mail.smtp.host and mail.smtp.port right, and does a firewall let this machine out to them?", cause: err,
		}
	}
	if t.TLS == settings.None && t.User != "" && !isLoopback(t.Host, conn.RemoteAddr()) {
		_ = conn.Close()
		return nil, &Error{
			Stage: StageAuth, Permanent: true, Text: "the password is not sent to " + address + " without encryption",
			Hint: "set mail.smtp.tls to starttls or implicit, or leave mail.smtp.user empty",
		}
	}
	if t.TLS != settings.ImplicitTLS {
		return conn, nil
	}
	encrypted := tls.Client(conn, t.tlsConfig())
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, t.explainTLS(err)
	}
	return encrypted, nil
}

// isLoopback tells whether what is sent stays on this machine. The address counts
// more than the name; a made-up network has none.
func isLoopback(host string, remote net.Addr) bool {
	if tcp, ok := remote.(*net.TCPAddr); ok {
		return tcp.IP.IsLoopback()
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (t *smtpTransport) explainTLS(err error) *Error {
	e := &Error{Stage: StageTLS, Text: "TLS with " + t.Host + ": " + withoutPorts(err), cause: err}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		e.Hint = "mail.smtp.host has to be a name in the server's certificate, and its issuer known to this machine (SSL_CERT_FILE)"
	} else if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		e.Hint = "the server does not begin with TLS: mail.smtp.tls starttls (often port 587) instead of implicit (often port 465)?"
	}
	return e
}

// explainOpen puts what go-mail says of a dialog that did not come about into a
// stage. Some of it is text only.
func (t *smtpTransport) explainOpen(ctx context.Context, err error) *Error {
	if ctx.Err() != nil {
		return &Error{Stage: StageSession, Text: "given up: " + context.Cause(ctx).Error(), cause: context.Cause(ctx)}
	}
	text := err.Error()
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	reply, refused := errors.AsType[*textproto.Error](err)
	switch {
	case certificate || record || alert:
		return t.explainTLS(err)
	case strings.HasPrefix(text, "STARTTLS mode set"):
		return &Error{
			Stage: StageTLS, Text: t.Host + " does not offer STARTTLS", cause: err,
			Hint: "mail.smtp.tls implicit with its port (often 465)? Mails are not sent unencrypted unless it is none",
		}
	case strings.Contains(text, "AUTH") || errors.Is(err, gomail.ErrNoSupportedAuthDiscovered):
		e := &Error{
			Stage: StageAuth, Text: "log in to " + t.Host + " as " + t.User + ": " + t.redact(err), cause: err,
			Hint: "are mail.smtp.user and mail.smtp.password right, and may this account send mail?",
		}
		if refused {
			e.Code, e.Permanent = strconv.Itoa(reply.Code), reply.Code >= 500
		}
		return e
	}
	e := &Error{Stage: StageSession, Text: t.Host + ": " + t.redact(err), cause: err}
	if refused {
		e.Code = strconv.Itoa(reply.Code)
	} else if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		e.Text = t.Host + " accepts connections and does not answer"
		e.Hint = "a port that expects TLS from the start (often 465) needs mail.smtp.tls implicit"
	}
	return e
}

// redact is an error's text without the account's password, in any of the forms
// in which a server might echo it.
func (t *smtpTransport) redact(err error) string {
	return redact(withoutPorts(err), t.User, t.Password)
}

// smtpSession is a connection that is ready for mails.
type smtpSession struct {
	t      *smtpTransport
	conn   net.Conn
	client *smtp.Client
}

// send is one transaction: all recipients that the server takes get the mail,
// whatever it says to the others.
func (s *smtpSession) send(ctx context.Context, l letter, to []string) (receipt, error) {
	defer context.AfterFunc(ctx, func() { _ = s.conn.Close() })()
	s.client.SkipSMTPUTF8(isASCII(l.from) && isASCII(strings.Join(to, "")))
	if reply, err := s.command(ctx, func() error { return s.client.Mail("<" + l.from + ">") }); err != nil {
		return receipt{}, err
	} else if reply != nil {
		return s.refuse(ctx, receipt{}, to, StageSender, reply), nil
	}
	var r receipt
	for _, address := range to {
		reply, err := s.command(ctx, func() error { return s.client.Rcpt("<" + address + ">") })
		switch {
		case err != nil:
			return receipt{}, err
		case reply != nil:
			r.refused = append(r.refused, s.refusal(StageRecipient, address, reply))
		default:
			r.taken = append(r.taken, address)
		}
	}
	if len(r.taken) == 0 {
		s.reset(ctx)
		return r, nil
	}
	reply, err := s.data(ctx, l.raw)
	if err != nil {
		return receipt{}, err
	}
	if reply != nil {
		taken := r.taken
		r.taken = nil
		return s.refuse(ctx, r, taken, StageData, reply), nil
	}
	return r, nil
}

// data sends the mail itself. From its last byte to the server's answer nobody
// can tell whether the server has it.
func (s *smtpSession) data(ctx context.Context, raw []byte) (*textproto.Error, error) {
	return s.command(ctx, func() error {
		w, err := s.client.Data()
		if err != nil {
			return err
		}
		_, writing := w.Write(raw)
		if err := s.client.UpdateDeadline(doneTimeout); err != nil {
			return err
		}
		return errors.Join(writing, w.Close())
	})
}

// command runs a command and tells a refusal, after which the dialog goes on, from
// a broken connection.
func (s *smtpSession) command(ctx context.Context, f func() error) (*textproto.Error, error) {
	if err := s.client.UpdateDeadline(commandTimeout); err != nil {
		return nil, s.broken(ctx, err)
	}
	err := f()
	reply, refused := errors.AsType[*textproto.Error](err)
	switch {
	case err == nil:
		return nil, nil
	case refused && reply.Code != 421: // 421: the server closes the connection
		return reply, nil
	}
	return nil, s.broken(ctx, err)
}

func (s *smtpSession) broken(ctx context.Context, err error) *Error {
	e := &Error{Stage: StageSession, Text: "connection to " + s.t.Host + " broke: " + s.t.redact(err), cause: err}
	if reply, ok := errors.AsType[*textproto.Error](err); ok {
		e.Code, e.Text = strconv.Itoa(reply.Code), s.t.Host+" ends the connection: "+s.t.redact(err)
	}
	if ctx.Err() != nil {
		e.Text, e.cause = "given up: "+context.Cause(ctx).Error(), context.Cause(ctx)
	}
	return e
}

// refuse adds the same refusal for several recipients, and makes the session
// ready for the next mail.
func (s *smtpSession) refuse(ctx context.Context, r receipt, to []string, stage string, reply *textproto.Error) receipt {
	for _, address := range to {
		r.refused = append(r.refused, s.refusal(stage, address, reply))
	}
	s.reset(ctx)
	return r
}

func (s *smtpSession) refusal(stage, address string, reply *textproto.Error) *Error {
	e := &Error{
		Stage: stage, Recipient: address, Code: strconv.Itoa(reply.Code), Permanent: reply.Code >= 500,
		Text: fmt.Sprintf("%s refuses: %s", s.t.Host, s.t.redact(reply)), cause: reply,
	}
	switch {
	case stage == StageSender && e.Permanent:
		e.Hint = "may mail.from be used with this server and account?"
	case stage == StageRecipient && e.Permanent:
		e.Hint = "is the address right, and may this machine or account send mail there (relaying)?"
	}
	return e
}

// reset ends a transaction that came to nothing. If that fails, what was said of
// the letter stands, and the next one finds the connection closed.
func (s *smtpSession) reset(ctx context.Context) {
	if reply, err := s.command(ctx, s.client.Reset); err != nil || reply != nil {
		_ = s.conn.Close()
	}
}

func (s *smtpSession) close() {
	if s.client.UpdateDeadline(quitTimeout) == nil {
		_ = s.client.Quit()
	}
	_ = s.conn.Close()
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}
