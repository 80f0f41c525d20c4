package drill

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	random "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// bodyBytes is the length of a whole answer: a thumbnail.
const bodyBytes = 4 << 10

// place is a server on loopback of whose requests a share meets a fault.
type place struct {
	fault Fault
	rate  float64
	delay time.Duration // of Slow
	l     net.Listener
	tls   *tls.Config
	// closed is an address that refuses, held so that nobody else gets it.
	closed *refusal

	done chan struct{}
	wait sync.WaitGroup
	mu   sync.Mutex
	open map[net.Conn]bool
}

// startPlace serves until close. A rate of 0 makes a place that is well.
func startPlace(fault Fault, rate float64, delay time.Duration, authority *authority) (*place, error) {
	p := &place{fault: fault, rate: rate, delay: delay, done: make(chan struct{}), open: map[net.Conn]bool{}}
	var err error
	if p.closed, err = newRefusal(); err != nil {
		return nil, err
	}
	if p.l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		p.closed.close()
		return nil, fmt.Errorf("start a place: %w", err)
	}
	if authority != nil {
		// A resumed session would show no certificate at all.
		p.tls = &tls.Config{MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if p.hits(TLSError) {
				return &authority.foreign, nil
			}
			return &authority.own, nil
		}}
	}
	p.wait.Go(p.accept)
	return p, nil
}

func (p *place) url() string {
	if p.tls != nil {
		return "https://" + p.l.Addr().String()
	}
	return "http://" + p.l.Addr().String()
}

// hits tells whether a request, or a connection, meets the fault.
func (p *place) hits(f Fault) bool { return p.fault == f && random.Float64() < p.rate }

// dial is how clients come here: some of them find the door shut.
func (p *place) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if p.hits(Refuse) {
		address = p.closed.address
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

func (p *place) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.open[c] = true
		p.mu.Unlock()
		p.wait.Go(func() {
			defer func() {
				_ = c.Close()
				p.mu.Lock()
				delete(p.open, c)
				p.mu.Unlock()
			}()
			p.serve(c)
		})
	}
}

func (p *place) close() {
	close(p.done)
	_ = p.l.Close()
	p.mu.Lock()
	for c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wait.Wait()
	p.closed.close()
}

// serve answers the requests of one connection.
func (p *place) serve(raw net.Conn) {
	c := raw
	if p.tls != nil {
		c = tls.Server(raw, p.tls)
	}
	r := bufio.NewReader(c)
	for {
		line, err := head(r)
		if err != nil {
			return
		}
		status, length := 200, bodyBytes
		switch {
		case p.hits(Hang):
			_, _ = r.ReadByte() // until the client leaves
			return
		case p.hits(Slow):
			select {
			case <-time.After(p.delay):
			case <-p.done:
				return
			}
		case p.hits(Reset):
			if tcp, ok := raw.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // the close resets
			}
			return
		case p.hits(Error500):
			status, length = 500, 0
		case p.hits(Error503):
			status, length = 503, 0
		case p.hits(Error429):
			status, length = 429, 0
		case p.hits(CutEarly):
			_, _ = io.WriteString(c, answer(200, bodyBytes, 0, false))
			return
		case p.hits(CutLate):
			_, _ = io.WriteString(c, answer(200, bodyBytes, bodyBytes/2, false))
			return
		}
		// Faults of connections need new ones all the time.
		once := p.fault == Refuse || p.fault == TLSError
		sent := length
		if strings.HasPrefix(line, "HEAD ") {
			sent = 0
		}
		if _, err := io.WriteString(c, answer(status, length, sent, once)); err != nil || once {
			return
		}
	}
}

func answer(status, length, sent int, once bool) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 " + strconv.Itoa(status) + " X\r\nContent-Length: " + strconv.Itoa(length) + "\r\n")
	if once {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n" + strings.Repeat("k", sent))
	return b.String()
}

// head reads a request up to its empty line, and gives its first.
func head(r *bufio.Reader) (string, error) {
	first := ""
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		if first == "" {
			first = line
		}
		if line == "\r\n" {
			return first, nil
		}
	}
}

// refusal is a port that is taken and not listened on.
type refusal struct {
	fd      int
	address string
}

func newRefusal() (*refusal, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("take a port that refuses: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	var name unix.Sockaddr
	if err == nil {
		name, err = unix.Getsockname(fd)
	}
	v4, ok := name.(*unix.SockaddrInet4)
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("take a port that refuses: %w", err), unix.Close(fd))
	}
	return &refusal{fd: fd, address: net.JoinHostPort("127.0.0.1", strconv.Itoa(v4.Port))}, nil
}

func (r *refusal) close() { _ = unix.Close(r.fd) }

// authority signs the certificates of places, and one that nobody should trust.
type authority struct {
	own, foreign tls.Certificate
	// file holds the authority to trust.
	file string
}

// newAuthority writes its file into dir.
func newAuthority(dir string) (*authority, error) {
	a := &authority{file: filepath.Join(dir, "ca.pem")}
	for _, c := range []*tls.Certificate{&a.own, &a.foreign} {
		made, err := selfSigned()
		if err != nil {
			return nil, fmt.Errorf("make a certificate: %w", err)
		}
		*c = made
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.own.Certificate[0]})
	if err := os.WriteFile(a.file, text, 0o600); err != nil {
		return nil, fmt.Errorf("keep a certificate: %w", err)
	}
	return a, nil
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
