package cloudfront

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// raw sends a request that AWS's own signer signed. before changes it ahead of
// the signature, after behind its back.
func (l *lab) raw(method, path, body string, before, after func(*http.Request)) (*http.Response, string) {
	l.t.Helper()
	return l.rawAt(time.Now(), "cloudfront", "us-east-1", method, path, body, before, after)
}

func (l *lab) rawAt(at time.Time, service, region, method, path, body string, before, after func(*http.Request)) (*http.Response, string) {
	l.t.Helper()
	r, err := http.NewRequestWithContext(l.t.Context(), method, *l.base.BaseEndpoint+path, strings.NewReader(body))
	l.must(err)
	if before != nil {
		before(r)
	}
	err = v4.NewSigner().SignHTTP(l.t.Context(), aws.Credentials{AccessKeyID: l.user.AccessKeyID, SecretAccessKey: l.user.SecretAccessKey},
		r, hexSum([]byte(body)), service, region, at)
	l.must(err)
	if after != nil {
		after(r)
	}
	resp, err := l.base.HTTPClient.Do(r)
	l.must(err)
	defer func() { l.must(resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	l.must(err)
	if resp.Header.Get("X-Amzn-Requestid") == "" {
		l.t.Error("no request id")
	}
	return resp, string(text)
}

func TestSignatureIsVerified(t *testing.T) {
	const path = "/2020-05-31/distribution/" + shopID
	get := func(l *lab, before, after func(*http.Request)) string {
		_, text := l.raw(http.MethodGet, path, "", before, after)
		return text
	}
	for name, tc := range map[string]struct {
		send func(l *lab) string
		want string
	}{
		"good": {func(l *lab) string { return get(l, nil, nil) }, "<Status>Deployed</Status>"},
		"odd but good query": {func(l *lab) string {
			_, text := l.raw(http.MethodGet, "/2020-05-31/distribution?MaxItems=5&Marker=%20a%2Bb&Marker=", "", nil, nil)
			return text
		}, "<DistributionList"},
		"none": {func(l *lab) string {
			return get(l, nil, func(r *http.Request) { r.Header.Del("Authorization") })
		}, "MissingAuthenticationToken"},
		"other algorithm": {func(l *lab) string {
			return get(l, nil, func(r *http.Request) { r.Header.Set("Authorization", "Basic eA==") })
		}, "IncompleteSignature"},
		"no date": {func(l *lab) string {
			return get(l, nil, func(r *http.Request) { r.Header.Del("X-Amz-Date") })
		}, "IncompleteSignature"},
		"changed path": {func(l *lab) string {
			return get(l, nil, func(r *http.Request) { r.URL.Path += "/config" })
		}, "SignatureDoesNotMatch"},
		"added query": {func(l *lab) string {
			return get(l, nil, func(r *http.Request) { r.URL.RawQuery = "x=1" })
		}, "SignatureDoesNotMatch"},
		"added if-match": {func(l *lab) string {
			return get(l, nil, func(r *http.Request) { r.Header.Set("If-Match", "E0000000000000") })
		}, "must be a signed header"},
		"changed header": {func(l *lab) string {
			return get(l, func(r *http.Request) { r.Header.Set("If-Match", "E1") }, func(r *http.Request) { r.Header.Set("If-Match", "E2") })
		}, "SignatureDoesNotMatch"},
		"content hash": {func(l *lab) string {
			return get(l, func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD") }, nil)
		}, "XAmzContentSHA256Mismatch"},
		"changed body": {func(l *lab) string {
			_, text := l.raw(http.MethodPut, path+"/config", "<a/>", nil, func(r *http.Request) {
				r.Body = io.NopCloser(strings.NewReader("<b/>"))
			})
			return text
		}, "SignatureDoesNotMatch"},
		"token for a user": {func(l *lab) string {
			return get(l, func(r *http.Request) { r.Header.Set("X-Amz-Security-Token", "x") }, nil)
		}, "InvalidClientTokenId"},
		"other region": {func(l *lab) string {
			_, text := l.rawAt(time.Now(), "cloudfront", "eu-west-1", http.MethodGet, path, "", nil, nil)
			return text
		}, "valid region"},
		"other service": {func(l *lab) string {
			_, text := l.rawAt(time.Now(), "sts", "us-east-1", http.MethodGet, path, "", nil, nil)
			return text
		}, "correct service"},
		"late": {func(l *lab) string {
			_, text := l.rawAt(time.Now().Add(-6*time.Minute), "cloudfront", "us-east-1", http.MethodGet, path, "", nil, nil)
			return text
		}, "Signature expired"},
		"early": {func(l *lab) string {
			_, text := l.rawAt(time.Now().Add(6*time.Minute), "cloudfront", "us-east-1", http.MethodGet, path, "", nil, nil)
			return text
		}, "Signature not yet current"},
		"a little late": {func(l *lab) string {
			_, text := l.rawAt(time.Now().Add(-4*time.Minute), "cloudfront", "us-east-1", http.MethodGet, path, "", nil, nil)
			return text
		}, "<Status>Deployed</Status>"},
		"unknown sts action": {func(l *lab) string {
			_, text := l.rawAt(time.Now(), "sts", "us-east-1", http.MethodPost, "/", "Action=GetFederationToken&Version=2011-06-15", nil, nil)
			return text
		}, "InvalidAction"},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, Options{}, func(_ context.Context, l *lab) {
				if text := tc.send(l); !strings.Contains(text, tc.want) {
					t.Errorf("answer lacks %q:\n%s", tc.want, text)
				}
			})
		})
	}
}

