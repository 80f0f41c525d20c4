package distribution

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"go.uber.org/goleak"

	double "karui/internal/cloudfront"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	shopID       = "E123SHOP"
	imagesPolicy = "b2884449-e4de-46a7-ac36-70bc7f1ddd6d"
	shopARN      = "arn:aws:cloudfront::111122223333:distribution/" + shopID
	shopRole     = "arn:aws:iam::111122223333:role/karui-watchdog"

	// rolePolicy is what the operator's guide asks for, on every distribution of
	// the account: the session policy has to narrow it.
	rolePolicy = `{"Version":"2012-10-17","Statement":[` +
		`{"Effect":"Allow","Action":["cloudfront:GetDistribution","cloudfront:GetDistributionConfig","cloudfront:UpdateDistribution",` +
		`"cloudfront:CreateInvalidation","cloudfront:GetInvalidation"],"Resource":"arn:aws:cloudfront::111122223333:distribution/*"},` +
		`{"Effect":"Allow","Action":"cloudfront:GetCachePolicy","Resource":"arn:aws:cloudfront::111122223333:cache-policy/*"}]}`
)

func shopTarget() Target {
	return Target{
		DistributionID: shopID, GroupID: "images", ProxyOrigin: "karui", DirectOrigin: "origin",
		RoleARN: shopRole, ExternalID: "external-17",
	}
}

func awsConfig() aws.Config {
	return aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", "")}
}

// lab is the double with a shop, a role and a client of it, over a Pipe, in a
// bubble of simulated time.
type lab struct {
	*double.Double
	*Client
	t    *testing.T
	base aws.Config
	shop []byte
}

// inLab runs f. Documents given replace the shop's.
func inLab(t *testing.T, f func(ctx context.Context, l *lab), shop ...[]byte) {
	t.Helper()
	config := shopXML(t)
	if len(shop) > 0 {
		config = shop[0]
	}
	synctest.Test(t, func(t *testing.T) {
		l := &lab{Double: double.New(double.Options{DeployDelay: 4 * time.Minute}), t: t, shop: config}
		l.must(l.PutCachePolicy(double.CachePolicy{
			ID: imagesPolicy, Name: "images", DefaultTTL: time.Hour, MaxTTL: 24 * time.Hour, Headers: []string{"Accept"}, Queries: []string{"v"},
		}))
		l.must(l.PutDistribution(shopID, config))
		l.must(l.PutDistribution("E9OTHER", shopXML(t)))
		user, err := l.AddUser("watchdog", double.AllowAll)
		l.must(err)
		_, err = l.PutRole(double.Role{Name: "karui-watchdog", ExternalID: "external-17", Policy: rolePolicy})
		l.must(err)
		pipe := double.NewPipe()
		server := l.Serve(pipe)
		transport := pipe.Transport()
		l.base = aws.Config{
			Region: "eu-west-1", BaseEndpoint: aws.String(server.URL),
			HTTPClient:  &http.Client{Transport: transport, Timeout: attemptTimeout},
			Credentials: credentials.NewStaticCredentialsProvider(user.AccessKeyID, user.SecretAccessKey, ""),
		}
		l.Client = l.client(shopTarget())
		defer func() {
			l.Client.Close()
			transport.CloseIdleConnections()
			l.must(server.Close(context.Background()))
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		f(ctx, l)
	})
}

func (l *lab) client(t Target) *Client {
	l.t.Helper()
	c, err := New(l.base, t, Options{})
	l.must(err)
	return c
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// newest is the configuration that the double holds.
func (l *lab) newest() []byte {
	l.t.Helper()
	s, ok := l.Distribution(shopID)
	if !ok {
		l.t.Fatal("the distribution is gone")
	}
	return s.Newest
}

// swapped is the shop's document in the degraded order, made without this
// package's code.
func swapped(shop []byte) []byte {
	const karui = "<OriginGroupMember><OriginId>karui</OriginId></OriginGroupMember>"
	const origin = "<OriginGroupMember><OriginId>origin</OriginId></OriginGroupMember>"
	return bytes.Replace(shop, []byte(karui+origin), []byte(origin+karui), 1)
}

// wantKind checks an error's kind and that it has a remedy.
func wantKind(t *testing.T, err error, kind Kind) *Error {
	t.Helper()
	var e *Error
	if KindOf(err) != kind {
		t.Fatalf("error is %v (%s), want kind %s", err, KindOf(err), kind)
	}
	if HintOf(err) == "" && kind != KindCanceled {
		t.Errorf("%v comes without a hint", err)
	}
	e, _ = asError(err)
	return e
}
