package distribution

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	double "karui/internal/cloudfront"
)

// bareEnvironment leaves nothing of this machine's AWS settings.
func bareEnvironment(t *testing.T) {
	t.Helper()
	empty := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_REGION": "",
		"AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_MAX_ATTEMPTS": "1", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": empty, "AWS_SHARED_CREDENTIALS_FILE": empty, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
		"AWS_ENDPOINT_URL_CLOUDFRONT": "", "AWS_ENDPOINT_URL_STS": "",
	} {
		t.Setenv(name, value)
	}
}

// tcpDouble is a double with a shop on a real port.
func tcpDouble(t *testing.T, now func() time.Time) (*double.Double, double.Credentials, string) {
	t.Helper()
	d := double.New(double.Options{Now: now})
	user, err := d.AddUser("watchdog", double.AllowAll)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.PutRole(double.Role{Name: "karui-watchdog", ExternalID: "external-17", Policy: rolePolicy}); err != nil {
		t.Fatal(err)
	}
	if err := d.PutCachePolicy(double.CachePolicy{ID: imagesPolicy, Name: "images"}); err != nil {
		t.Fatal(err)
	}
	if err := d.PutDistribution(shopID, shopXML(t)); err != nil {
		t.Fatal(err)
	}
	server, err := d.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d, user, server.URL
}

func TestEndpointsAndCredentialsFromTheEnvironment(t *testing.T) {
	bareEnvironment(t)
	_, user, url := tcpDouble(t, time.Now)
	t.Setenv("AWS_ENDPOINT_URL_CLOUDFRONT", url)
	t.Setenv("AWS_ENDPOINT_URL_STS", url)
	t.Setenv("AWS_ACCESS_KEY_ID", user.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", user.SecretAccessKey)
	base, err := Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(base, shopTarget(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer closeIdle(base)
	got, err := c.Swap(t.Context(), OrderDirect, ForDegrade)
	if err != nil || !got.Changed {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := c.WaitDeployed(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutCredentials(t *testing.T) {
	bareEnvironment(t)
	d, _, url := tcpDouble(t, time.Now)
	t.Setenv("AWS_ENDPOINT_URL_CLOUDFRONT", url)
	t.Setenv("AWS_ENDPOINT_URL_STS", url)
	base, err := Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(base, shopTarget(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Read(t.Context())
	if e := wantKind(t, err, KindCredentials); !strings.Contains(e.Hint, "AWS_ACCESS_KEY_ID") || strings.Contains(e.Error(), "\n") {
		t.Errorf("%s\n%s", e, e.Hint)
	}
	if n := len(d.Calls()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

func TestNothingListens(t *testing.T) {
	bareEnvironment(t)
	base := awsConfig()
	base.BaseEndpoint = aws.String("http://127.0.0.1:1")
	c, err := New(base, shopTarget(), Options{CallTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Read(t.Context())
	if kind := KindOf(err); kind != KindTimeout && kind != KindUnreachable {
		t.Errorf("%v (%s)", err, kind)
	}
}

// A clock that is off is corrected by the SDK from the answer's Date; the
// watchdog's machine may drift without losing the power to act.
func TestWrongClock(t *testing.T) {
	bareEnvironment(t)
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		_, user, url := tcpDouble(t, func() time.Time { return time.Now().Add(off) })
		base := awsConfig()
		base.BaseEndpoint = &url
		base.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: user.AccessKeyID, SecretAccessKey: user.SecretAccessKey}, nil
		})
		c, err := New(base, shopTarget(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Swap(t.Context(), OrderDirect, ForDegrade); err != nil {
			t.Errorf("off by %v: %v", off, err)
		}
		c.Close()
	}
}

func closeIdle(base aws.Config) {
	if c, ok := base.HTTPClient.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
