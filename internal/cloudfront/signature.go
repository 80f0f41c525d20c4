package cloudfront

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	signingAlgorithm = "AWS4-HMAC-SHA256"
	amzDate          = "20060102T150405Z"

	// maxSkew is how far AWS lets a request's time be off (5 minutes, as its
	// "Signature expired" messages say).
	maxSkew = 5 * time.Minute
)

// authorization is a parsed Authorization header of Signature Version 4.
type authorization struct {
	accessKey, date, region, service string
	signedHeaders                    []string
	signature                        string
}

var errAuthorization = errors.New("authorization header is incomplete")

// parseAuthorization reads
// "AWS4-HMAC-SHA256 Credential=K/20000101/us-east-1/sts/aws4_request, SignedHeaders=a;b, Signature=hex".
func parseAuthorization(header string) (authorization, error) {
	var a authorization
	rest, ok := strings.CutPrefix(header, signingAlgorithm+" ")
	if !ok {
		return a, errAuthorization
	}
	fields := make(map[string]string)
	for part := range strings.SplitSeq(rest, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(part), "=")
		if _, twice := fields[name]; !found || twice {
			return a, errAuthorization
		}
		fields[name] = value
	}
	scope := strings.Split(fields["Credential"], "/")
	if len(fields) != 3 || len(scope) != 5 || scope[4] != "aws4_request" {
		return a, errAuthorization
	}
	a.accessKey, a.date, a.region, a.service = scope[0], scope[1], scope[2], scope[3]
	a.signedHeaders = strings.Split(fields["SignedHeaders"], ";")
	a.signature = fields["Signature"]
	if a.accessKey == "" || a.signature == "" || !slices.IsSorted(a.signedHeaders) {
		return a, errAuthorization
	}
	return a, nil
}

// mustBeSigned lists the headers that change what a request means and so have
// to be covered. AWS asks for host and x-amz-* only; If-Match is ours.
func mustBeSigned(h http.Header) []string {
	names := []string{"host"}
	for name := range h {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "x-amz-") || lower == "if-match" || lower == "content-type" {
			names = append(names, lower)
		}
	}
	return names
}

// authenticate verifies the signature of a call over its body, as received, and
// finds out who signed. It returns the region of the credential scope.
func (d *Double) authenticate(c *call) (string, *failure) {
	header := c.r.Header.Get("Authorization")
	if header == "" {
		return "", failf(http.StatusForbidden, "MissingAuthenticationToken", "Missing Authentication Token")
	}
	a, err := parseAuthorization(header)
	if err != nil {
		return "", failf(http.StatusBadRequest, "IncompleteSignature", "The request signature does not conform to AWS standards.")
	}
	stamp := c.r.Header.Get("X-Amz-Date")
	signedAt, err := time.Parse(amzDate, stamp)
	if err != nil {
		return "", failf(http.StatusBadRequest, "IncompleteSignature", "Date must be in ISO-8601 'basic format'. Got '%s'.", stamp)
	}
	if fail := d.checkScope(c, a, signedAt); fail != nil {
		return "", fail
	}
	who, secret, fail := d.principalFor(a.accessKey, c.r.Header.Get("X-Amz-Security-Token"))
	if fail != nil {
		return "", fail
	}
	for _, name := range mustBeSigned(c.r.Header) {
		if !slices.Contains(a.signedHeaders, name) {
			return "", failf(http.StatusForbidden, "SignatureDoesNotMatch", "'%s' must be a signed header.", name)
		}
	}
	want := sign(secret, a, stamp, canonicalRequest(c.r, a.signedHeaders, c.body))
	if !hmac.Equal([]byte(want), []byte(a.signature)) {
		return "", failf(http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature "+
			"you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	if sum := c.r.Header.Get("X-Amz-Content-Sha256"); sum != "" && sum != hexSum(c.body) {
		return "", failf(http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
	}
	c.by = who
	return a.region, nil
}

func (d *Double) checkScope(c *call, a authorization, signedAt time.Time) *failure {
	now := d.now().UTC()
	switch {
	case a.date != signedAt.Format("20060102"):
		return failf(http.StatusForbidden, "SignatureDoesNotMatch", "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '%s' != '%s'.",
			a.date, signedAt.Format("20060102"))
	case a.service != c.service:
		return failf(http.StatusForbidden, "SignatureDoesNotMatch", "Credential should be scoped to correct service: '%s'.", c.service)
	case a.region == "" || c.service == serviceCloudFront && a.region != "us-east-1":
		return failf(http.StatusForbidden, "SignatureDoesNotMatch", "Credential should be scoped to a valid region.")
	case now.Sub(signedAt) > maxSkew:
		return failf(http.StatusForbidden, "SignatureDoesNotMatch", "Signature expired: %s is now earlier than %s (%s - 5 min.)",
			signedAt.Format(amzDate), now.Add(-maxSkew).Format(amzDate), now.Format(amzDate))
	case signedAt.Sub(now) > maxSkew:
		return failf(http.StatusForbidden, "SignatureDoesNotMatch", "Signature not yet current: %s is still later than %s (%s + 5 min.)",
			signedAt.Format(amzDate), now.Add(maxSkew).Format(amzDate), now.Format(amzDate))
	}
	return nil
}

// canonicalRequest is the text that the signature covers.
func canonicalRequest(r *http.Request, signedHeaders []string, body []byte) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n")
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	// Every service but S3 escapes the already escaped path once more.
	b.WriteString(escape(path, true) + "\n")
	b.WriteString(canonicalQuery(r.URL.RawQuery) + "\n")
	for _, name := range signedHeaders {
		var values []string
		switch name {
		case "host":
			values = []string{r.Host}
		case "content-length":
			values = []string{strconv.FormatInt(r.ContentLength, 10)}
		default:
			values = slices.Clone(r.Header.Values(name))
		}
		for i, v := range values {
			values[i] = strings.Join(strings.Fields(v), " ")
		}
		b.WriteString(name + ":" + strings.Join(values, ",") + "\n")
	}
	b.WriteString("\n" + strings.Join(signedHeaders, ";") + "\n" + hexSum(body))
	return b.String()
}

func canonicalQuery(raw string) string {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return "invalid"
	}
	var pairs []string
	for name, list := range values {
		for _, v := range list {
			pairs = append(pairs, escape(name, false)+"="+escape(v, false))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escape is AWS's UriEncode: everything but A-Z a-z 0-9 - . _ ~ (and slashes of
// a path) in upper-case hex.
func escape(s string, keepSlash bool) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9',
			c == '-', c == '.', c == '_', c == '~', c == '/' && keepSlash:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}

// sign computes the signature that the request should carry.
func sign(secret string, a authorization, stamp, canonical string) string {
	scope := a.date + "/" + a.region + "/" + a.service + "/aws4_request"
	text := signingAlgorithm + "\n" + stamp + "\n" + scope + "\n" + hexSum([]byte(canonical))
	key := mac([]byte("AWS4"+secret), a.date)
	key = mac(key, a.region)
	key = mac(key, a.service)
	key = mac(key, "aws4_request")
	return hex.EncodeToString(mac(key, text))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
