package mail

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"karui/watchdog/event"
	"karui/watchdog/settings"
)

const secret = "pa55-w0rd&geheim"

// lab is a server on the loopback and a Mailer that knows it.
func lab(t *testing.T, s *smtpServer, change func(c *settings.Config), roots *x509.CertPool) (*Mailer, *logs) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.serve(t, listener)
	c := configured(listener.Addr())
	if change != nil {
		change(&c)
	}
	l := new(logs)
	m, err := New(t.TempDir(), c, Options{Log: l.logger(), Roots: roots})
	if err != nil {
		t.Fatal(err)
	}
	return m, l
}

func try(t *testing.T, m *Mailer, e event.Event) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return m.Try(ctx, e)
}

func TestTransports(t *testing.T) {
	config, roots := certificate(t, "mx.example.com")
	for _, tt := range []struct {
		name, mode, auth string
	}{
		{"starttls, AUTH PLAIN", settings.StartTLS, "LOGIN PLAIN"},
		{"starttls, AUTH LOGIN", settings.StartTLS, "LOGIN"},
		{"starttls, no AUTH", settings.StartTLS, ""},
		{"implicit, AUTH PLAIN", settings.ImplicitTLS, "PLAIN"},
		{"implicit, AUTH LOGIN among others", settings.ImplicitTLS, "GSSAPI NTLM LOGIN"},
		{"none, no AUTH", settings.None, ""},
		{"none, AUTH on the loopback", settings.None, "PLAIN LOGIN"},
		{"none, AUTH LOGIN on the loopback", settings.None, "LOGIN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &smtpServer{tls: config, starttls: tt.mode == settings.StartTLS, implicit: tt.mode == settings.ImplicitTLS, auth: tt.auth}
			if tt.auth != "" {
				s.user, s.password = "karui", secret
			}
			m, _ := lab(t, s, func(c *settings.Config) {
				c.Mail.SMTP.TLS, c.Mail.SMTP.User, c.Mail.SMTP.Password = tt.mode, s.user, s.password
			}, roots)
			if err := try(t, m, sample(event.Rehearsal)); err != nil {
				t.Fatal(err)
			}
			in := s.inbox()
			if len(in) != 1 {
				t.Fatalf("%d mails", len(in))
			}
			got := in[0]
			if got.from != "karui@example.com" || !slices.Equal(got.to, []string{"ops@example.com", "boss@example.com"}) ||
				got.authenticated != s.user || got.encrypted != (tt.mode != settings.None) {
				t.Errorf("%+v", got)
			}
			if o := open(t, got.raw); o.subject != "[karui] shop REHEARSAL this is a test mail, it says nothing about health" {
				t.Errorf("subject %q", o.subject)
			}
		})
	}
}