// The worked example of AWS's documentation of Signature Version 4, so that the
// verification is not only compared with the SDK.
func TestDocumentedSignature(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	r.Header.Set("X-Amz-Date", "20150830T123600Z")
	a := authorization{date: "20150830", region: "us-east-1", service: "iam"}
	canonical := canonicalRequest(r, []string{"content-type", "host", "x-amz-date"}, nil)
	got := sign("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", a, "20150830T123600Z", canonical)
	if want := "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"; got != want {
		t.Errorf("signature is %s, want %s", got, want)
	}
}

// Pieces that the SDK's requests do not reach.
func TestCanonicalPieces(t *testing.T) {
	if got := canonicalQuery("b=2&a=1&a=%2F&c"); got != "a=%2F&a=1&b=2&c=" {
		t.Errorf("query: %s", got)
	}
	if got := escape("/a b/%20~", true); got != "/a%20b/%2520~" {
		t.Errorf("path: %s", got)
	}
	for _, bad := range []string{
		"", "AWS4-HMAC-SHA256 ", "AWS4-HMAC-SHA256 Credential=a/b/c/d, SignedHeaders=host, Signature=x",
		"AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request, SignedHeaders=host;date, Signature=x",
		"AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request, SignedHeaders=host, Signature=x, Signature=y",
	} {
		if a, err := parseAuthorization(bad); err == nil {
			t.Errorf("%q was taken as %+v", bad, a)
		}
	}
	a, err := parseAuthorization("AWS4-HMAC-SHA256 Credential=K/20150830/us-east-1/iam/aws4_request,SignedHeaders=host;x-amz-date,Signature=ab")
	if err != nil || a.service != "iam" || !slices.Equal(a.signedHeaders, []string{"host", "x-amz-date"}) {
		t.Errorf("%+v, %v", a, err)
	}
}

func FuzzParseAuthorization(f *testing.F) {
	f.Add("AWS4-HMAC-SHA256 Credential=K/20150830/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=ab")
	f.Add("AWS4-HMAC-SHA256 =,=,=")
	f.Fuzz(func(t *testing.T, header string) {
		a, err := parseAuthorization(header)
		if err == nil && (a.accessKey == "" || a.signature == "" || len(a.signedHeaders) == 0) {
			t.Errorf("%q gave %+v", header, a)
		}
	})
}
