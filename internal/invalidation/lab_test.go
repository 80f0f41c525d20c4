package invalidation

import (
	"context"
	"net/http"
	"os"
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
	shopID  = "E123SHOP"
	shopARN = "arn:aws:cloudfront::111122223333:distribution/" + shopID
	roleARN = "arn:aws:iam::111122223333:role/karui-purge"

	// rolePolicy is what terraform/modules/role gives the role for purges.
	rolePolicy = `{"Version":"2012-10-17","Statement":[{"Sid":"InvalidateOnly","Effect":"Allow",` +
		`"Action":["cloudfront:CreateInvalidation","cloudfront:GetInvalidation"],"Resource":["` + shopARN + `"]}]}`
	// ownPolicy is what karui's own identity needs.
	ownPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:AssumeRole","Resource":"` + roleARN + `"}]}`
)

func shop() Target {
	return Target{Distribution: shopID, RoleARN: roleARN, ExternalID: "external-17"}
}

// lab is the double with a shop and the role of the guide, over a Pipe, in a bubble
// of simulated time.
type lab struct {
	*double.Double
	t       *testing.T
	base    aws.Config
	clients []*Client
}

func inLab(t *testing.T, f func(ctx context.Context, l *lab)) {
	t.Helper()
	document, err := os.ReadFile("../cloudfront/testdata/shop.xml")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		l := &lab{Double: double.New(double.Options{InvalidationDelay: time.Minute}), t: t}
		l.must(l.PutCachePolicy(double.CachePolicy{ID: "b2884449-e4de-46a7-ac36-70bc7f1ddd6d", Name: "images", Headers: []string{"Accept"}}))
		l.must(l.PutDistribution(shopID, document))
		l.must(l.PutDistribution("E9OTHER", document))
		user, err := l.AddUser("karui", ownPolicy)
		l.must(err)
		_, err = l.PutRole(double.Role{Name: "karui-purge", ExternalID: "external-17", Policy: rolePolicy})
		l.must(err)
		pipe := double.NewPipe()
		server := l.Serve(pipe)
		transport := pipe.Transport()
		l.base = aws.Config{
			Region: "ap-northeast-1", BaseEndpoint: aws.String(server.URL),
			HTTPClient:  &http.Client{Transport: transport, Timeout: attemptTimeout},
			Credentials: credentials.NewStaticCredentialsProvider(user.AccessKeyID, user.SecretAccessKey, ""),
		}
		defer func() {
			for _, c := range l.clients {
				c.Close()
			}
			transport.CloseIdleConnections()
			l.must(server.Close(context.Background()))
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		f(ctx, l)
	})
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) client(t Target) *Client {
	c := New(l.base, t)
	l.clients = append(l.clients, c)
	return c
}

// pass lets simulated time go by.
func pass(d time.Duration) { <-time.After(d) }
