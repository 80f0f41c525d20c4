package origin

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"karui/internal/servertest"
)

// The names under which stores are used in tests.
const (
	testBucket = "photos"
	testRegion = "ap-northeast-1"
	accessKey  = "AKIAIOSFODNN7EXAMPLE"
	secretKey  = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
)

// bareAWS keeps the machine's own AWS settings out of a test.
func bareAWS(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	missing := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": missing, "AWS_SHARED_CREDENTIALS_FILE": missing, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey,
	} {
		t.Setenv(name, value)
	}
}

// signed verifies each request's signature over what arrived, and that nothing
// unsigned could change what is asked for.
func signed(t *testing.T, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead || !strings.Contains(r.Header.Get("Authorization"), accessKey) || r.Header.Get("X-Amz-Meta-Trust") != "" {
			next.ServeHTTP(w, r) // set up by the test's own client
			return
		}
		auth := r.Header.Get("Authorization")
		_, list, _ := strings.Cut(auth, "SignedHeaders=")
		list, _, _ = strings.Cut(list, ",")
		again := &http.Request{
			Method: r.Method, Host: r.Host, Header: http.Header{},
			URL: &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery},
		}
		for name := range strings.SplitSeq(list, ";") {
			if name != "host" {
				again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
			}
		}
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err == nil {
			signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
			err = signer.SignHTTP(r.Context(), aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey}, again,
				r.Header.Get("X-Amz-Content-Sha256"), "s3", testRegion, at)
		}
		if got := again.Header.Get("Authorization"); err != nil || got != auth {
			t.Errorf("%s %s: signed %q, want %q (%v)", r.Method, r.RequestURI, auth, got, err)
		}
		for name := range r.Header {
			if strings.HasPrefix(name, "X-Amz-") && !slices.Contains(strings.Split(list, ";"), strings.ToLower(name)) {
				t.Errorf("%s is not signed", name)
			}
		}
		next.ServeHTTP(w, r)
	})
}

// fakeS3 is gofakes3 behind a check of signatures.
func fakeS3(t *testing.T) string {
	t.Helper()
	fake := gofakes3.New(s3mem.New(), gofakes3.WithTimeSkewLimit(0), gofakes3.WithLogger(gofakes3.DiscardLog()))
	s := httptest.NewServer(signed(t, fake.Server()))
	t.Cleanup(s.Close)
	return s.URL
}

// moto is moto_server, where it is installed. It checks no signature.
func moto(t *testing.T) string { return servertest.Moto(t, "S3") }

// gateway is versitygw, an S3 server on a folder, where it is on the PATH or among
// the tools that scripts/tool keeps. It checks signatures and permissions.
func gateway(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("versitygw")
	if err != nil {
		if cache, cerr := os.UserCacheDir(); cerr == nil {
			if found, _ := filepath.Glob(filepath.Join(cache, "karui-tools", "versitygw-*", "versitygw")); len(found) > 0 {
				path, err = found[len(found)-1], nil
			}
		}
	}
	if err != nil {
		t.Skip("versitygw is not installed: no second opinion on S3 (scripts/tool versitygw builds it)")
	}
	folder := t.TempDir()
	address := freeAddress(t)
	cmd := exec.Command(path, "--access", accessKey, "--secret", secretKey, "--region", testRegion, "--port", address,
		"--iam-dir", t.TempDir(), "posix", "--sidecar", t.TempDir(), folder)
	servertest.Run(t, cmd, regexp.MustCompile(`(?i)`+regexp.QuoteMeta(address)), "S3")
	return "http://" + address
}

// freeAddress gives an address that nobody listened on a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// writer is a client with the rights of the bucket's owner.
func writer(endpoint string) *s3.Client {
	return s3.New(s3.Options{
		Region: testRegion, BaseEndpoint: &endpoint, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
	})
}

// object is what tests put into a store.
type object struct {
	key, contentType, cacheControl, disposition, encoding, body string
}

// fill makes the bucket with objects in it.
func fill(t *testing.T, endpoint string, objects ...object) {
	t.Helper()
	c := writer(endpoint)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.CreateBucket(ctx, &s3.CreateBucketInput{
		Bucket: aws.String(testBucket), CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: testRegion},
	}); err != nil {
		t.Fatalf("make the bucket: %v", err)
	}
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	for _, o := range objects {
		_, err := c.PutObject(ctx, &s3.PutObjectInput{
			Bucket: aws.String(testBucket), Key: &o.key, Body: strings.NewReader(o.body), ContentType: text(o.contentType),
			CacheControl: text(o.cacheControl), ContentDisposition: text(o.disposition), ContentEncoding: text(o.encoding),
		})
		if err != nil {
			t.Fatalf("put %q: %v", o.key, err)
		}
	}
}

// bucketPlaces reads from a store.
func bucketPlaces(t *testing.T, endpoint, url string, change ...func(*PlacesOptions)) *Places {
	t.Helper()
	place := DefaultPlace()
	place.Name, place.URLs, place.Region, place.Endpoint = "bucket", []string{url}, testRegion, endpoint
	o := PlacesOptions{Site: "shop", Config: testConfig(), Retry: DefaultRetryConfig(), Places: []PlaceConfig{place}, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&o)
	}
	p, err := NewPlaces(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// take reads a whole answer.
func take(t *testing.T, p *Places, r Request) (*Response, string, error) {
	t.Helper()
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	resp, err := p.Do(t.Context(), r)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}
