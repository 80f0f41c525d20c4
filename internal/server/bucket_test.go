package server

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"karui/internal/sample"
	"karui/proxy/origin"
)

// A site whose originals are in a bucket: pictures are converted, what is missing
// is missing, and what karui may not read is left to the true origin.
func TestSiteInABucket(t *testing.T) {
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none,
	} {
		t.Setenv(name, value)
	}
	fake := gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/denied.jpg") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`<Error><Code>AccessDenied</Code></Error>`)) // a client that left needs none
			return
		}
		fake.ServeHTTP(w, r)
	}))
	defer store.Close()
	t.Setenv("AWS_ENDPOINT_URL_S3", store.URL)
	owner := s3.New(s3.Options{
		Region: "eu-west-1", BaseEndpoint: &store.URL, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider("AKIAIOSFODNN7EXAMPLE", "secret", ""),
	})
	if _, err := owner.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("pictures")}); err != nil {
		t.Fatal(err)
	}
	photo := sample.Photo()
	if _, err := owner.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String("pictures"), Key: aws.String("shop/写真 1.jpg"), Body: bytes.NewReader(photo),
	}); err != nil {
		t.Fatal(err)
	}

	r := start(t, func(c *Config) {
		place := origin.DefaultPlace()
		place.Name, place.URLs, place.Region = "bucket", []string{"s3://pictures/shop"}, "eu-west-1"
		c.Sites[0].Origins = []origin.PlaceConfig{place}
	})
	const path = "/%E5%86%99%E7%9C%9F%201.jpg"
	status, _, body, err := r.get(r.url + path)
	if status != http.StatusOK || !bytes.Equal(body, photo) {
		t.Fatalf("%d, %d bytes, %v", status, len(body), err)
	}
	r.until(r.url+path, func(status int, h http.Header) bool {
		return status == http.StatusOK && h.Get("Content-Type") == "image/webp" && h.Get("X-Karui") == "hit"
	}, "Accept: image/webp")
	for path, want := range map[string]int{"/missing.jpg": 404, "/missing.txt": 404, "/denied.jpg": 503, "/": 503, "/%ff.jpg": 503} {
		status, h, body, err := r.get(r.url + path)
		if status != want || bytes.Contains(body, []byte("Error")) || want == 503 && h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d, %v, %q, %v", path, status, h, body, err)
		}
	}
}
