package invalidation

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	double "karui/internal/cloudfront"
)

func TestInvalidation(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		c := l.client(shop())
		paths := []string{"/images/*", "/caf%C3%A9*", "/a.jpg?v=(1)&w='2'"}
		made, err := c.Create(ctx, "karui-x-1", paths)
		l.must(err)
		again, err := c.Create(ctx, "karui-x-1", paths)
		l.must(err)
		if made.ID == "" || made.Completed || again.ID != made.ID {
			t.Errorf("%+v, %+v", made, again)
		}
		now, err := c.Get(ctx, made.ID)
		l.must(err)
		pass(time.Minute)
		later, err := c.Get(ctx, made.ID)
		l.must(err)
		if now.Completed || !later.Completed {
			t.Errorf("%+v, and a minute later %+v", now, later)
		}
		if list := l.Invalidations(shopID); len(list) != 1 || !slices.Equal(list[0].Paths, paths) {
			t.Errorf("%+v", list)
		}
	})
}

// What is called is what the role of the guide allows, in one session under one name.
func TestNothingElseIsCalled(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		c := l.client(shop())
		for range 3 {
			made, err := c.Create(ctx, "karui-x-1", []string{"/*"})
			l.must(err)
			_, err = c.Get(ctx, made.ID)
			l.must(err)
		}
		sessions := 0
		for _, call := range l.Calls() {
			switch {
			case call.Action == "AssumeRole":
				sessions++
			case call.Action != "CreateInvalidation" && call.Action != "GetInvalidation":
				t.Errorf("%s was called", call.Action)
			case call.Session != "karui-purge":
				t.Errorf("%s in the session %q", call.Action, call.Session)
			}
		}
		if sessions != 1 {
			t.Errorf("%d sessions", sessions)
		}
		// The session's time ends, and another one takes its place.
		pass(time.Hour)
		_, err := c.Create(ctx, "karui-x-2", []string{"/*"})
		l.must(err)
		if n := len(l.Calls("AssumeRole")); n != 2 {
			t.Errorf("%d sessions after an hour", n)
		}
	})
}

// A role may be let do too much; a session of karui's may not.
func TestTheSessionIsNarrowerThanTheRole(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		_, err := l.PutRole(double.Role{Name: "karui-purge", ExternalID: "external-17", Policy: double.AllowAll})
		l.must(err)
		c := l.client(shop())
		_, err = c.Create(ctx, "karui-x-1", []string{"/*"})
		l.must(err)
		other := c.target
		c.target.Distribution = "E9OTHER"
		_, err = c.Create(ctx, "karui-x-2", []string{"/*"})
		if wantKind(t, err, KindDenied); !strings.Contains(err.Error(), "no session policy allows") {
			t.Error(err)
		}
		c.target = other
	})
}

func TestWithoutARoleOwnCredentialsDoIt(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		c := l.client(Target{Distribution: shopID})
		_, err := c.Create(ctx, "karui-x-1", []string{"/*"})
		e := wantKind(t, err, KindDenied)
		if !strings.Contains(e.Hint, "add cloudfront:CreateInvalidation to the policy of karui's own AWS identity") {
			t.Error(e.Hint)
		}
		if len(l.Calls("AssumeRole")) != 0 {
			t.Error("a role was assumed")
		}
	})
}

func wantKind(t *testing.T, err error, kind Kind) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("error is %v, want kind %s", err, kind)
	}
	if e.Hint == "" && kind != KindCanceled {
		t.Errorf("%v comes without a hint", err)
	}
	if strings.Contains(err.Error(), "external-17") || strings.Contains(e.Hint, "external-17") {
		t.Errorf("%v (%s) tells the external id", err, e.Hint)
	}
	return e
}

