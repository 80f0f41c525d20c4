package edge

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"
)

// certified makes a certificate for a name and the pool that trusts it.
func certified(t *testing.T, name string) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // simulated time begins there
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: long.Add(-time.Hour), NotAfter: long.Add(100 * 365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}, pool
}

func TestACertificateThatDoesNotFitCountsAsNoConnection(t *testing.T) {
	good, trusted := certified(t, "karui.example.com")
	other, _ := certified(t, "other.example.com")
	other.Certificates = append(other.Certificates[:0:0], other.Certificates...)
	_, stranger := certified(t, "karui.example.com")
	for _, c := range []struct {
		name   string
		server *tls.Config
		roots  *x509.CertPool
		body   string
	}{
		{"fits", good, trusted, "karui"},
		{"other name", other, trusted, "origin"},
		{"unknown authority", good, stranger, "origin"},
		{"no TLS at all", nil, trusted, "origin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inLabWith(t, document{https: true}, Options{RootCAs: c.roots}, func(l *lab) {
				dial := l.transports.dial
				l.transports.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					if address == "karui.example.com:80" {
						t.Error("plain HTTP to an https-only origin")
					}
					return dial(ctx, network, address)
				}
				l.karui.secure(c.server)
				l.want("/img/a", c.body, Miss)
				if v := l.event(); c.body == "origin" && v.FailedOver != FailTLS {
					t.Errorf("failed over for %q: %+v", v.FailedOver, v.Tries)
				}
			})
		})
	}
}
