package settings_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"karui/internal/config"
	"karui/watchdog/distribution"
	"karui/watchdog/settings"
)

const example = "testdata/watchdog.yaml"

func TestExampleShowsTheDefaults(t *testing.T) {
	r, err := settings.Load(example, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Warnings) > 0 {
		t.Errorf("warnings: %q", r.Warnings)
	}
	want, site := settings.Default(), settings.DefaultSite()
	want.Mail.From, want.Mail.To = "karui@example.com", []string{"ops@example.com"}
	site.ID = "shop"
	site.PingURL, site.OriginURL, site.ViewerURL = "https://karui.example.com/ping.jpg", "https://origin.example.com/favicon.ico", "https://www.example.com/logo.jpg"
	site.DistributionID, site.OriginGroupID, site.ProxyOriginID, site.DirectOriginID = "E123", "images", "karui", "origin"
	site.RoleARN, site.ExternalID = "arn:aws:iam::111122223333:role/karui-watchdog", "..."
	if keys := config.Diff(site, r.Value.Sites[0]); len(keys) > 0 {
		t.Errorf("other than the site's defaults: %q", keys)
	}
	want.Sites = r.Value.Sites
	if keys := config.Diff(want, r.Value); len(keys) > 0 {
		t.Errorf("other than the defaults: %q", keys)
	}
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for key := range keys("", reflect.TypeFor[settings.Config]()) {
		if strings.HasPrefix(key, "sites.ping_headers.") { // an empty list there
			continue
		}
		if !bytes.Contains(text, []byte(key[strings.LastIndexByte(key, '.')+1:]+":")) {
			t.Errorf("the example lacks %s", key)
		}
	}
}

// keys goes over the struct by itself, so that the loader is not asked about itself.
func keys(prefix string, t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for f := range t.Fields() {
		key := f.Tag.Get("yaml")
		if prefix != "" {
			key = prefix + "." + key
		}
		elem := f.Type
		if elem.Kind() == reflect.Slice {
			elem = elem.Elem()
		}
		all[key] = f.Type
		if elem.Kind() == reflect.Struct {
			for k, v := range keys(key, elem) {
				all[k] = v
			}
		}
	}
	return all
}

func TestEveryScalarComesFromTheEnvironment(t *testing.T) {
	for key, typ := range keys("", reflect.TypeFor[settings.Config]()) {
		if strings.HasPrefix(key, "sites") || typ.Kind() == reflect.Struct {
			continue
		}
		environ := []string{config.EnvName(settings.EnvPrefix, key) + "=@"}
		if name, found := map[string]string{"mail.smtp.user": "PASSWORD", "mail.smtp.password": "USER"}[key]; found {
			environ = append(environ, "KARUI_WATCHDOG_MAIL_SMTP_"+name+"=x")
		}
		r, err := settings.Load(example, environ)
		if err == nil && r.Source(key).Kind != config.SourceEnv || err != nil && !strings.Contains(err.Error(), config.EnvName(settings.EnvPrefix, key)) {
			t.Errorf("%s is not reached: %v", key, err)
		}
	}
	r, err := settings.Load(example, []string{"KARUI_WATCHDOG_PING_COUNT=3", "KARUI_WATCHDOG_PING_SPACING=2s"})
	if err != nil || r.Value.Ping.Count != 3 || r.Value.Ping.Spacing != 2*time.Second {
		t.Errorf("%+v, %v", r.Value.Ping, err)
	}
}

func TestSecretsAreMasked(t *testing.T) {
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		`external_id: "..."`:      `external_id: hush-1`,
		`heartbeat_url: ""`:       `heartbeat_url: https://hc.example.com/hush-2`,
		`user: "", password: ""`:  `user: "u", password: "hush-3"`,
		`ping_headers: []`:        `ping_headers: [{name: X-A, value: hush-4}]`,
		`smtp: { host: "", port:`: `smtp: { host: "mail.example.com", port:`,
	} {
		if !bytes.Contains(text, []byte(from)) {
			t.Fatalf("the example lacks %s", from)
		}
		text = bytes.ReplaceAll(text, []byte(from), []byte(to))
	}
	file := filepath.Join(t.TempDir(), "watchdog.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := settings.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hush") {
		t.Errorf("a secret is shown:\n%s", &out)
	}
}