func TestErrorsNameTheRemedy(t *testing.T) {
	const create, get = "CreateInvalidation", "GetInvalidation"
	for name, c := range map[string]struct {
		target  func(*Target)
		before  func(*lab)
		kind    Kind
		passing bool
		hint    string
	}{
		"wrong external id": {
			target: func(t *Target) { t.ExternalID = "external-18" }, kind: KindAssume,
			hint: "sts:ExternalId equal to distribution.external_id",
		},
		"no external id": {target: func(t *Target) { t.ExternalID = "" }, kind: KindAssume, hint: "check the trust policy of " + roleARN},
		"unknown role":   {target: func(t *Target) { t.RoleARN += "x" }, kind: KindAssume, hint: "karui's own policy has to allow sts:AssumeRole"},
		"other distribution": {
			target: func(t *Target) { t.Distribution = "E9OTHER" }, kind: KindDenied,
			hint: "add cloudfront:CreateInvalidation to the policy of " + roleARN + " on arn:aws:cloudfront::111122223333:distribution/E9OTHER",
		},
		"no such distribution": {
			target: func(t *Target) { t.Distribution = "E404" }, kind: KindNotFound,
			before: func(l *lab) {
				_, err := l.PutRole(double.Role{Name: "karui-purge", ExternalID: "external-17", Policy: double.AllowAll})
				l.must(err)
			},
			hint: "check distribution.id (E404)",
		},
		"right is missing": {
			before: func(l *lab) { l.Deny(roleARN, "cloudfront:CreateInvalidation") }, kind: KindDenied,
			hint: "add cloudfront:CreateInvalidation to the policy of " + roleARN + " on " + shopARN,
		},
		"throttled": {before: func(l *lab) { l.Throttle(create, 0); l.Fail(create, 10, 400, "Throttling", "Rate exceeded") }, kind: KindThrottled, passing: true, hint: "two seconds"},
		"quota": {
			before: func(l *lab) { l.Fail(create, 1, 400, "TooManyInvalidationsInProgress", "too many") }, kind: KindQuota, passing: true,
			hint: "end by themselves",
		},
		"trouble of AWS": {
			before: func(l *lab) { l.Fail(create, 10, 503, "ServiceUnavailable", "sorry") }, kind: KindService, passing: true,
			hint: "health dashboard",
		},
		"no answer": {
			before: func(l *lab) { l.Drop(create, double.DropBefore, 10) }, kind: KindUnreachable, passing: true,
			hint: "AWS_ENDPOINT_URL_CLOUDFRONT",
		},
		"no answer of STS": {
			before: func(l *lab) { l.Drop("AssumeRole", double.DropBefore, 10) }, kind: KindUnreachable, passing: true,
			hint: "AWS_ENDPOINT_URL_STS",
		},
		"silence":  {before: func(l *lab) { l.SetLatency(create, time.Hour) }, kind: KindUnreachable, passing: true, hint: "network"},
		"rejected": {before: func(l *lab) { l.Fail(create, 1, 400, "InvalidArgument", "paths") }, kind: KindRejected, hint: "console"},
		"bad clock": {
			before: func(l *lab) { l.Fail(create, 1, 403, "SignatureDoesNotMatch", "Signature expired") }, kind: KindCredentials,
			hint: "clock",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(ctx context.Context, l *lab) {
				target := shop()
				if c.target != nil {
					c.target(&target)
				}
				if c.before != nil {
					c.before(l)
				}
				_, err := l.client(target).Create(ctx, "karui-x-1", []string{"/*"})
				e := wantKind(t, err, c.kind)
				if !strings.Contains(e.Hint, c.hint) || e.Passing() != c.passing {
					t.Errorf("%v: hint %q, passing %v", err, e.Hint, e.Passing())
				}
			})
		})
	}
	t.Run("looking", func(t *testing.T) {
		inLab(t, func(ctx context.Context, l *lab) {
			c := l.client(shop())
			made, err := c.Create(ctx, "karui-x-1", []string{"/*"})
			l.must(err)
			_, err = c.Get(ctx, "I404")
			wantKind(t, err, KindNotFound)
			l.Deny(roleARN, "cloudfront:"+get)
			_, err = c.Get(ctx, made.ID)
			if e := wantKind(t, err, KindDenied); !strings.Contains(e.Hint, "add cloudfront:GetInvalidation") {
				t.Error(e.Hint)
			}
		})
	})
}

// A lost answer is asked for again, and makes no second invalidation.
func TestALostAnswer(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.Drop("CreateInvalidation", double.DropAfter, 1)
		l.Drop("CreateInvalidation", double.DropHalfway, 1)
		c := l.client(shop())
		_, err := c.Create(ctx, "karui-x-1", []string{"/*"})
		if e := wantKind(t, err, KindUnreachable); !e.Passing() {
			t.Errorf("%v will not pass", err)
		}
		made, err := c.Create(ctx, "karui-x-1", []string{"/*"})
		l.must(err)
		if list := l.Invalidations(shopID); len(list) != 1 || list[0].ID != made.ID {
			t.Errorf("%+v, told of %s", list, made.ID)
		}
	})
}

func TestGivingUp(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.SetLatency("AssumeRole", time.Hour)
		c := l.client(shop())
		ctx, cancel := context.WithCancel(ctx)
		defer context.AfterFunc(ctx, c.Close)()
		go func() { pass(time.Second); cancel() }()
		_, err := c.Create(ctx, "karui-x-1", []string{"/*"})
		wantKind(t, err, KindCanceled)
		c.Close() // waits until nobody asks for a session any more
		_, err = c.Create(context.WithoutCancel(ctx), "karui-x-1", []string{"/*"})
		if err == nil {
			t.Error("a closed client invalidates")
		}
	})
}

// Without credentials of its own, karui says so.
func TestNoCredentials(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	for _, name := range []string{"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL_CLOUDFRONT"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	for _, target := range []Target{shop(), {Distribution: shopID}} {
		cfg, err := Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := New(cfg, target)
		_, err = c.Create(t.Context(), "karui-x-1", []string{"/*"})
		e := wantKind(t, err, KindCredentials)
		if !strings.Contains(e.Hint, "AWS_ACCESS_KEY_ID") {
			t.Error(e.Hint)
		}
		c.Close()
	}
}

// The endpoints of the environment are asked, as the SDK's users know it.
func TestEndpointsOfTheEnvironment(t *testing.T) {
	d := double.New(double.Options{})
	user, err := d.AddUser("karui", double.AllowAll)
	if err != nil {
		t.Fatal(err)
	}
	server, err := d.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	t.Setenv("AWS_ACCESS_KEY_ID", user.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", user.SecretAccessKey)
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
	t.Setenv("AWS_ENDPOINT_URL_CLOUDFRONT", server.URL)
	cfg, err := Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg.HTTPClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	c := New(cfg, Target{Distribution: shopID})
	defer c.Close()
	_, err = c.Create(t.Context(), "karui-x-1", []string{"/*"})
	wantKind(t, err, KindNotFound) // of the double
}
