package origin

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"

	"karui/proxy/origin/retry"
)

// Keys that are hard to write, and the path that means each.
var keys = map[string]string{
	"a.jpg": "/a.jpg", "album/2026/b c.png": "/album/2026/b%20c.png", "a+b.jpg": "/a+b.jpg", "plus+plus.jpg": "/plus%2Bplus.jpg",
	"100%.jpg": "/100%25.jpg", "日本語/写真.jpg": "/%E6%97%A5%E6%9C%AC%E8%AA%9E/%E5%86%99%E7%9C%9F.jpg", "生.jpg": "/生.jpg",
	"deep/slash.jpg": "/deep%2Fslash.jpg", "semi;colon,(x)!$&'*=:@.jpg": "/semi;colon,(x)!$&'*=:@.jpg", "q#?.jpg": "/q%23%3F.jpg",
	"a~b_c-d.jpg": "/a~b_c-d.jpg", `quote"<>\^{|}.jpg`: "/quote%22%3C%3E%5C%5E%7B%7C%7D.jpg",
}

// stores are the servers that the same things are asked of.
func stores(t *testing.T, test func(t *testing.T, endpoint string)) {
	for name, start := range map[string]func(*testing.T) string{"gofakes3": fakeS3, "moto": moto, "versitygw": gateway} {
		t.Run(name, func(t *testing.T) {
			bareAWS(t)
			test(t, start(t))
		})
	}
}

