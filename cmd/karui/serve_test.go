package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Whoever tries karui is told what to try, also where no conversion succeeds.
func TestGreetingComesWithAndWithoutVariants(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	defer http.DefaultClient.CloseIdleConnections()
	for media, word := range map[string]string{"image/webp": "", "image/jpeg": "karui has made no WebP of the sample photo within 50ms"} {
		asked := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.Header().Set("Content-Type", media)
		}))
		wait := time.Minute
		if word != "" {
			wait = 50 * time.Millisecond
		}
		var out bytes.Buffer
		address := strings.TrimPrefix(s.URL, "http://")
		greet(context.Background(), &out, "http://origin", address, wait)
		s.Close()
		if asked == 0 || !strings.HasPrefix(out.String(), word) || (word == "") == strings.Contains(out.String(), "no WebP") ||
			!strings.Contains(out.String(), "curl -sD- -o photo.jpg http://"+address+"/photo.jpg") {
			t.Errorf("%s: asked %d times, said %s", media, asked, &out)
		}
	}
}

func TestGreetingEndsWithTheProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out bytes.Buffer
	greet(ctx, &out, "http://origin", "127.0.0.1:9", time.Minute)
	if out.Len() > 0 {
		t.Errorf("said %s", &out)
	}
}
