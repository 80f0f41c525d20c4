package mail

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// smtpServer takes mails, strictly: commands out of order are refused, a password
// counts only when it is right.
type smtpServer struct {
	listener net.Listener
	tls      *tls.Config // with starttls or implicit
	starttls bool
	implicit bool
	auth     string // mechanisms offered, "PLAIN LOGIN"; empty for none
	user     string
	password string

	// answer changes what a command ("RCPT"; "." for
	// the end of a mail, whose line names the event) is answered
	// with: "" for what is right, "drop" for nothing but the end of the connection.
	answer func(verb, line string) string

	mu       sync.Mutex
	mails    []received
	commands []string
	conns    map[net.Conn]bool
	dialogs  int
	running  sync.WaitGroup
}

// received is a mail that the server answered for.
type received struct {
	from, authenticated string
	to                  []string
	encrypted           bool
	raw                 []byte
}

// serve runs the server until the test ends.
func (s *smtpServer) serve(t *testing.T, listener net.Listener) {
	s.listener, s.conns = listener, make(map[net.Conn]bool)
	s.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[conn] = true
			s.dialogs++
			s.mu.Unlock()
			s.running.Go(func() {
				s.dialog(conn)
				_ = conn.Close()
				s.mu.Lock()
				delete(s.conns, conn)
				s.mu.Unlock()
			})
		}
	})
	t.Cleanup(s.stop)
}

func (s *smtpServer) stop() {
	_ = s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

func (s *smtpServer) inbox() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

func (s *smtpServer) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.commands, "\n")
}

// set changes the answers.
func (s *smtpServer) set(answer func(verb, line string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *smtpServer) told(verb, line string) string {
	s.mu.Lock()
	s.commands = append(s.commands, line)
	answer := s.answer
	s.mu.Unlock()
	if answer == nil {
		return ""
	}
	return answer(verb, line)
}

func (s *smtpServer) dialog(conn net.Conn) {
	encrypted := s.implicit
	if s.implicit {
		conn = tls.Server(conn, s.tls)
	}
	r := textproto.NewReader(bufio.NewReader(conn))
	say := func(format string, args ...any) bool {
		_, err := fmt.Fprintf(conn, format+"\r\n", args...)
		return err == nil
	}
	if special := s.told("", "(connected)"); special == "drop" || !say("%s", or(special, "220 mx.example.com ESMTP")) {
		return
	}
	var m received
	var authenticated string
	for {
		line, err := r.ReadLine()
		if err != nil {
			return
		}
		verb := strings.ToUpper(strings.SplitN(line, " ", 2)[0])
		special := s.told(verb, line)
		switch {
		case special == "drop":
			return
		case special != "":
			say("%s", special)
			if strings.HasPrefix(special, "421") {
				return
			}
			continue
		}
		switch verb {
		case "EHLO":
			say("250-mx.example.com")
			if s.starttls && !encrypted {
				say("250-STARTTLS")
			}
			if s.auth != "" {
				say("250-AUTH %s", s.auth)
			}
			say("250 8BITMIME")
		case "STARTTLS":
			if !s.starttls || encrypted {
				say("502 no")
				continue
			}
			say("220 go on")
			conn = tls.Server(conn, s.tls)
			r = textproto.NewReader(bufio.NewReader(conn))
			encrypted = true
		case "AUTH":
			user, password, ok := s.challenge(r, say, line)
			if !ok || user != s.user || password != s.password {
				say("535 5.7.8 wrong user or password: %s", password) // as careless as can be
				continue
			}
			authenticated = user
			say("235 welcome")
		case "MAIL":
			if s.user != "" && authenticated == "" {
				say("530 5.7.0 log in first")
				continue
			}
			m = received{from: address(line), authenticated: authenticated, encrypted: encrypted}
			say("250 ok")
		case "RCPT":
			if m.from == "" {
				say("503 MAIL first")
				continue
			}
			m.to = append(m.to, address(line))
			say("250 ok")
		case "DATA":
			if len(m.to) == 0 {
				say("503 RCPT first")
				continue
			}
			say("354 go on")
			raw, err := r.ReadDotBytes()
			if err != nil {
				return
			}
			m.raw = bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n"))
			_, id, _ := strings.Cut(string(m.raw), "X-Karui-Event: ")
			id, _, _ = strings.Cut(id, "\r\n")
			special := s.told(".", ". "+id)
			if special == "" || special == "drop" { // it has the mail, and says so or not
				s.mu.Lock()
				s.mails = append(s.mails, m)
				s.mu.Unlock()
			}
			m = received{}
			if special == "drop" {
				return
			}
			say("%s", or(special, "250 2.0.0 queued as 4711"))
		case "RSET":
			m = received{}
			say("250 ok")
		case "NOOP":
			say("250 ok")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("500 what?")
		}
	}
}

func (s *smtpServer) challenge(r *textproto.Reader, say func(string, ...any) bool, line string) (user, password string, ok bool) {
	fields := strings.Fields(line)
	decode := func(text string) string {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return ""
		}
		return string(b)
	}
	ask := func(prompt string) string {
		say("334 %s", base64.StdEncoding.EncodeToString([]byte(prompt)))
		answer, err := r.ReadLine()
		if err != nil {
			return ""
		}
		return decode(answer)
	}
	if len(fields) < 2 || !slices.Contains(strings.Fields(s.auth), fields[1]) {
		return "", "", false
	}
	switch fields[1] {
	case "PLAIN":
		parts := strings.Split(decode(fields[len(fields)-1]), "\x00")
		if len(parts) != 3 {
			return "", "", false
		}
		return parts[1], parts[2], true
	case "LOGIN":
		user = ask("Username:")
		return user, ask("Password:"), true
	}
	return "", "", false
}

func address(line string) string {
	_, rest, _ := strings.Cut(line, "<")
	inner, _, _ := strings.Cut(rest, ">")
	return inner
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// certificate makes a server's certificate for names and who trusts it.
func certificate(t *testing.T, names ...string) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: names,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, pool
}