func TestBucket(t *testing.T) {
	stores(t, func(t *testing.T, endpoint string) {
		objects := []object{{
			key: "pictures/full.jpg", contentType: "image/jpeg", cacheControl: "max-age=77", disposition: `inline; filename="x.jpg"`, encoding: "identity", body: "0123456789",
		}, {key: "outside.jpg", body: "not under the prefix"}}
		for key := range keys {
			objects = append(objects, object{key: "pictures/" + key, body: "bytes of " + key})
		}
		fill(t, endpoint, objects...)
		p := bucketPlaces(t, endpoint, "s3://"+testBucket+"/pictures/")
		for key, path := range keys {
			for _, query := range []string{"", "?v=2", "?acl", "?versionId=1&uploads"} {
				_, body, err := take(t, p, Request{Target: path + query})
				if err != nil || body != "bytes of "+key {
					t.Errorf("%s%s gave %q, %v", path, query, body, err)
				}
			}
		}

		resp, body, err := take(t, p, Request{Target: "/full.jpg"})
		if err != nil || body != "0123456789" || resp.Status != 200 || resp.Length != 10 || resp.Framing != Length {
			t.Fatalf("%+v, %q, %v", resp, body, err)
		}
		for name, want := range map[string]string{
			"Content-Type": "image/jpeg", "Cache-Control": "max-age=77", "Content-Disposition": `inline; filename="x.jpg"`,
		} {
			if got := resp.Header.Get(name); got != want && (got != "" || !strings.HasSuffix(t.Name(), "gofakes3")) { // which keeps not all of them
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		tag, date := resp.Header.Get("Etag"), resp.Header.Get("Last-Modified")
		if tag == "" || date == "" {
			t.Errorf("ETag %q, Last-Modified %q", tag, date)
		}
		for name := range resp.Header {
			if strings.HasPrefix(name, "X-Amz-") || name == "Server" {
				t.Errorf("%s is handed on", name)
			}
		}
		if resp, body, err := take(t, p, Request{Method: "HEAD", Target: "/full.jpg"}); err != nil || resp.Status != 200 || body != "" || resp.Length != 10 {
			t.Errorf("HEAD: %+v, %q, %v", resp, body, err)
		}
		for _, h := range []http.Header{{"If-None-Match": {tag}}, {"If-Modified-Since": {date}}, {"If-None-Match": {tag}, "If-Modified-Since": {"Mon, 01 Jan 2001 00:00:00 GMT"}}} {
			resp, body, err := take(t, p, Request{Target: "/full.jpg", Header: h})
			if err == nil && resp.Status == 200 && h.Get("If-None-Match") == "" && strings.HasSuffix(t.Name(), "versitygw") {
				continue // which takes no date of this very second
			}
			if err != nil || resp.Status != 304 || body != "" {
				t.Errorf("%v: %+v, %q, %v", h, resp, body, err)
			}
		}
		for _, h := range []http.Header{{"If-None-Match": {`"other"`}, "If-Modified-Since": {date}}, {"Range": {"bytes=2-4"}, "If-Range": {tag}}} {
			if resp, body, err := take(t, p, Request{Target: "/full.jpg", Header: h}); err != nil || resp.Status != 200 || body != "0123456789" {
				t.Errorf("%v: %+v, %q, %v", h, resp, body, err)
			}
		}
		if resp, body, err := take(t, p, Request{Target: "/full.jpg", Header: http.Header{"Range": {"bytes=2-4"}}}); err != nil || resp.Status != 206 || body != "234" {
			t.Errorf("Range: %+v, %q, %v", resp, body, err)
		}
		for _, path := range []string{"/missing.jpg", "/outside.jpg", "/full.jpg/x", "/../outside.jpg", "/a/%2e%2e/../outside.jpg", "/..%2Foutside.jpg"} {
			for _, method := range []string{"GET", "HEAD"} {
				resp, body, err := take(t, p, Request{Method: method, Target: path})
				if err != nil && KindOf(err) != KindAccess && KindOf(err) != KindRequest || err == nil && (resp.Status != 404 && resp.Status != 400 || body != "") {
					t.Errorf("%s %s: %+v, %q, %v", method, path, resp, body, err)
				}
			}
		}
		if resp, _, err := take(t, p, Request{Target: "/missing.jpg"}); err != nil || resp.Status != 404 {
			t.Errorf("a missing key: %+v, %v", resp, err)
		}
		if s := p.Status().Places[0]; s.Unavailable != 0 || s.TimedOut != 0 {
			t.Errorf("%+v", s)
		}

		// What is wrong with the set-up is no answer.
		gone := bucketPlaces(t, endpoint, "s3://nosuchbucket")
		_, _, err = take(t, gone, Request{Target: "/a.jpg"})
		wantKind(t, err, KindSetup)
	})
}

func TestCredentialsThatAreNotTaken(t *testing.T) {
	bareAWS(t)
	endpoint := gateway(t)
	fill(t, endpoint, object{key: "a.jpg", body: "a"})
	t.Setenv("AWS_SECRET_ACCESS_KEY", "another")
	_, _, err := take(t, bucketPlaces(t, endpoint, "s3://"+testBucket), Request{Target: "/a.jpg"})
	wantKind(t, err, KindSetup)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIANOBODY0000000000")
	_, _, err = take(t, bucketPlaces(t, endpoint, "s3://"+testBucket), Request{Target: "/a.jpg"})
	wantKind(t, err, KindSetup)
}

// store answers every request with one status and code.
func store(t *testing.T, status int, code string) (url string, seen *atomic.Int64) {
	t.Helper()
	seen = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		w.Header().Set("Content-Type", "application/xml")
		w.Header().Set("X-Amz-Request-Id", "1")
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(status)
		if r.Method == http.MethodGet {
			_ = xml.NewEncoder(w).Encode(struct {
				XMLName                     xml.Name `xml:"Error"`
				Code, Message, Key, Padding string
			}{Code: code, Message: "no", Key: "secret/key", Padding: strings.Repeat("x", 10000)})
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, seen
}

func TestStoresWords(t *testing.T) {
	bareAWS(t)
	for _, tc := range []struct {
		status int
		code   string
		want   int  // the status, or
		kind   Kind // of the error
		fate   retry.Fate
	}{
		{404, "NoSuchKey", 404, 0, retry.Answered},
		{404, "NoSuchVersion", 404, 0, retry.Answered},
		{404, "", 404, 0, retry.Answered},
		{404, "NoSuchBucket", 0, KindSetup, retry.Unavailable},
		{403, "AccessDenied", 0, KindAccess, retry.Answered},
		{403, "InvalidObjectState", 0, KindAccess, retry.Answered}, // archived
		{403, "SignatureDoesNotMatch", 0, KindSetup, retry.Unavailable},
		{403, "InvalidAccessKeyId", 0, KindSetup, retry.Unavailable},
		{403, "RequestTimeTooSkewed", 0, KindSetup, retry.Unavailable},
		{400, "ExpiredToken", 0, KindSetup, retry.Unavailable},
		{400, "AuthorizationHeaderMalformed", 0, KindSetup, retry.Unavailable},
		{400, "InvalidArgument", 0, KindAccess, retry.Answered},
		{301, "PermanentRedirect", 0, KindSetup, retry.Unavailable},
		{307, "TemporaryRedirect", 0, KindSetup, retry.Unavailable},
		{412, "PreconditionFailed", 412, 0, retry.Answered},
		{416, "InvalidRange", 416, 0, retry.Answered},
		{429, "TooManyRequests", 429, 0, retry.Overloaded},
		{503, "SlowDown", 503, 0, retry.Overloaded},
		{503, "ServiceUnavailable", 503, 0, retry.Overloaded},
		{500, "InternalError", 500, 0, retry.Answered},
	} {
		url, seen := store(t, tc.status, tc.code)
		p := bucketPlaces(t, url, "s3://"+testBucket)
		resp, body, err := take(t, p, Request{Target: "/a.jpg"})
		if KindOf(err) != tc.kind || err == nil && resp.Status != tc.want || body != "" {
			t.Errorf("%d %s: %+v, %q, %v", tc.status, tc.code, resp, body, err)
		}
		if err != nil && (strings.Contains(err.Error(), "secret/key") || !strings.Contains(err.Error(), fmt.Sprint(tc.status))) {
			t.Errorf("%d %s: %v", tc.status, tc.code, err)
		}
		if err == nil && (resp.Header.Get("Content-Type") != "" || resp.Header.Get("X-Amz-Request-Id") != "" || resp.Length != 0) {
			t.Errorf("%d %s: %+v", tc.status, tc.code, resp)
		}
		if n := p.Status().Places[0].Total[tc.fate.String()]; n != 1 || seen.Load() != 1 {
			t.Errorf("%d %s: %+v after %d requests", tc.status, tc.code, p.Status().Places[0], seen.Load())
		}
	}
}

func TestOneOfTwoBucketsSlowsDown(t *testing.T) {
	bareAWS(t)
	slow, seen := store(t, 503, "SlowDown")
	good := fakeS3(t)
	fill(t, good, object{key: "a.jpg", body: "a"})
	p := bucketPlaces(t, good, "s3://"+testBucket, func(o *PlacesOptions) {
		second := o.Places[0]
		second.Name, second.Endpoint = "slow", slow
		o.Places = append(o.Places, second)
	})
	for range 10 {
		if _, body, err := take(t, p, Request{Target: "/a.jpg"}); err != nil || body != "a" {
			t.Errorf("%q, %v", body, err)
		}
	}
	if s := p.Status(); seen.Load() == 0 || s.SecondTries["another_place"] != seen.Load() {
		t.Errorf("%d at the slow one, %+v", seen.Load(), s)
	}
}

// role assumes any role, unless it is to fail or to hang.
type role struct {
	calls atomic.Int64
	err   error
	hang  chan struct{} // nil, or until it is closed
}

func (r *role) AssumeRole(ctx context.Context, in *sts.AssumeRoleInput, _ ...func(*sts.Options)) (*sts.AssumeRoleOutput, error) {
	r.calls.Add(1)
	if r.hang != nil {
		select {
		case <-ctx.Done():
		case <-r.hang:
		}
		return nil, errors.New("it took too long")
	}
	if r.err != nil {
		return nil, r.err
	}
	if *in.RoleArn != "arn:aws:iam::111122223333:role/read" || *in.RoleSessionName != "karui" {
		return nil, fmt.Errorf("asked for %s as %s", *in.RoleArn, *in.RoleSessionName)
	}
	return &sts.AssumeRoleOutput{Credentials: &ststypes.Credentials{
		AccessKeyId: aws.String(accessKey), SecretAccessKey: aws.String(secretKey), SessionToken: aws.String("token of the role"),
		Expiration: aws.Time(time.Now().Add(time.Hour)),
	}}, nil
}

func withRole(r *role) func(*PlacesOptions) {
	return func(o *PlacesOptions) {
		o.Places[0].RoleARN = "arn:aws:iam::111122223333:role/read"
		o.AWS = &AWS{STS: r}
	}
}

func TestRole(t *testing.T) {
	bareAWS(t)
	endpoint := fakeS3(t)
	fill(t, endpoint, object{key: "a.jpg", body: "a"})
	r := &role{}
	p := bucketPlaces(t, endpoint, "s3://"+testBucket, withRole(r))
	for range 3 {
		if _, body, err := take(t, p, Request{Target: "/a.jpg"}); err != nil || body != "a" {
			t.Errorf("%q, %v", body, err)
		}
	}
	if n := r.calls.Load(); n != 1 {
		t.Errorf("the role was assumed %d times", n)
	}
	// Credentials that ran out early are got anew for the next request.
	url, _ := store(t, 400, "ExpiredToken")
	p = bucketPlaces(t, url, "s3://"+testBucket, withRole(r))
	for range 3 {
		_, _, err := take(t, p, Request{Target: "/a.jpg"})
		wantKind(t, err, KindSetup)
	}
	if n := r.calls.Load(); n != 4 {
		t.Errorf("the role was assumed %d times", n)
	}
	// None to be had.
	p = bucketPlaces(t, endpoint, "s3://"+testBucket, withRole(&role{err: errors.New("AccessDenied: not you")}))
	_, _, err := take(t, p, Request{Target: "/a.jpg"})
	wantKind(t, err, KindSetup)
	if !strings.Contains(err.Error(), "not you") {
		t.Errorf("%v", err)
	}
	// STS that hangs is within origin.deadline.
	hanging := make(chan struct{})
	defer close(hanging)
	p = bucketPlaces(t, endpoint, "s3://"+testBucket, withRole(&role{hang: hanging}), func(o *PlacesOptions) {
		o.Config.Deadline = 50 * time.Millisecond
	})
	_, _, err = take(t, p, Request{Target: "/a.jpg"})
	wantKind(t, err, KindTimeout)
}

// What a viewer sends must not become a command to the store.
func TestViewersHeadersStayOut(t *testing.T) {
	bareAWS(t)
	var got atomic.Pointer[http.Request]
	s := httptest.NewServer(signed(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r)
		_, _ = io.WriteString(w, "ok")
	})))
	t.Cleanup(s.Close)
	p := bucketPlaces(t, s.URL, "s3://"+testBucket+"/p", func(o *PlacesOptions) {
		o.Places[0].Headers = []Header{{Name: "X-Amz-Request-Payer", Value: "requester"}, {Name: "Referer", Value: "https://www.example.com/"}}
	})
	_, _, err := take(t, p, Request{Target: "/a.jpg?x-amz-security-token=1&partNumber=2", Header: http.Header{
		"Authorization": {"Basic YTpi"}, "Cookie": {"a=b"}, "X-Amz-Server-Side-Encryption-Customer-Key": {"k"}, "X-Amz-Content-Sha256": {"x"},
		"X-Amz-Date": {"then"}, "Host": {"evil.example"}, "Accept-Encoding": {"identity"}, "User-Agent": {"viewer"}, "X-Forwarded-For": {"192.0.2.1"},
		"Origin": {"https://www.example.com"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := got.Load()
	if r.RequestURI != "/photos/p/a.jpg" || r.Host != strings.TrimPrefix(s.URL, "http://") {
		t.Errorf("asked for %s of %s", r.RequestURI, r.Host)
	}
	want := map[string]bool{
		"Authorization": true, "X-Amz-Date": true, "X-Amz-Content-Sha256": true, "X-Amz-Request-Payer": true, "Referer": true, "Origin": true,
	}
	for name := range r.Header {
		if !want[name] {
			t.Errorf("%s: %q", name, r.Header[name])
		}
	}
	if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256") {
		t.Errorf("Authorization: %s", r.Header.Get("Authorization"))
	}
	for _, refused := range []Request{
		{Method: "PUT", Target: "/a.jpg"},
		{Method: "DELETE", Target: "/a.jpg"},
		{Method: "POST", Target: "/a.jpg"},
		{Method: "GET", Target: "/a.jpg", Body: strings.NewReader("x"), Length: 1},
		{Target: "/" + strings.Repeat("a", 1100)},
		{Target: "/%zz"},
		{Target: "/%ff"},
		{Target: "/\x93\xfa"},
		{Target: "/"},
		{Target: "/?list-type=2"},
	} {
		got.Store(nil)
		_, _, err := take(t, p, refused)
		if KindOf(err) != KindRequest || got.Load() != nil {
			t.Errorf("%s %.20q: %v", refused.Method, refused.Target, err)
		}
	}
	if resp, _, err := take(t, p, Request{Method: "OPTIONS", Target: "/a.jpg", Header: http.Header{"Origin": {"https://x.example"}}}); err != nil || resp.Status != 200 {
		t.Errorf("OPTIONS: %+v, %v", resp, err)
	}
}

func TestAddressesOfBuckets(t *testing.T) {
	bareAWS(t)
	for _, tc := range []struct {
		url, region, endpoint, environment string
		want                               string // scheme://address + base
	}{
		{"s3://photos/p", "ap-northeast-1", "", "", "https://photos.s3.ap-northeast-1.amazonaws.com"},
		{"s3://photos", "us-east-1", "", "", "https://photos.s3.us-east-1.amazonaws.com"},
		{"s3://photos", "cn-north-1", "", "", "https://photos.s3.cn-north-1.amazonaws.com.cn"},
		{"s3://my.photos", "eu-west-1", "", "", "https://s3.eu-west-1.amazonaws.com/my.photos"},
		{"s3://photos", "eu-west-1", "http://127.0.0.1:9000", "", "http://127.0.0.1:9000/photos"},
		{"s3://photos", "eu-west-1", "https://gw.example/s3/", "", "https://gw.example/s3/photos"},
		{"s3://photos", "eu-west-1", "", "http://127.0.0.1:9001", "http://127.0.0.1:9001/photos"},
		{"s3://photos", "eu-west-1", "http://127.0.0.1:9000", "http://127.0.0.1:9001", "http://127.0.0.1:9000/photos"},
	} {
		t.Setenv("AWS_ENDPOINT_URL_S3", tc.environment)
		b, err := newBucket(tc.url, PlaceConfig{Region: tc.region, Endpoint: tc.endpoint}, nil)
		if err != nil {
			t.Errorf("%+v: %v", tc, err)
			continue
		}
		if got := b.point.scheme + "://" + b.point.addr + b.point.base; got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
	for _, url := range []string{"s3://", "s3:///p", "s3://B", "s3://photos/p?x", "s3://photos/p#x", "s3://ph otos", "s3://photos:80/p", "s3://me@photos"} {
		if _, err := newBucket(url, PlaceConfig{Region: "eu-west-1"}, nil); err == nil {
			t.Errorf("%s was taken", url)
		}
	}
	if _, err := newBucket("s3://photos", PlaceConfig{}, nil); err == nil {
		t.Error("a bucket without a region was taken")
	}
}

func FuzzObjectKey(f *testing.F) {
	for _, path := range keys {
		f.Add("p", path)
	}
	for _, target := range targets {
		f.Add("", target)
	}
	f.Fuzz(func(t *testing.T, prefix, target string) {
		if checkTarget("GET", target) != nil {
			return
		}
		if _, p, err := parseS3("s3://bucket/" + prefix); err != nil || p != prefix {
			return
		}
		key, err := objectKey(prefix, target)
		if err != nil {
			return
		}
		if key == "" || len(key) > maxKey || prefix != "" && !strings.HasPrefix(key, prefix+"/") {
			t.Fatalf("%q under %q is %q", target, prefix, key)
		}
		b := bucket{name: "bucket", prefix: prefix, point: endpoint{scheme: "http", addr: "s3.example", host: "s3.example", base: "/bucket"}}
		r, err := b.request(t.Context(), Request{Method: "OPTIONS", Target: target}, nil)
		if err != nil {
			t.Fatalf("%q: %v", target, err)
		}
		if line := r.URL.RequestURI(); line != "/bucket/"+escapeKey(key) || r.URL.Host != "s3.example" {
			t.Fatalf("%q is asked for as %q", target, line)
		}
	})
}
