package cloudfront

import (
	"context"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/cloudfront"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	shopID       = "E123SHOP"
	imagesPolicy = "b2884449-e4de-46a7-ac36-70bc7f1ddd6d"
)

// lab is a Double with one distribution and one user who may do everything,
// served over a Pipe inside a bubble of simulated time.
type lab struct {
	*Double
	t    *testing.T
	base aws.Config
	user Credentials
	shop []byte
}

func inLab(t *testing.T, o Options, f func(ctx context.Context, l *lab)) {
	t.Helper()
	shop, err := os.ReadFile("testdata/shop.xml")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		l := &lab{Double: New(o), t: t, shop: shop}
		pipe := NewPipe()
		server := l.Serve(pipe)
		transport := pipe.Transport()
		defer func() {
			transport.CloseIdleConnections()
			if err := server.Close(context.Background()); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		l.must(l.PutCachePolicy(CachePolicy{
			ID: imagesPolicy, Name: "images", DefaultTTL: time.Hour, MaxTTL: 24 * time.Hour,
			Headers: []string{"Accept"}, QueryAll: true,
		}))
		l.must(l.PutDistribution(shopID, shop))
		l.user, err = l.AddUser("ops", AllowAll)
		l.must(err)
		l.base = aws.Config{
			Region: "eu-west-1", BaseEndpoint: aws.String(server.URL),
			HTTPClient: &http.Client{Transport: transport},
			Credentials: credentials.NewStaticCredentialsProvider(
				l.user.AccessKeyID, l.user.SecretAccessKey, ""),
			Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		}
		f(ctx, l)
	})
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) cloudfront(fns ...func(*sdk.Options)) *sdk.Client {
	return sdk.NewFromConfig(l.base, append([]func(*sdk.Options){func(o *sdk.Options) { o.Region = "us-east-1" }}, fns...)...)
}

func (l *lab) sts() *sts.Client { return sts.NewFromConfig(l.base) }

func (l *lab) ses() *sesv2.Client { return sesv2.NewFromConfig(l.base) }

// as is the lab seen with other credentials.
func (l *lab) as(key, secret, token string) *lab {
	other := *l
	other.base.Credentials = credentials.NewStaticCredentialsProvider(key, secret, token)
	return &other
}

// pass lets simulated time go by.
func pass(d time.Duration) { <-time.After(d) }
