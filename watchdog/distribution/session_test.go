package distribution

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	double "karui/internal/cloudfront"
)

func TestSessionCanTouchNoOtherDistribution(t *testing.T) {
	policy, err := SessionPolicy(shopTarget())
	if err != nil || len(policy) > maxPolicy {
		t.Fatalf("policy of %d characters, %v", len(policy), err)
	}
	// A target in AWS's longest terms still fits.
	long := shopTarget()
	long.DistributionID = strings.Repeat("E", 32)
	long.RoleARN = strings.Replace(long.RoleARN, "aws", "aws-us-gov", 1)
	if p, err := SessionPolicy(long); err != nil || len(p) > maxPolicy {
		t.Errorf("policy of %d characters, %v", len(p), err)
	}
	inLab(t, func(ctx context.Context, l *lab) {
		// Even a role that may do everything.
		_, err := l.PutRole(double.Role{Name: "karui-watchdog", ExternalID: "external-17", Policy: double.AllowAll})
		l.must(err)
		cf := l.Client.cloudfront
		get := func(id string) error {
			_, err := cf.GetDistributionConfig(ctx, &cloudfront.GetDistributionConfigInput{Id: &id})
			return err
		}
		l.must(get(shopID))
		err = get("E9OTHER")
		if err == nil {
			t.Fatal("the session reads another distribution")
		}
		e := shopTarget().explain(ctx, "cloudfront:GetDistributionConfig", "E9OTHER", err)
		if e.Kind != KindDenied || !strings.Contains(e.Message, "explicit deny in a session policy") || !strings.Contains(e.Hint, "check distribution_id") {
			t.Errorf("reading another distribution: %v", e)
		}
		_, err = cf.GetCachePolicy(ctx, &cloudfront.GetCachePolicyInput{Id: aws.String(imagesPolicy)})
		l.must(err)
		_, err = cf.ListDistributions(ctx, &cloudfront.ListDistributionsInput{})
		if err == nil {
			t.Error("the session lists all distributions")
		}
		who, err := l.Identity(ctx)
		l.must(err)
		if who != "arn:aws:sts::111122223333:assumed-role/karui-watchdog/karui-watchdog" {
			t.Errorf("the session is %s", who)
		}
	})
}

func TestSessionIsRenewed(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		_, err := l.Read(ctx)
		l.must(err)
		<-time.After(54 * time.Minute)
		_, err = l.Read(ctx)
		l.must(err)
		if n := len(l.Calls("AssumeRole")); n != 1 {
			t.Errorf("%d sessions after 54 minutes", n)
		}
		<-time.After(2 * time.Minute)
		_, err = l.Read(ctx)
		l.must(err)
		if n := len(l.Calls("AssumeRole")); n != 2 {
			t.Errorf("%d sessions after 56 minutes", n)
		}
	})
}

func TestWrongExternalID(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		open, err := l.TakesWrongExternalID(ctx)
		l.must(err)
		if open {
			t.Error("the role takes a wrong external id")
		}
		_, err = l.PutRole(double.Role{Name: "karui-watchdog", Policy: rolePolicy})
		l.must(err)
		open, err = l.TakesWrongExternalID(ctx)
		l.must(err)
		if !open {
			t.Error("an open role is taken for a closed one")
		}
		l.Fail("AssumeRole", 1000, 400, "Throttling", "Rate exceeded")
		_, err = l.TakesWrongExternalID(ctx)
		wantKind(t, err, KindThrottled)
	})
}

func TestCloseEndsAPendingAssumeRole(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.SetLatency("AssumeRole", time.Hour)
		c := l.client(shopTarget())
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := c.Read(short)
		wantKind(t, err, KindTimeout)
		start := time.Now()
		c.Close()
		if took := time.Since(start); took != 0 {
			t.Errorf("close took %v", took)
		}
		if _, err := c.assumer.AssumeRole(ctx, &sts.AssumeRoleInput{}); !errors.Is(err, errClosed) {
			t.Errorf("after close: %v", err)
		}
	})
}
