package edge

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/cloudfront"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront/types"

	"karui/internal/cloudfront"
)

// invalidate goes through the control plane as a real client does.
func (l *lab) invalidate(paths ...string) {
	l.t.Helper()
	user, err := l.control.AddUser("purger", cloudfront.AllowAll)
	l.must(err)
	pipe := cloudfront.NewPipe()
	server := l.control.Serve(pipe)
	transport := pipe.Transport()
	client := sdk.NewFromConfig(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), HTTPClient: &http.Client{Transport: transport},
		Credentials: credentials.NewStaticCredentialsProvider(user.AccessKeyID, user.SecretAccessKey, ""),
	})
	_, err = client.CreateInvalidation(l.t.Context(), &sdk.CreateInvalidationInput{
		DistributionId: aws.String(shop),
		InvalidationBatch: &types.InvalidationBatch{
			CallerReference: aws.String(time.Now().String() + strings.Join(paths, "")),
			Paths:           &types.Paths{Items: paths, Quantity: aws.Int32(int32(len(paths)))},
		},
	})
	l.must(err)
	transport.CloseIdleConnections()
	l.must(server.Close(l.t.Context()))
}

func TestInvalidationsDropWhatTheyCover(t *testing.T) {
	targets := []string{"/img/a.jpg", "/img/a.jpg?v=1", "/img/A.jpg", "/img/sub/a.jpg", "/img/b.jpg", "/page"}
	for _, c := range []struct{ path, gone string }{
		{"/img/a.jpg", "/img/a.jpg"},
		{"/img/a.jpg*", "/img/a.jpg /img/a.jpg?v=1"},
		{"/img/a.jpg?v=1", "/img/a.jpg?v=1"},
		{"/img/*", "/img/a.jpg /img/a.jpg?v=1 /img/A.jpg /img/sub/a.jpg /img/b.jpg"},
		{"/img/sub/*", "/img/sub/a.jpg"},
		{"/img", ""},
		{"/*", strings.Join(targets, " ")},
	} {
		t.Run(c.path, func(t *testing.T) {
			inLab(t, document{}, func(l *lab) {
				for _, target := range targets {
					l.get(target)
				}
				l.invalidate(c.path)
				for _, target := range targets {
					want := Hit
					for _, gone := range strings.Fields(c.gone) {
						if gone == target {
							want = Miss
						}
					}
					if s := l.get(target); s.cache() != want {
						t.Errorf("%s: %s, want %s", target, s.cache(), want)
					}
					if s := l.get(target); s.cache() != Hit {
						t.Errorf("%s afterwards: %s", target, s.cache())
					}
				}
			})
		})
	}
}

func TestAllHeaderVariantsOfAPathGoTogether(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		accepts := []string{"Accept: image/webp", "Accept: image/avif,image/webp", "Accept: */*"}
		for _, a := range accepts {
			l.want("/img/a", "karui", Miss, a)
			l.want("/img/a", "karui", Hit, a)
		}
		l.do(l.request(http.MethodHead, "/img/h"))
		l.invalidate("/img/a", "/img/h")
		for _, a := range accepts {
			l.want("/img/a", "karui", Miss, a)
		}
		if s := l.do(l.request(http.MethodHead, "/img/h")); s.cache() != Miss {
			t.Errorf("HEAD: %s", s.cache())
		}
	})
}

func TestAnInvalidationTakesEffectWhenItIsComplete(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.control.SetInvalidationDelay(30 * time.Second)
		l.want("/img/a", "karui", Miss)
		l.invalidate("/img/*")
		pass(29 * time.Second)
		l.want("/img/a", "karui", Hit)
		pass(time.Second)
		l.want("/img/a", "karui", Miss)
		l.want("/img/a", "karui", Hit)
	})
}

