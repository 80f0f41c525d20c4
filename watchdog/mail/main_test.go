package mail

import (
	"bytes"
	"encoding/base64"
	"io"
	"log/slog"
	"mime"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"karui/watchdog/settings"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
	}
	goleak.VerifyTestMain(m)
}

// logs collects what is logged.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logs) count(part string) int { return strings.Count(l.String(), part) }

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// configured are settings with an SMTP server and the sites shop (English, global
// recipients) and mise (Japanese, its own).
func configured(address net.Addr) settings.Config {
	c := settings.Default()
	c.Mail.From = "Karui <karui@example.com>"
	c.Mail.To = []string{"ops@example.com", "boss@example.com"}
	c.Mail.SMTP.Host, c.Mail.SMTP.Port, c.Mail.SMTP.TLS = "mx.example.com", 25, settings.None
	if host, port, err := net.SplitHostPort(address.String()); err == nil {
		c.Mail.SMTP.Host = host
		c.Mail.SMTP.Port, _ = strconv.Atoi(port)
	}
	shop, mise := settings.DefaultSite(), settings.DefaultSite()
	shop.ID = "shop"
	mise.ID, mise.Mail = "mise", settings.SiteMail{To: []string{"tantou@example.jp"}, Language: settings.Japanese}
	c.Sites = []settings.Site{shop, mise}
	return c
}

// opened is a mail as a client shows it.
type opened struct {
	header  netmail.Header
	subject string
	body    string // with \n
}

func open(t *testing.T, raw []byte) opened {
	t.Helper()
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	o := opened{header: m.Header}
	if o.subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		t.Fatal(err)
	}
	if kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type")); err != nil || kind != "text/plain" || !strings.EqualFold(params["charset"], "utf-8") {
		t.Errorf("Content-Type %q: %v", m.Header.Get("Content-Type"), err)
	}
	var body []byte
	switch encoding := m.Header.Get("Content-Transfer-Encoding"); encoding {
	case "base64":
		body, err = io.ReadAll(base64.NewDecoder(base64.StdEncoding, m.Body))
	case "quoted-printable":
		body, err = io.ReadAll(quotedprintable.NewReader(m.Body))
	default:
		t.Errorf("encoding %q", encoding)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.body = strings.ReplaceAll(string(body), "\r\n", "\n")
	return o
}