func TestWhatKeepsAMailFromGoingOut(t *testing.T) {
	config, roots := certificate(t, "mx.example.com")
	foreign, _ := certificate(t, "elsewhere.example.com")
	auth := func(c *settings.Config) { c.Mail.SMTP.User, c.Mail.SMTP.Password = "karui", secret }
	starttls := func(c *settings.Config) { c.Mail.SMTP.TLS = settings.StartTLS }
	always := func(verb, reply string) func(string, string) string {
		return func(v, _ string) string {
			if v == verb {
				return reply
			}
			return ""
		}
	}
	for _, tt := range []struct {
		name      string
		server    *smtpServer
		change    []func(*settings.Config)
		stage     string
		code      string
		permanent bool
		hint      string
	}{
		{"no STARTTLS", &smtpServer{}, []func(*settings.Config){starttls}, StageTLS, "", false, "implicit"},
		{"a stranger's certificate", &smtpServer{tls: foreign, starttls: true}, []func(*settings.Config){starttls}, StageTLS, "", false, "certificate"},
		{"TLS expected where there is none", &smtpServer{}, []func(*settings.Config){func(c *settings.Config) { c.Mail.SMTP.TLS = settings.ImplicitTLS }}, StageTLS, "", false, "starttls"},
		{"wrong password", &smtpServer{tls: config, starttls: true, auth: "PLAIN", user: "karui", password: "other"}, []func(*settings.Config){starttls, auth}, StageAuth, "535", true, "mail.smtp.password"},
		{"wrong password with LOGIN", &smtpServer{tls: config, starttls: true, auth: "LOGIN", user: "karui", password: "other"}, []func(*settings.Config){starttls, auth}, StageAuth, "535", true, "mail.smtp.password"},
		{"no AUTH", &smtpServer{tls: config, starttls: true}, []func(*settings.Config){starttls, auth}, StageAuth, "", false, "mail.smtp.user"},
		{"no AUTH that is known", &smtpServer{tls: config, starttls: true, auth: "GSSAPI"}, []func(*settings.Config){starttls, auth}, StageAuth, "", false, "mail.smtp.user"},
		{"AUTH wanted and not given", &smtpServer{tls: config, starttls: true, auth: "PLAIN", user: "karui"}, []func(*settings.Config){starttls}, StageSender, "530", true, "mail.from"},
		{"greeted with 554", &smtpServer{answer: always("", "554 go away")}, nil, StageSession, "554", false, ""},
		{"greeted with 421", &smtpServer{answer: always("", "421 busy")}, nil, StageSession, "421", false, ""},
		{"dropped at once", &smtpServer{answer: always("", "drop")}, nil, StageSession, "", false, ""},
		{"dropped at MAIL", &smtpServer{answer: always("MAIL", "drop")}, nil, StageSession, "", false, ""},
		{"421 at RCPT", &smtpServer{answer: always("RCPT", "421 enough")}, nil, StageSession, "421", false, ""},
		{"sender refused", &smtpServer{answer: always("MAIL", "550 5.1.8 who?")}, nil, StageSender, "550", true, "mail.from"},
		{"sender put off", &smtpServer{answer: always("MAIL", "451 later")}, nil, StageSender, "451", false, ""},
		{"recipients refused", &smtpServer{answer: always("RCPT", "550 5.7.1 relaying denied")}, nil, StageRecipient, "550", true, "relaying"},
		{"recipients put off", &smtpServer{answer: always("RCPT", "450 greylisted")}, nil, StageRecipient, "450", false, ""},
		{"DATA refused", &smtpServer{answer: always("DATA", "554 no")}, nil, StageData, "554", true, ""},
		{"mail put off", &smtpServer{answer: always(".", "452 disk full")}, nil, StageData, "452", false, ""},
		{"dropped after the mail", &smtpServer{answer: always(".", "drop")}, nil, StageSession, "", false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := lab(t, tt.server, func(c *settings.Config) {
				for _, f := range tt.change {
					f(c)
				}
			}, roots)
			err := try(t, m, sample(event.Rehearsal))
			e, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("%T %v", err, err)
			}
			if e.Stage != tt.stage || e.Code != tt.code || e.Permanent != tt.permanent || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("%+v", e)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("holds the password: %v", err)
			}
			if tt.stage == StageTLS && strings.Contains(tt.server.heard(), "MAIL") {
				t.Errorf("goes on without encryption: %s", tt.server.heard())
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	m, _ := lab(t, new(smtpServer), func(c *settings.Config) { c.Mail.SMTP.Port = 1 }, nil)
	e, ok := errors.AsType[*Error](try(t, m, sample(event.Rehearsal)))
	if !ok || e.Stage != StageConnect || !strings.Contains(e.Hint, "firewall") || !strings.Contains(e.Text, "127.0.0.1:1") {
		t.Errorf("%v", e)
	}
}

func TestNoMailIsConfigured(t *testing.T) {
	m, _ := lab(t, new(smtpServer), func(c *settings.Config) { c.Mail.SMTP.Host = "" }, nil)
	if err := try(t, m, sample(event.Rehearsal)); err == nil || !strings.Contains(err.Error(), "mail.smtp.host") {
		t.Errorf("%v", err)
	}
	if err := m.Enqueue(t.Context(), sample(event.Degrade)); err != nil {
		t.Error(err)
	}
	if n, _, err := m.Waiting(); n != 0 || err != nil {
		t.Errorf("%d wait: %v", n, err)
	}
}

// A name that resolves to another machine, seen through a dialler that leads to
// this one.
func TestPasswordsAreNotSentUnencrypted(t *testing.T) {
	s := &smtpServer{auth: "PLAIN LOGIN CRAM-MD5", user: "karui", password: secret}
	m, _ := lab(t, s, func(c *settings.Config) {
		c.Mail.SMTP.User, c.Mail.SMTP.Password = "karui", secret
	}, nil)
	m.opt.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, s.listener.Addr().String())
		if err != nil {
			return nil, err
		}
		return elsewhere{conn}, nil
	}
	e, ok := errors.AsType[*Error](try(t, m, sample(event.Rehearsal)))
	if !ok || e.Stage != StageAuth || !strings.Contains(e.Hint, "mail.smtp.tls") {
		t.Errorf("%v", e)
	}
	if strings.Contains(s.heard(), "AUTH") {
		t.Error(s.heard())
	}
}

type elsewhere struct{ net.Conn }

func (elsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 25} }

func TestOneBadRecipientCostsNoOtherTheMail(t *testing.T) {
	s := &smtpServer{answer: func(verb, line string) string {
		if verb == "RCPT" && strings.Contains(line, "ops@") {
			return "550 5.1.1 no such user"
		}
		return ""
	}}
	m, _ := lab(t, s, nil, nil)
	err := try(t, m, sample(event.Rehearsal))
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Recipient != "ops@example.com" || !e.Permanent {
		t.Errorf("%v", err)
	}
	if in := s.inbox(); len(in) != 1 || !slices.Equal(in[0].to, []string{"boss@example.com"}) {
		t.Errorf("%+v", in)
	}
}

func TestTryEndsWithItsContext(t *testing.T) {
	reached := make(chan struct{}, 10)
	hold := make(chan struct{})
	s := &smtpServer{}
	m, _ := lab(t, s, nil, nil)
	s.set(func(verb, _ string) string {
		if verb == "MAIL" {
			reached <- struct{}{}
			<-hold
		}
		return ""
	})
	t.Cleanup(func() { close(hold) })
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- m.Try(ctx, sample(event.Rehearsal)) }()
	<-reached
	cancel()
	select {
	case err := <-result:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("does not return")
	}
}

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"535 wrong: " + secret:                        "535 wrong: " + redacted,
		"535 wrong: cGE1NS13MHJkJmdlaGVpbQ==":         "535 wrong: " + redacted,
		"535 wrong: AGthcnVpAHBhNTUtdzByZCZnZWhlaW0=": "535 wrong: " + redacted,
		"535 wrong user or password":                  "535 wrong user or password",
	} {
		if got := redact(text, "karui", secret); got != want {
			t.Errorf("%q", got)
		}
	}
	if got := redact("nothing to hide", "karui", ""); got != "nothing to hide" {
		t.Error(got)
	}
}
