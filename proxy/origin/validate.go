package origin

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"golang.org/x/net/http/httpguts"

	"karui/internal/config"
)

// Validate checks the section under its key. It reads the file of authorities,
// so that a check of the configuration finds what a start would.
func (c Config) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	errs := []error{
		config.InRange(k("deadline"), c.Deadline, 100*time.Millisecond, 2*time.Minute), // the edge's own ends at 120 s
		config.InRange(k("connect"), c.Connect, 10*time.Millisecond, 30*time.Second),
		config.InRange(k("idle"), c.Idle, 100*time.Millisecond, 10*time.Minute),
		config.InRange(k("total"), c.Total, time.Second, time.Hour),
		config.NotOver(k("connect"), c.Connect, k("deadline"), c.Deadline),
		config.NotOver(k("deadline"), c.Deadline, k("total"), c.Total),
		config.NotOver(k("idle"), c.Idle, k("total"), c.Total),
	}
	if c.CAFile != "" {
		if err := checkAuthorities(c.CAFile); err != nil {
			errs = append(errs, config.Invalid(k("ca_file"), c.CAFile, fmt.Sprintf("the absolute path of a PEM file with certificates (%s)", err)))
		}
	}
	return errors.Join(errs...)
}

// maxAuthorities bounds the file of authorities; the system's own has 250 KiB.
const maxAuthorities = 4 << 20

func checkAuthorities(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("it is relative")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	pem, err := io.ReadAll(io.LimitReader(f, maxAuthorities))
	if err != nil {
		return err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return errors.New("it holds none")
	}
	return nil
}

// Validate checks the section under its key.
func (c RetryConfig) Validate(key string) error {
	return errors.Join(
		config.OneOf(config.Key(key, "mode"), c.Mode, "auto", "off"),
		config.InRange(config.Key(key, "level"), c.Level, 0, 3),
	)
}

// Bounds of a place's lists.
const (
	maxHeaders = 50
	maxURLs    = 32
)

// Validate checks one place under its key.
func (p PlaceConfig) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	errs := []error{
		config.Name(k("name"), p.Name),
		config.InRange(k("weight"), p.Weight, 0.001, 1000),
		config.AtMost(k("headers"), len(p.Headers), maxHeaders),
	}
	if len(p.URLs) == 0 {
		errs = append(errs, config.Invalid(k("urls"), nil, "a list of addresses, such as [https://origin.example.com]"))
	}
	errs = append(errs, config.AtMost(k("urls"), len(p.URLs), maxURLs), config.Unique(p.URLs, func(i int) string { return config.Key(key, "urls", i) }))
	buckets := 0
	for i, u := range p.URLs {
		if strings.HasPrefix(u, "s3://") {
			buckets++
			if _, _, err := parseS3(u); err != nil {
				errs = append(errs, config.Invalid(config.Key(key, "urls", i), u, "a bucket such as s3://bucket/prefix, the prefix without ? and #"))
			}
			continue
		}
		errs = append(errs, checkURL(config.Key(key, "urls", i), u))
	}
	errs = append(errs, p.validateS3(key, buckets))
	if p.Host != "" && (!httpguts.ValidHostHeader(p.Host) || strings.ContainsAny(p.Host, "/@?# ")) {
		errs = append(errs, config.Invalid(k("host"), p.Host, "a host name such as www.example.com"))
	}
	for i, h := range p.Headers {
		errs = append(errs, h.Validate(config.Key(key, "headers", i)))
	}
	return errors.Join(errs...)
}

// validateS3 checks the keys that are for buckets, of which the place has so many.
func (p PlaceConfig) validateS3(key string, buckets int) error {
	k := func(name string) string { return config.Key(key, name) }
	if buckets == 0 {
		var errs []error
		for _, s3 := range []struct{ name, value string }{
			{"region", p.Region}, {"endpoint", p.Endpoint}, {"role_arn", p.RoleARN},
		} {
			if s3.value != "" {
				errs = append(errs, config.Invalid(k(s3.name), s3.value, "left out: it is for s3:// urls only"))
			}
		}
		return errors.Join(errs...)
	}
	var errs []error
	if buckets < len(p.URLs) {
		errs = append(errs, config.Invalid(k("urls"), p.URLs, "either all s3:// or none: a bucket and a server are two places"))
	}
	if p.Host != "" {
		errs = append(errs, config.Invalid(k("host"), p.Host, "left out: the address of a bucket follows from its name, region and endpoint"))
	}
	if !validRegion(p.Region) {
		errs = append(errs, config.Invalid(k("region"), p.Region, "the region of the bucket, such as ap-northeast-1"))
	}
	if p.Endpoint != "" {
		errs = append(errs, checkURL(k("endpoint"), p.Endpoint))
	}
	if p.RoleARN != "" && !arn.IsARN(p.RoleARN) {
		errs = append(errs, config.Invalid(k("role_arn"), p.RoleARN, "a role such as arn:aws:iam::111122223333:role/karui-read"))
	}
	return errors.Join(errs...)
}

func validRegion(region string) bool {
	if region == "" || len(region) > 63 {
		return false
	}
	return !strings.ContainsFunc(region, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' })
}

func checkURL(key, text string) error {
	const want = "an address such as https://origin.example.com, without user, query and fragment"
	u, err := url.Parse(text)
	if err == nil && u.User != nil {
		text = u.Redacted()
	}
	switch {
	case err != nil:
		// A password may stand in what cannot be parsed.
		if strings.Contains(text, "@") {
			text = "..."
		}
		return config.Invalid(key, text, want)
	case u.Scheme != "http" && u.Scheme != "https",
		u.Hostname() == "", u.Opaque != "",
		u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.User != nil,
		!httpguts.ValidHostHeader(u.Host):
		return config.Invalid(key, text, want)
	case !config.GoodPort(u):
		return config.Invalid(key, text, "an address with a port from 1 to 65535, or without one")
	}
	return nil
}

// maxHeaderValue is what most servers take for all headers together.
const maxHeaderValue = 8 << 10

// Validate checks one fixed header under its key.
func (h Header) Validate(key string) error {
	errs := []error{CheckHeaderName(config.Key(key, "name"), h.Name)}
	if len(h.Value) > maxHeaderValue || !httpguts.ValidHeaderFieldValue(h.Value) {
		errs = append(errs, config.Invalid(config.Key(key, "value"), h.Value, fmt.Sprintf("a header value of at most %d bytes, without control characters", maxHeaderValue)))
	}
	return errors.Join(errs...)
}

// own are headers that karui sets, or leaves out, itself in every request to an
// origin: those of one connection, those by which a viewer asks for a part or
// for a form of the picture, and those between the edge and karui.
var own = []string{
	"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
	"host", "content-length", "expect",
	"accept", "accept-encoding", "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
	"x-karui-key", "x-routing",
}

// CheckHeaderName checks the name of a header that a request to an origin may
// carry by configuration.
func CheckHeaderName(key, name string) error {
	const want = "the name of a header, such as Referer"
	if name == "" {
		return config.Invalid(key, nil, want)
	}
	if !httpguts.ValidHeaderFieldName(name) || len(name) > 100 {
		return config.Invalid(key, name, want)
	}
	for _, o := range own {
		if strings.EqualFold(name, o) {
			return config.Invalid(key, name, "another header: karui decides itself what the origin gets as "+name)
		}
	}
	return nil
}
