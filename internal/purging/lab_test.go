package purging

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"go.uber.org/goleak"

	double "karui/internal/cloudfront"
	"karui/internal/invalidation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	shopID  = "E123SHOP"
	roleARN = "arn:aws:iam::111122223333:role/karui-purge"
	policy  = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["cloudfront:CreateInvalidation","cloudfront:GetInvalidation"],` +
		`"Resource":"arn:aws:cloudfront::111122223333:distribution/*"}]}`
)

// proxy notes what it was asked to purge.
type proxy struct {
	mu     sync.Mutex
	asked  [][]string
	remark string
	before func() error // nil does nothing
}

func (p *proxy) Purge(_ context.Context, site string, prefixes []string) (string, error) {
	if p.before != nil {
		if err := p.before(); err != nil {
			return "", err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, append([]string{site}, prefixes...))
	return p.remark, nil
}

// lab is a Service before the double of CloudFront, in a bubble of simulated time.
// The sites shop and twin share a distribution, blog has one of its own, and plain
// has none.
type lab struct {
	*Service
	*double.Double
	t     *testing.T
	base  aws.Config
	proxy *proxy
	dir   string

	mu    sync.Mutex
	sites []Site
}

func inLab(t *testing.T, f func(l *lab)) {
	t.Helper()
	document, err := os.ReadFile("../cloudfront/testdata/shop.xml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		target := func(id string) invalidation.Target {
			return invalidation.Target{Distribution: id, RoleARN: roleARN, ExternalID: "external-17"}
		}
		l := &lab{
			Double: double.New(double.Options{InvalidationDelay: time.Minute}), t: t, proxy: &proxy{}, dir: filepath.Join(dir, "state"),
			sites: []Site{
				{ID: "shop", Target: target(shopID), Queries: true},
				{ID: "twin", Target: target(shopID)},
				{ID: "blog", Target: target("E9BLOG"), Queries: true},
				{ID: "plain"},
			},
		}
		l.must(l.PutCachePolicy(double.CachePolicy{ID: "b2884449-e4de-46a7-ac36-70bc7f1ddd6d", Name: "images", Headers: []string{"Accept"}}))
		l.must(l.PutDistribution(shopID, document))
		l.must(l.PutDistribution("E9BLOG", document))
		user, err := l.AddUser("karui", double.AllowAll)
		l.must(err)
		_, err = l.PutRole(double.Role{Name: "karui-purge", ExternalID: "external-17", Policy: policy})
		l.must(err)
		pipe := double.NewPipe()
		server := l.Serve(pipe)
		transport := pipe.Transport()
		l.base = aws.Config{
			BaseEndpoint: aws.String(server.URL), HTTPClient: &http.Client{Transport: transport, Timeout: 15 * time.Second},
			Credentials: credentials.NewStaticCredentialsProvider(user.AccessKeyID, user.SecretAccessKey, ""),
		}
		l.open()
		defer func() {
			l.Service.Close()
			transport.CloseIdleConnections()
			l.must(server.Close(context.Background()))
		}()
		f(l)
	})
}

// open starts the service, as a restart does after Close.
func (l *lab) open() {
	l.Service = New(Options{
		Proxy: l.proxy, Dir: l.dir, Log: slog.New(slog.DiscardHandler),
		Sites: func() []Site {
			l.mu.Lock()
			defer l.mu.Unlock()
			return slices.Clone(l.sites)
		},
		Connect: func(_ context.Context, t invalidation.Target) (Distribution, error) {
			return invalidation.New(l.base, t), nil
		},
	})
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// purge purges as one token does, and wants it taken.
func (l *lab) purge(site string, prefixes ...string) Purge {
	l.t.Helper()
	p, err := l.Purge(l.t.Context(), Request{Site: site, Prefixes: prefixes}, "staff")
	l.must(err)
	return p
}

// find gives a purge as it is now.
func (l *lab) find(id string) Purge {
	l.t.Helper()
	p, ok := l.Find(id)
	if !ok {
		l.t.Fatalf("purge %s is forgotten", id)
	}
	return p
}

// ended waits until a purge has ended, for a simulated hour at most.
func (l *lab) ended(id string) Purge {
	l.t.Helper()
	for range 3600 {
		if p := l.find(id); p.State != Running {
			return p
		}
		pass(time.Second)
	}
	l.t.Fatalf("purge %s has not ended within an hour: %+v", id, l.find(id))
	return Purge{}
}

// wantDone waits until a purge is done.
func (l *lab) wantDone(id string) Purge {
	l.t.Helper()
	p := l.ended(id)
	if p.State != Done || p.Edge.State != Done || p.Edge.Failure != nil || p.Edge.Waits != "" || p.Edge.Completed != p.Edge.Paths || p.Edge.Ended == nil {
		l.t.Errorf("purge %s: %s, edge %+v (%+v)", id, p.State, p.Edge, p.Edge.Failure)
	}
	return p
}

// wantFailed waits until a purge has failed.
func (l *lab) wantFailed(id, kind string, words ...string) Purge {
	l.t.Helper()
	p := l.ended(id)
	if p.State != Failed || p.Edge.State != Failed || p.Edge.Failure == nil || p.Edge.Failure.Kind != kind || p.Edge.Failure.Remedy == "" {
		l.t.Fatalf("purge %s: %s, edge %+v (%+v), want failed by %s", id, p.State, p.Edge, p.Edge.Failure, kind)
	}
	text := p.Edge.Failure.Message + " | " + p.Edge.Failure.Remedy
	for _, word := range words {
		if !strings.Contains(text, word) {
			l.t.Errorf("%q lacks %q", text, word)
		}
	}
	return p
}

// paths lists what a distribution was told to forget, in order.
func (l *lab) paths(id string) []string {
	var all []string
	for _, v := range l.Invalidations(id) {
		all = append(all, v.Paths...)
	}
	return all
}

// refused lists the calls that came to nothing, by code.
func (l *lab) refused() map[string]int {
	codes := map[string]int{}
	for _, c := range l.Calls() {
		if c.Code != "" {
			codes[c.Code]++
		}
	}
	return codes
}

// pass lets simulated time go by.
func pass(d time.Duration) { <-time.After(d) }

var errDisk = errors.New("the disk is full")
