package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"karui/internal/api"
	"karui/internal/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "operator-01234567"

// listen starts an admin listener with an API of one route of each kind.
func listen(t *testing.T) *httptest.Server {
	t.Helper()
	h := api.New(api.Options{
		Log:    slog.New(slog.DiscardHandler),
		Tokens: []api.Token{{Name: "ops", Secret: secret, Rights: []api.Right{api.Read}}},
		Routes: []api.Route{
			{Method: http.MethodGet, Pattern: "/things", Right: api.Read, Handle: func(c *api.Call) (any, error) {
				return map[string]string{"query": c.URL.RawQuery}, nil
			}},
			{Method: http.MethodPost, Pattern: "/things", Right: api.Read, MaxBody: 100, Handle: func(c *api.Call) (any, error) {
				var in map[string]string
				return nil, c.Decode(&in)
			}},
			{Method: http.MethodPut, Pattern: "/things", Right: api.Dial, Handle: func(*api.Call) (any, error) { return nil, nil }},
		},
	})
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func TestCalls(t *testing.T) {
	s := listen(t)
	c := New(s.URL, secret)
	defer c.Close()
	var out struct{ Query string }
	if err := c.Get(t.Context(), "/things?a=b", &out); err != nil || out.Query != "a=b" {
		t.Errorf("%+v, %v", out, err)
	}
	if err := c.Do(t.Context(), http.MethodPost, "/things", map[string]string{"a": "b"}, &out); err != nil {
		t.Error(err)
	}
	if err := c.Get(t.Context(), "/things", nil); err != nil {
		t.Error(err)
	}
}

// An error says what was asked where, what is wrong and what to do.
func TestErrors(t *testing.T) {
	good := listen(t)
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + refusing.Addr().String()
	_ = refusing.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page" + api.Prefix + "/things":
			_, _ = w.Write([]byte("<html>"))
		case "/moved" + api.Prefix + "/things":
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	defer other.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	secure.StartTLS()
	defer secure.Close()
	for name, test := range map[string]struct {
		base, token, method string
		want                []string
	}{
		"nobody listens":  {nobody, secret, "GET", []string{nobody, "is karui running", "--admin"}},
		"wrong token":     {good.URL, "wrong-token", "GET", []string{"none of admin.tokens", "compare it"}},
		"no token":        {good.URL, "", "GET", []string{"a token is needed", "--token-file"}},
		"lacks the right": {good.URL, secret, "PUT", []string{`"ops" lacks the right dial`, "admin.tokens"}},
		"not karui":       {other.URL, secret, "GET", []string{"404", "admin.listen"}},
		"a page":          {other.URL + "/page", secret, "GET", []string{"does not answer as karui does"}},
		"a redirect":      {other.URL + "/moved", secret, "GET", []string{"302"}},
		"unknown CA":      {secure.URL, secret, "GET", []string{"certificate"}},
		"plain where TLS": {strings.Replace(good.URL, "http:", "https:", 1), secret, "GET", []string{"speaks plain HTTP"}},
		"no such name":    {"http://karui.invalid:1", secret, "GET", []string{"karui.invalid", "cannot be resolved"}},
	} {
		c := New(test.base, test.token)
		err := c.Do(t.Context(), test.method, "/things", nil, &json.RawMessage{})
		c.Close()
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", name, err, want)
			}
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %q holds the token", name, err)
		}
	}
	c := New(good.URL, secret)
	defer c.Close()
	err = c.Do(t.Context(), http.MethodPut, "/things", nil, nil)
	if e := (*api.Error)(nil); !errors.As(err, &e) || e.Code != api.CodeForbidden || e.Status != http.StatusForbidden {
		t.Errorf("%v is no error of the API", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Get(ended, "/things", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func flags(t *testing.T, args ...string) *Flags {
	t.Helper()
	var f Flags
	cmd := &cobra.Command{}
	f.Register(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return &f
}

func TestFindingTheListener(t *testing.T) {
	tokens := []server.TokenConfig{
		{Name: "staff", Token: "staff-token", Rights: []string{"read", "purge"}, Sites: []string{"shop"}},
		{Name: "ops", Token: "ops-token", Rights: []string{"read", "purge", "dial"}},
		{Name: "second", Token: "second-token", Rights: []string{"dial"}},
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("file-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	two := filepath.Join(t.TempDir(), "two")
	if err := os.WriteFile(two, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args   []string
		listen string
		tokens []server.TokenConfig
		right  api.Right
		sites  []string
		base   string
		token  string
		fails  string
	}{
		"default":             {listen: "127.0.0.1:9090", right: api.Dial, base: "http://127.0.0.1:9090"},
		"every address":       {listen: ":9090", tokens: tokens, right: api.Dial, base: "http://127.0.0.1:9090", token: "ops-token"},
		"every IPv4":          {listen: "0.0.0.0:9090", tokens: tokens, right: api.Dial, base: "http://127.0.0.1:9090", token: "ops-token"},
		"every IPv6":          {listen: "[::]:9090", tokens: tokens, right: api.Dial, base: "http://[::1]:9090", token: "ops-token"},
		"one address":         {listen: "192.0.2.1:9090", tokens: tokens, right: api.Dial, base: "http://192.0.2.1:9090", token: "ops-token"},
		"token of the site":   {listen: ":1", tokens: tokens, right: api.Purge, sites: []string{"shop"}, base: "http://127.0.0.1:1", token: "staff-token"},
		"of another site":     {listen: ":1", tokens: tokens, right: api.Purge, sites: []string{"blog"}, base: "http://127.0.0.1:1", token: "ops-token"},
		"of all sites":        {listen: ":1", tokens: tokens, right: api.Purge, base: "http://127.0.0.1:1", token: "ops-token"},
		"reads what it may":   {listen: ":1", tokens: tokens[:1], right: api.Read, base: "http://127.0.0.1:1", token: "staff-token"},
		"none with the right": {listen: ":1", tokens: tokens[:1], right: api.Dial, fails: "none of admin.tokens has the right dial for all sites"},
		"none for the site":   {listen: ":1", tokens: tokens[:1], right: api.Purge, sites: []string{"blog"}, fails: "for site blog"},
		"a port by chance":    {listen: "127.0.0.1:0", right: api.Read, fails: "--admin"},
		"by flag":             {args: []string{"--admin", "https://karui.example.com/", "--token-file", file}, base: "https://karui.example.com", token: "file-token"},
		"by flag, no token":   {args: []string{"--admin", "http://127.0.0.1:1"}, base: "http://127.0.0.1:1"},
		"token by flag alone": {args: []string{"--token-file", file}, listen: ":1", tokens: tokens, right: api.Dial, base: "http://127.0.0.1:1", token: "file-token"},
		"no address":          {args: []string{"--admin", "127.0.0.1:9090"}, fails: "--admin"},
		"password in it":      {args: []string{"--admin", "http://a:b@127.0.0.1:9090"}, fails: "--admin"},
		"no such file":        {args: []string{"--token-file", file + "x"}, fails: "--token-file"},
		"two lines":           {args: []string{"--token-file", two}, fails: "one line"},
	} {
		t.Run(name, func(t *testing.T) {
			load := func() (server.Config, error) {
				if len(test.args) > 0 && test.args[0] == "--admin" {
					t.Error("the configuration was read")
				}
				return server.Config{Admin: server.AdminConfig{Listen: test.listen, Tokens: test.tokens}}, nil
			}
			c, err := flags(t, test.args...).Client(load, test.right, test.sites...)
			switch {
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Errorf("%v, want %q", err, test.fails)
			case test.fails == "" && err != nil:
				t.Error(err)
			case test.fails == "" && (c.base != test.base || c.token != test.token):
				t.Errorf("%s with %q, want %s with %q", c.base, c.token, test.base, test.token)
			}
		})
	}
	denied := func() (server.Config, error) {
		return server.Config{}, fmt.Errorf("read: %w", &server.DeniedError{Listen: "127.0.0.1:1"})
	}
	c, err := flags(t).Client(denied, api.Read)
	if err != nil || c.base != "http://127.0.0.1:1" || c.token != "" {
		t.Fatalf("with a file that cannot be read: %+v, %v", c, err)
	}
	defer c.Close()
	if err := c.Get(t.Context(), "/dial", nil); err == nil || !strings.Contains(err.Error(), "use sudo, or name its listener with --admin") {
		t.Errorf("%v", err)
	}
	wrong := errors.New("wrong")
	if _, err := flags(t).Client(func() (server.Config, error) { return server.Config{}, wrong }, api.Read); !errors.Is(err, wrong) {
		t.Errorf("%v", err)
	}
}
