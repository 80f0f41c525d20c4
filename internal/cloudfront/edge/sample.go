package edge

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"strings"
	"text/template"
	"time"

	"karui/deploy"
	"karui/internal/cloudfront"
)

// Names in the sample distribution.
const (
	SampleDistribution = "E123SHOP"
	SampleGroup        = "images"
	SampleProxyID      = "karui"
	SampleOriginID     = "origin"
	SampleHost         = "www.example.com"
	SampleExternalID   = "sample-external-id"

	samplePolicy   = "b2884449-e4de-46a7-ac36-70bc7f1ddd6d"
	sampleUncached = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
	sampleProxy    = "karui.example.com"
	sampleOrigin   = "origin.example.com"
)

// SampleOptions say what the sample distribution stands before.
type SampleOptions struct {
	// Proxy and Origin are where karui and the true origin listen, as host:port.
	Proxy, Origin string

	// Header lines go to the proxy as custom origin headers, such as X-Routing
	// and X-Karui-Key.
	Header []cloudfront.Header

	// ProxyTimeout and OriginTimeout are response timeouts, in whole seconds.
	// Default 10 s and 30 s: above karui's own 8 s, and above that one.
	ProxyTimeout, OriginTimeout time.Duration

	// MaxTTL caps how long images are kept. Default 24 h.
	MaxTTL time.Duration

	// ErrorTTL is the error caching minimum TTL for 500, 502, 503 and 504. The
	// right one is 0, which is the default; negative leaves it to CloudFront, which
	// takes 10 s.
	ErrorTTL time.Duration

	// Control are settings of the control plane, Edge those of the data plane.
	// Control and Distribution need not be set in it; its Dial reaches what
	// stands before Proxy and Origin too.
	Control cloudfront.Options
	Edge    Options

	// ControlAddr and EdgeAddr are where the two listen. Default: free ports of
	// the loopback.
	ControlAddr, EdgeAddr string
}

// Sample is a control plane and an edge with one distribution, as the set-up
// guide would have it.
type Sample struct {
	Control    *cloudfront.Double
	ControlURL string // for AWS_ENDPOINT_URL_CLOUDFRONT, _STS and _SESV2
	Edge       *Edge
	URL        string // for viewers

	// Operator may do everything; Watchdog and Purger may assume one role each,
	// with SampleExternalID, and nothing else.
	Operator         cloudfront.Credentials
	Watchdog, Purger cloudfront.Credentials
	WatchdogRole     string // ARN
	PurgerRole       string // ARN

	control *cloudfront.Server
	server  *Server
}

//go:embed sample.xml
var sampleXML string

var sampleTemplate = template.Must(template.New("sample").Funcs(template.FuncMap{"xml": escape}).Parse(sampleXML))

func escape(value any) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(fmt.Sprint(value))) // a buffer takes everything
	return b.String()
}

type sampleData struct {
	Host, Proxy, Origin         string
	ProxyPort, OriginPort       string
	ProxyTimeout, OriginTimeout int
	Header                      []cloudfront.Header
	Patterns                    []string
	Policy, Uncached, Function  string
	ErrorCodes                  []int
	ErrorTTL                    int
	Attempts                    int
}

// SamplePatterns are the paths that go through the origin group.
func SamplePatterns() []string {
	var out []string
	for _, ext := range []string{"jpg", "jpeg", "png", "gif"} {
		out = append(out, "*."+ext, "*."+strings.ToUpper(ext))
	}
	return append(out, "/images/*")
}

// StartSample starts both planes. Close ends them.
func StartSample(o SampleOptions) (*Sample, error) {
	if o.ProxyTimeout <= 0 {
		o.ProxyTimeout = 10 * time.Second
	}
	if o.OriginTimeout <= 0 {
		o.OriginTimeout = 30 * time.Second
	}
	if o.MaxTTL <= 0 {
		o.MaxTTL = 24 * time.Hour
	}
	if o.Control.Now == nil {
		o.Control.Now = o.Edge.Now
	}
	s := &Sample{Control: cloudfront.New(o.Control)}
	document, err := s.prepare(o)
	if err != nil {
		return nil, err
	}
	if err := s.Control.PutDistribution(SampleDistribution, document); err != nil {
		return nil, fmt.Errorf("put the sample distribution: %w", err)
	}
	if err := s.people(); err != nil {
		return nil, err
	}
	o.Edge.Control, o.Edge.Distribution = s.Control, SampleDistribution
	o.Edge.Dial = redirect(o.Edge.Dial, map[string]string{sampleProxy: o.Proxy, sampleOrigin: o.Origin})
	if s.Edge, err = New(o.Edge); err != nil {
		return nil, err
	}
	if o.ControlAddr == "" {
		o.ControlAddr = "127.0.0.1:0"
	}
	if o.EdgeAddr == "" {
		o.EdgeAddr = "127.0.0.1:0"
	}
	if s.control, err = s.Control.Start(o.ControlAddr); err != nil {
		s.Edge.Close()
		return nil, err
	}
	if s.server, err = s.Edge.Start(o.EdgeAddr); err != nil {
		s.Edge.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return nil, errors.Join(err, s.control.Close(ctx))
	}
	s.ControlURL, s.URL = s.control.URL, s.server.URL
	return s, nil
}