func TestWhatWasOnItsWayDuringAnInvalidationIsNotKept(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(func(w http.ResponseWriter, _ *http.Request) {
			pass(5 * time.Second)
			tell(w, 200, "old", "Cache-Control: max-age=60")
		})
		done := make(chan seen)
		go func() { done <- together(l, 1, "/img/a")[0] }()
		synctest.Wait()
		pass(time.Second)
		l.invalidate("/img/*")
		l.karui.says(200, "new", "Cache-Control: max-age=60")
		l.want("/img/a", "new", Miss) // it does not join the old one
		if s := <-done; s.body != "old" {
			t.Errorf("%q %v", s.body, s.err)
		}
		l.want("/img/a", "new", Hit)
	})
}

func TestErrorsAndStaleObjectsAreInvalidatedToo(t *testing.T) {
	inLab(t, document{statuses: []int{400}}, func(l *lab) {
		l.karui.says(404, "no", "Cache-Control: max-age=600")
		l.get("/img/a")
		l.karui.says(200, "karui", "Cache-Control: max-age=60")
		if s := l.get("/img/a"); s.status != 404 {
			t.Errorf("%d", s.status)
		}
		l.invalidate("/img/a")
		l.want("/img/a", "karui", Miss)
		pass(time.Minute)
		l.karui.says(503, "busy")
		l.want("/img/a", "karui", Hit)
		l.invalidate("/*")
		if s := l.get("/img/a"); s.status != 503 {
			t.Errorf("%d", s.status)
		}
	})
}

func TestMemoryIsBoundedAndTheLeastRecentlyUsedGoFirst(t *testing.T) {
	const size = 100 << 10
	inLabWith(t, document{}, Options{Memory: 1 << 20, MaxObject: 512 << 10}, func(l *lab) {
		body := strings.Repeat("x", size)
		l.karui.says(200, body, "Cache-Control: max-age=6000")
		l.get("/img/first")
		for i := range 30 {
			l.get("/img/" + strings.Repeat("n", i+1))
			l.get("/img/first")
			if _, bytes := l.Cached(); bytes > 1<<20 {
				t.Fatalf("%d bytes are held", bytes)
			}
		}
		if s := l.get("/img/first"); s.cache() != Hit {
			t.Error("the one that is used all the time went")
		}
		if s := l.get("/img/n"); s.cache() != Miss || s.body != body {
			t.Error("the oldest one is still there")
		}
		if n, _ := l.Cached(); n < 5 {
			t.Errorf("only %d objects are kept", n)
		}
	})
}

func TestBodiesOverTheLimitStreamThroughUnkept(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 128<<10/16*8) // 1 MiB
	for name, length := range map[string]bool{"announced": true, "found out": false} {
		t.Run(name, func(t *testing.T) {
			inLabWith(t, document{}, Options{Memory: 4 << 20, MaxObject: 512 << 10}, func(l *lab) {
				l.karui.handle(func(w http.ResponseWriter, _ *http.Request) {
					if length {
						w.Header().Set("Content-Length", "1048576")
					}
					tell(w, 200, body, "Cache-Control: max-age=60")
				})
				for _, s := range together(l, 4, "/img/a") {
					if s.body != body || s.err != nil {
						t.Errorf("%d bytes, %v", len(s.body), s.err)
					}
				}
				l.event()
				if n, bytes := l.Cached(); n != 0 || bytes != 0 {
					t.Errorf("%d objects, %d bytes", n, bytes)
				}
			})
		})
	}
}

// With no room at all for what comes in, every viewer still gets its image.
func TestWithoutRoomBodiesStreamThrough(t *testing.T) {
	body := strings.Repeat("x", 300<<10)
	inLabWith(t, document{}, Options{Memory: 100 << 10, MaxObject: 100 << 10}, func(l *lab) {
		l.karui.handle(func(w http.ResponseWriter, _ *http.Request) { tell(w, 200, body, "Cache-Control: max-age=60") })
		resp := l.open("/img/slow") // stays behind
		defer resp.Body.Close()
		for _, s := range together(l, 3, "/img/a") {
			if s.body != body || s.err != nil {
				t.Errorf("%d bytes, %v", len(s.body), s.err)
			}
		}
		if got, err := io.ReadAll(resp.Body); len(got) != len(body) || err != nil {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		l.event()
		if _, bytes := l.Cached(); bytes > 100<<10 {
			t.Errorf("%d bytes are held", bytes)
		}
	})
}