// good is a configuration to make mistakes in.
func good(t *testing.T) settings.Config {
	t.Helper()
	r, err := settings.Load(example, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.Value
}

func TestMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*settings.Config)
		keys   string // of the problems, in order
	}{
		"none":            {func(*settings.Config) {}, ""},
		"no sites":        {func(c *settings.Config) { c.Sites = nil }, "sites"},
		"interval":        {func(c *settings.Config) { c.Interval = time.Millisecond }, "interval interval"},
		"round too long":  {func(c *settings.Config) { c.Interval = 55 * time.Second }, "interval"},
		"ping":            {func(c *settings.Config) { c.Ping = settings.Ping{} }, "ping.count ping.spacing ping.timeout"},
		"listen":          {func(c *settings.Config) { c.Listen = "9091" }, "listen"},
		"state_dir":       {func(c *settings.Config) { c.StateDir = "" }, "state_dir"},
		"times":           {func(c *settings.Config) { c.DeployTimeout, c.ProxyDeadline = 0, 0 }, "deploy_timeout proxy_deadline"},
		"heartbeat":       {func(c *settings.Config) { c.HeartbeatURL = "hc.example.com" }, "heartbeat_url"},
		"controls":        {func(c *settings.Config) { c.ControlURLs = []string{"https://a", "ftp://b", ""} }, "control_urls[1] control_urls[2]"},
		"language":        {func(c *settings.Config) { c.Mail.Language, c.Sites[0].Mail.Language = "de", "fr" }, "mail.language sites[0].mail.language"},
		"addresses":       {func(c *settings.Config) { c.Mail.From, c.Mail.To = "a", []string{"b\r\nTo: c@d.e", "x@y.z"} }, "mail.to[0] mail.from"},
		"no recipient":    {func(c *settings.Config) { c.Mail.To, c.Mail.SES.Region = nil, "eu-west-1" }, "sites[0].mail.to"},
		"no sender":       {func(c *settings.Config) { c.Mail.From, c.Mail.SES.Region = "", "eu-west-1" }, "mail.from"},
		"both ways":       {func(c *settings.Config) { c.Mail.SMTP.Host, c.Mail.SES.Region = "m", "eu-west-1" }, "mail.ses.region"},
		"half a login":    {func(c *settings.Config) { c.Mail.SMTP.User = "u" }, "mail.smtp.password"},
		"other half":      {func(c *settings.Config) { c.Mail.SMTP.Password = "p" }, "mail.smtp.user"},
		"smtp":            {func(c *settings.Config) { c.Mail.SMTP = settings.SMTP{Host: "m:25", TLS: "yes"} }, "mail.smtp.port mail.smtp.tls mail.smtp.host"},
		"ids":             {func(c *settings.Config) { c.Sites[0] = settings.Site{ID: "a b"} }, "sites[0].id sites[0].ping_url sites[0].origin_url sites[0].distribution_id sites[0].origin_group_id sites[0].proxy_origin_id sites[0].direct_origin_id sites[0].role_arn sites[0].degrade sites[0].restore sites[0].restore_after sites[0].after_restore sites[0].max_swaps_per_day"},
		"same origins":    {func(c *settings.Config) { c.Sites[0].DirectOriginID = "karui" }, "sites[0].direct_origin_id"},
		"port":            {func(c *settings.Config) { c.Sites[0].PingURL = "http://karui.example.com:70000/ping.jpg" }, "sites[0].ping_url"},
		"external id":     {func(c *settings.Config) { c.Sites[0].ExternalID = "a b" }, "sites[0].external_id"},
		"through edge":    {func(c *settings.Config) { c.Sites[0].PingURL = "https://WWW.example.com:443/ping.jpg" }, "sites[0].ping_url"},
		"headers":         {func(c *settings.Config) { c.Sites[0].PingHeaders = []settings.Header{{"X A", "a\nb"}} }, "sites[0].ping_headers[0].name sites[0].ping_headers[0].value"},
		"paths":           {func(c *settings.Config) { c.Sites[0].InvalidatePaths = []string{"/a/*", "b", "/*/c", "/d e"} }, "sites[0].invalidate_paths[1] sites[0].invalidate_paths[2] sites[0].invalidate_paths[3]"},
		"no paths":        {func(c *settings.Config) { c.Sites[0].AfterRestore = "invalidate" }, "sites[0].invalidate_paths"},
		"same site twice": {func(c *settings.Config) { c.Sites = append(c.Sites, c.Sites[0]) }, "sites[1].id sites[1].origin_group_id"},
		"never restores":  {func(c *settings.Config) { c.Sites[0].MaxSwapsPerDay = 1 }, "sites[0].max_swaps_per_day"},
	} {
		t.Run(name, func(t *testing.T) {
			c := good(t)
			test.change(&c)
			err := c.Validate("")
			var got []string
			for _, p := range config.Problems(err) {
				got = append(got, p.Key)
			}
			if strings.Join(got, " ") != test.keys {
				t.Errorf("problems with %q, want %q\n%v", strings.Join(got, " "), test.keys, err)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	c := good(t)
	for name, test := range map[string]struct {
		change func(*settings.Config)
		want   string
	}{
		"no mail":       {func(*settings.Config) {}, "nobody is told"},
		"plain smtp":    {func(c *settings.Config) { c.Mail.SMTP.Host, c.Mail.SMTP.TLS = "mail.example.com", "none" }, "unencrypted"},
		"no heartbeat":  {func(*settings.Config) {}, "heartbeat_url is empty"},
		"no viewer_url": {func(c *settings.Config) { c.Sites = slices.Clone(c.Sites); c.Sites[0].ViewerURL = "" }, "sites[0].viewer_url is empty"},
		"idle paths":    {func(c *settings.Config) { c.Sites = slices.Clone(c.Sites); c.Sites[0].InvalidatePaths = []string{"/*"} }, "no effect"},
		"open role":     {func(c *settings.Config) { c.Sites = slices.Clone(c.Sites); c.Sites[0].ExternalID = "" }, "confused deputy"},
	} {
		t.Run(name, func(t *testing.T) {
			c := c
			test.change(&c)
			if got := strings.Join(c.Warnings(), "\n"); !strings.Contains(got, test.want) {
				t.Errorf("%q lacks %q", got, test.want)
			}
		})
	}
	c.Mail.SMTP.Host, c.Mail.SMTP.TLS, c.HeartbeatURL = "127.0.0.1", "none", "https://hc.example.com"
	if got := c.Warnings(); len(got) > 0 {
		t.Errorf("warned about a local mail server: %q", got)
	}
}

// What is good here must be good enough for the client, and the other way round.
func TestTargetsAgreeWithTheClient(t *testing.T) {
	for _, change := range []func(*settings.Site){
		func(*settings.Site) {},
		func(s *settings.Site) { s.DistributionID = "e1" },
		func(s *settings.Site) { s.OriginGroupID = " images" },
		func(s *settings.Site) { s.ProxyOriginID = "" },
		func(s *settings.Site) { s.DirectOriginID = s.ProxyOriginID },
		func(s *settings.Site) { s.RoleARN = "arn:aws:iam::1:role/x" },
		func(s *settings.Site) { s.ExternalID = "x" },
		func(s *settings.Site) { s.ExternalID = "" },
	} {
		c := good(t)
		change(&c.Sites[0])
		s := c.Sites[0]
		client := distribution.Target{
			DistributionID: s.DistributionID, GroupID: s.OriginGroupID, ProxyOrigin: s.ProxyOriginID, DirectOrigin: s.DirectOriginID,
			RoleARN: s.RoleARN, ExternalID: s.ExternalID,
		}.Validate()
		if own := c.Validate(""); (own == nil) != (client == nil) {
			t.Errorf("%v, but the client: %v", own, client)
		}
	}
}

func TestRecipients(t *testing.T) {
	c := good(t)
	to, language := c.Recipients(c.Sites[0])
	if fmt.Sprint(to)+language != "[ops@example.com]en" {
		t.Error(to, language)
	}
	c.Sites[0].Mail = settings.SiteMail{To: []string{"shop@example.com"}, Language: "ja"}
	to, language = c.Recipients(c.Sites[0])
	if fmt.Sprint(to)+language != "[shop@example.com]ja" {
		t.Error(to, language)
	}
}

// The query of an address may hold a key.
func TestQueriesAreMasked(t *testing.T) {
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	with := func(address string) string {
		path := filepath.Join(t.TempDir(), "watchdog.yaml")
		if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte("https://karui.example.com/ping.jpg"), []byte(address)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r, err := settings.Load(with("https://karui.example.com/ping.jpg?key=hush&b=1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Value.Sites[0].PingURL != "https://karui.example.com/ping.jpg?key=hush&b=1" {
		t.Errorf("the value itself is %s", r.Value.Sites[0].PingURL)
	}
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hush") || !strings.Contains(out.String(), "ping_url: https://karui.example.com/ping.jpg?********") {
		t.Errorf("%s", &out)
	}
	r, err = settings.Load(with("https://karui.example.com/ping.jpg?********"), nil)
	if err != nil || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "sites[0].ping_url has the query that config print shows") {
		t.Errorf("%v %q", err, r.Warnings)
	}
	_, err = settings.Load(with("ftp://karui.example.com/ping.jpg?key=hush"), nil)
	if err == nil || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), `ping_url is "ftp://karui.example.com/ping.jpg?********"`) {
		t.Errorf("%v", err)
	}
}

// A verdict on a default that stands for what was misspelt helps nobody.
func TestMisspeltKeysCauseNoOtherProblem(t *testing.T) {
	for _, c := range []struct {
		ping, interval string
		problems       int
	}{
		{"{ cuont: 3 }", "30s", 1},
		{"{ count: many }", "30s", 1},
		{"{ count: 3, spacing: 1, timeout: 1s }", "30s", 1},
		{"{ cuont: 3 }", "10ms", 2}, // this one is wrong whatever ping is
		{"{ count: 3, spacing: 20s, timeout: 1s }", "30s", 1},
	} {
		text, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(string(text)) {
			switch {
			case strings.HasPrefix(line, "interval:"):
				line = "interval: " + c.interval + "\n"
			case strings.HasPrefix(line, "ping:"):
				line = "ping: " + c.ping + "\n"
			}
			lines = append(lines, line)
		}
		path := filepath.Join(t.TempDir(), "watchdog.yaml")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := settings.Load(path, nil); len(config.Problems(err)) != c.problems {
			t.Errorf("ping: %s, interval: %s: %v", c.ping, c.interval, err)
		}
	}
}
