package invalidation

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront/types"

	"karui/internal/servertest"
)

// TestAgainstMoto asks an API that others made.
func TestAgainstMoto(t *testing.T) {
	url := servertest.Moto(t, "invalidations")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	base := aws.Config{
		Region: "us-east-1", BaseEndpoint: &url, HTTPClient: &http.Client{Transport: transport, Timeout: attemptTimeout},
		Credentials: credentials.NewStaticCredentialsProvider("AKIAIOSFODNN7EXAMPLE", "secret", ""),
	}
	// It tells accounts apart by the session, so the role makes the distribution.
	maker := New(base, shop())
	defer maker.Close()
	made, err := maker.cloudfront.CreateDistribution(ctx, &cloudfront.CreateDistributionInput{DistributionConfig: &types.DistributionConfig{
		CallerReference: aws.String("karui"), Comment: aws.String(""), Enabled: aws.Bool(true),
		DefaultCacheBehavior: &types.DefaultCacheBehavior{TargetOriginId: aws.String("origin"), ViewerProtocolPolicy: types.ViewerProtocolPolicyAllowAll},
		Origins: &types.Origins{Quantity: aws.Int32(1), Items: []types.Origin{{
			Id: aws.String("origin"), DomainName: aws.String("origin.example.com"),
			CustomOriginConfig: &types.CustomOriginConfig{HTTPPort: aws.Int32(80), HTTPSPort: aws.Int32(443), OriginProtocolPolicy: types.OriginProtocolPolicyHttpOnly},
		}}},
	}})
	if err != nil {
		t.Skipf("moto makes no distribution: %v", err)
	}
	target := shop()
	target.Distribution = *made.Distribution.Id
	c := New(base, target)
	defer c.Close()
	v, err := c.Create(ctx, "karui-x-1", []string{"/images/*", "/caf%C3%A9*", "/a.jpg?v=1"})
	if err != nil || v.ID == "" {
		t.Fatalf("%+v, %v", v, err)
	}
	for !v.Completed {
		if v, err = c.Get(ctx, v.ID); err != nil {
			t.Fatal(err)
		}
	}
	target.Distribution = "E404"
	other := New(base, target)
	defer other.Close()
	_, err = other.Create(ctx, "karui-x-2", []string{"/*"})
	wantKind(t, err, KindNotFound)
}
