package distribution

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront"

	double "karui/internal/cloudfront"
	"karui/internal/servertest"
)

// counterpart is a CloudFront to run the acceptance tests against.
type counterpart struct {
	base   aws.Config
	target Target

	// strict ones compare If-Match, change the ETag with every update, and keep
	// what the SDK does not know. moto_server does none of it.
	strict bool
}

// TestAgainstTheDouble and TestAgainstMoto are the same test: what holds against
// our own double has to hold against an API that others made.
func TestAgainstTheDouble(t *testing.T) {
	bareEnvironment(t)
	_, user, url := tcpDouble(t, time.Now)
	accept(t, counterpart{base: configFor(url, user), target: shopTarget(), strict: true})
}

func TestAgainstMoto(t *testing.T) {
	bareEnvironment(t)
	base := configFor(servertest.Moto(t, "the CloudFront API"), double.Credentials{AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: "secret"})
	target := shopTarget()
	target.DistributionID = createInMoto(t, base)
	accept(t, counterpart{base: base, target: target})
}

func configFor(url string, c double.Credentials) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &url,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, ""),
	}
}

// createInMoto makes the shop's distribution in the role's account: moto tells
// accounts apart by the session.
func createInMoto(t *testing.T, base aws.Config) string {
	t.Helper()
	_, user, url := tcpDouble(t, time.Now)
	config, err := cloudfront.NewFromConfig(configFor(url, user)).GetDistributionConfig(t.Context(),
		&cloudfront.GetDistributionConfigInput{Id: aws.String(shopID)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(base, shopTarget(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	created, err := c.cloudfront.CreateDistribution(t.Context(), &cloudfront.CreateDistributionInput{DistributionConfig: config.DistributionConfig})
	if err != nil {
		t.Fatalf("create the distribution in moto: %v", err)
	}
	return *created.Distribution.Id
}

func accept(t *testing.T, with counterpart) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := New(with.base, with.target, Options{CallTimeout: 20 * time.Second, DeployTimeout: 20 * time.Second, PollEvery: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	start, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if start.Order != OrderProxy || len(start.Document.Groups) != 2 || len(start.Document.BehaviorsOf("images")) != 1 || len(start.Document.ErrorResponses) != 4 {
		t.Fatalf("read: order %q, %+v", start.Order, start.Document)
	}
	if f := Check(start.Raw, start.Document, with.target, ForRehearsal); f != nil {
		t.Errorf("findings: %+v", f)
	}

	swap := func(want Order, p Purpose, changed bool) Result {
		t.Helper()
		got, err := c.Swap(ctx, want, p)
		if err != nil {
			t.Fatalf("swap to %s: %v", want, err)
		}
		if got.Changed != changed || got.Difference != "" {
			t.Errorf("swap to %s: changed %v, difference %q", want, got.Changed, got.Difference)
		}
		if with.strict && changed && got.ETag == got.ETagWas {
			t.Error("the ETag did not change")
		}
		if s, err := c.Read(ctx); err != nil || s.Order != want {
			t.Errorf("the order is %q, want %q (%v)", s.Order, want, err)
		}
		return got
	}
	swap(OrderDirect, ForDegrade, true)
	if _, err := c.WaitDeployed(ctx); err != nil {
		t.Error(err)
	}
	swap(OrderDirect, ForDegrade, false)
	swap(OrderProxy, ForRestore, true)
	swap(OrderProxy, ForRestore, false)
	end, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := Difference(start.Raw, end.Raw); d != "" || err != nil {
		t.Errorf("after a swap there and back: %s, %v", d, err)
	}
	unchanged, err := c.WriteUnchanged(ctx)
	if err != nil || !unchanged.Changed || unchanged.Difference != "" {
		t.Errorf("unchanged write: %+v, %v", unchanged, err)
	}

	made, err := c.Invalidate(ctx, []string{"/images/*", "/logo.jpg"})
	if err != nil || len(made) != 1 {
		t.Fatalf("invalidate: %v, %v", made, err)
	}
	if err := c.WaitInvalidated(ctx, made[0]); err != nil {
		t.Error(err)
	}
	if who, err := c.Identity(ctx); err != nil || !strings.HasSuffix(who, "assumed-role/karui-watchdog/karui-watchdog") {
		t.Errorf("identity: %s, %v", who, err)
	}
	missing := with.target
	missing.DistributionID = "E404"
	m, err := New(with.base, missing, Options{CallTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, err = m.Swap(ctx, OrderDirect, ForDegrade)
	wantKind(t, err, KindNotFound)
}