// prepare puts what the document refers to, and writes it.
func (s *Sample) prepare(o SampleOptions) ([]byte, error) {
	_, proxyPort, err := net.SplitHostPort(o.Proxy)
	if err != nil {
		return nil, fmt.Errorf("address of the proxy: %w", err)
	}
	_, originPort, err := net.SplitHostPort(o.Origin)
	if err != nil {
		return nil, fmt.Errorf("address of the origin: %w", err)
	}
	function, err := s.Control.PutFunction("normalise-accept", deploy.NormaliseAccept)
	if err != nil {
		return nil, fmt.Errorf("put the function: %w", err)
	}
	for _, p := range []cloudfront.CachePolicy{
		{
			ID: samplePolicy, Name: "karui-images", DefaultTTL: min(time.Hour, o.MaxTTL), MaxTTL: o.MaxTTL,
			Headers: []string{"Accept"}, QueryAll: true,
		},
		{ID: sampleUncached, Name: "uncached"},
	} {
		if err := s.Control.PutCachePolicy(p); err != nil {
			return nil, fmt.Errorf("put the cache policy: %w", err)
		}
	}
	data := sampleData{
		Host: SampleHost, Proxy: sampleProxy, Origin: sampleOrigin, ProxyPort: proxyPort, OriginPort: originPort,
		ProxyTimeout: int(o.ProxyTimeout / time.Second), OriginTimeout: int(o.OriginTimeout / time.Second),
		Header: o.Header, Patterns: SamplePatterns(), Policy: samplePolicy, Uncached: sampleUncached, Function: function,
		ErrorTTL: int(o.ErrorTTL / time.Second), Attempts: 2,
	}
	if o.ErrorTTL >= 0 {
		data.ErrorCodes = []int{500, 502, 503, 504}
	}
	var b bytes.Buffer
	if err := sampleTemplate.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("write the sample distribution: %w", err)
	}
	return b.Bytes(), nil
}

// people makes users and roles with the rights that the guide asks for.
func (s *Sample) people() (err error) {
	account := s.Control.Account()
	distribution := "arn:aws:cloudfront::" + account + ":distribution/" + SampleDistribution
	allow := func(resource string, actions ...string) string {
		return `{"Effect":"Allow","Action":["` + strings.Join(actions, `","`) + `"],"Resource":"` + resource + `"}`
	}
	policy := func(statements ...string) string {
		return `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`
	}
	if s.Operator, err = s.Control.AddUser("operator", cloudfront.AllowAll); err != nil {
		return err
	}
	for _, p := range []struct {
		user, role, policy string
		credentials        *cloudfront.Credentials
		arn                *string
	}{
		{
			"watchdog", "karui-watchdog", policy(
				allow(distribution, "cloudfront:GetDistribution", "cloudfront:GetDistributionConfig", "cloudfront:UpdateDistribution",
					"cloudfront:CreateInvalidation", "cloudfront:GetInvalidation"),
				allow("arn:aws:cloudfront::"+account+":cache-policy/*", "cloudfront:GetCachePolicy")),
			&s.Watchdog, &s.WatchdogRole,
		},
		{
			"purger", "karui-purge", policy(allow(distribution, "cloudfront:CreateInvalidation", "cloudfront:GetInvalidation")),
			&s.Purger, &s.PurgerRole,
		},
	} {
		if *p.arn, err = s.Control.PutRole(cloudfront.Role{Name: p.role, ExternalID: SampleExternalID, Policy: p.policy}); err != nil {
			return fmt.Errorf("put the role %s: %w", p.role, err)
		}
		assume := policy(allow(*p.arn, "sts:AssumeRole"), allow("*", "ses:SendEmail"))
		if *p.credentials, err = s.Control.AddUser(p.user, assume); err != nil {
			return fmt.Errorf("add the user %s: %w", p.user, err)
		}
	}
	return nil
}

// redirect dials the address of a domain instead of looking it up.
func redirect(dial dialFunc, addresses map[string]string) dialFunc {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, _, err := net.SplitHostPort(address); err == nil && addresses[host] != "" {
			address = addresses[host]
		}
		return dial(ctx, network, address)
	}
}

// Order is the ids of the group's members as deployed now.
func (s *Sample) Order() []string {
	d, _ := s.Control.Deployment(SampleDistribution)
	if d.Config == nil {
		return nil
	}
	return append([]string(nil), d.Config.Groups[SampleGroup].Members...)
}

// Close ends both planes: answers under way may finish until ctx ends.
func (s *Sample) Close(ctx context.Context) error {
	err := s.server.Close(ctx)
	s.Edge.Close()
	return errors.Join(err, s.control.Close(ctx))
}
