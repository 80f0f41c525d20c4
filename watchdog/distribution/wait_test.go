package distribution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	double "karui/internal/cloudfront"
)

func TestWaitDeployedGivesUp(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.SetDeployDelay(time.Hour)
		_, err := l.WriteUnchanged(ctx)
		l.must(err)
		start := time.Now()
		_, err = l.WaitDeployed(ctx)
		if e := wantKind(t, err, KindTimeout); !strings.Contains(e.Message, "InProgress") {
			t.Error(e)
		}
		if took := time.Since(start); took != 15*time.Minute {
			t.Errorf("gave up after %v", took)
		}
		l.Deny(shopRole, "cloudfront:GetDistribution")
		_, err = l.WaitDeployed(ctx)
		wantKind(t, err, KindDenied)

		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		l.Allow(shopRole, "cloudfront:GetDistribution")
		_, err = l.WaitDeployed(short)
		wantKind(t, err, KindTimeout)
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_, err = l.WaitDeployed(gone)
		wantKind(t, err, KindCanceled)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v is no context.Canceled", err)
		}
		_, err = l.Swap(gone, OrderDirect, ForDegrade)
		wantKind(t, err, KindCanceled)
	})
	inLab(t, func(ctx context.Context, l *lab) {
		_, err := l.WriteUnchanged(ctx)
		l.must(err)
		l.SetLatency("GetDistribution", 20*time.Second)
		l.Fail("GetDistribution", maxAttempts+1, 503, "ServiceUnavailable", "later")
		d, err := l.WaitDeployed(ctx)
		l.must(err) // trouble on the way does not end the wait
		if d.Took < 4*time.Minute {
			t.Errorf("took %v", d.Took)
		}
	})
}

func TestInvalidateAndCaching(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.SetInvalidationDelay(time.Minute)
		paths := make([]string, 20)
		for i := range paths {
			paths[i] = fmt.Sprintf("/%d/*", i)
		}
		start := time.Now()
		made, err := l.Invalidate(ctx, paths)
		l.must(err)
		if took := time.Since(start); len(made) != 2 || took != time.Minute {
			t.Errorf("%d invalidations in %v", len(made), took)
		}
		l.must(l.WaitInvalidated(ctx, made[1]))
		if list := l.Invalidations(shopID); len(list) != 2 || len(list[0].Paths) != 15 || len(list[1].Paths) != 5 {
			t.Errorf("made: %+v", list)
		}
		l.Drop("CreateInvalidation", double.DropAfter, 2)
		_, err = l.Invalidate(ctx, []string{"/x"})
		l.must(err)
		if n := len(l.Invalidations(shopID)); n != 3 {
			t.Errorf("a lost answer made %d invalidations", n-2)
		}

		s, err := l.Read(ctx)
		l.must(err)
		caching, err := l.CachingOf(ctx, s.Document.BehaviorsOf("images")[0])
		l.must(err)
		if caching.Policy != "images" || !caching.KeyHasHeader("accept") || caching.KeyHasHeader("Host") || !caching.KeyHasQuery("v") ||
			caching.KeyHasQuery("w") || caching.MaxTTL != 24*time.Hour || caching.DefaultTTL != time.Hour {
			t.Errorf("caching: %+v", caching)
		}
		caching, err = l.CachingOf(ctx, s.Document.BehaviorsOf("origin")[0])
		l.must(err)
		if caching.Policy != "" || !caching.KeyHasQuery("anything") || !caching.KeyHasHeader("host") {
			t.Errorf("older settings: %+v", caching)
		}
		l.Deny(shopRole, "cloudfront:GetCachePolicy")
		_, err = l.CachingOf(ctx, s.Document.BehaviorsOf("images")[0])
		if e := wantKind(t, err, KindDenied); !strings.HasSuffix(e.Hint, "cache-policy/"+imagesPolicy) {
			t.Error(e.Hint)
		}
	})
}
