package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"karui/internal/cloudfront"
	"karui/internal/cloudfront/edge"
)

// Names in the distribution.
const (
	distributionID = "ECHAOS"
	siteID         = "shop"
	proxyDomain    = "karui.example.com"
	originDomain   = "origin.example.com"
	secret         = "chaos-secret-17"
	externalID     = "external-17"

	// farPrefix begins the paths of a site whose order stands the other way round
	// all the time, as after a degrade that waits for a person to restore it: there,
	// karui answers when the true origin does not.
	farPrefix = "/images/far/"
	nearPath  = "/images/near/"
)

// Lifetimes at the edge, short enough for answers to expire all the time. A kept
// 503 would outlive its cause by edgeMaxTTL.
const (
	edgeDefaultTTL = 2 * time.Second
	edgeMaxTTL     = 20 * time.Second
)

const rolePolicy = `{"Version":"2012-10-17","Statement":[` +
	`{"Effect":"Allow","Action":["cloudfront:GetDistribution","cloudfront:GetDistributionConfig","cloudfront:UpdateDistribution"],` +
	`"Resource":"arn:aws:cloudfront::111122223333:distribution/*"},` +
	`{"Effect":"Allow","Action":"cloudfront:GetCachePolicy","Resource":"arn:aws:cloudfront::111122223333:cache-policy/*"}]}`

// purgePolicy is what docs/purge.md asks for.
const purgePolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["cloudfront:CreateInvalidation","cloudfront:GetInvalidation"],` +
	`"Resource":"arn:aws:cloudfront::111122223333:distribution/*"}]}`

// front is CloudFront on this machine: control plane and edge.
type front struct {
	control *cloudfront.Double
	api     *cloudfront.Server
	edge    *edge.Edge
	server  *edge.Server
	user    cloudfront.Credentials
	// role is the watchdog's, purgeRole karui's for purges.
	role, purgeRole string

	mu sync.Mutex
	// aborts counts the connections that the edge cut, by reason.
	aborts map[string]int
}

// startFront makes a distribution in front of karui and the origin, at these addresses.
func startFront(proxy, direct string) (*front, error) {
	f := &front{control: cloudfront.New(cloudfront.Options{DeployDelay: 300 * time.Millisecond, InvalidationDelay: 300 * time.Millisecond}), aborts: map[string]int{}}
	for _, p := range []cloudfront.CachePolicy{
		{ID: "images", Name: "images", DefaultTTL: edgeDefaultTTL, MaxTTL: edgeMaxTTL, Headers: []string{"Accept"}, QueryAll: true},
		{ID: "personal", Name: "personal", Headers: []string{"Accept"}, QueryAll: true},
	} {
		if err := f.control.PutCachePolicy(p); err != nil {
			return nil, err
		}
	}
	err := f.control.PutDistribution(distributionID, []byte(distribution()))
	if err != nil {
		return nil, err
	}
	if f.user, err = f.control.AddUser("watchdog", cloudfront.AllowAll); err != nil {
		return nil, err
	}
	if f.role, err = f.control.PutRole(cloudfront.Role{Name: "karui-watchdog", ExternalID: externalID, Policy: rolePolicy}); err != nil {
		return nil, err
	}
	if f.purgeRole, err = f.control.PutRole(cloudfront.Role{Name: "karui-purge", ExternalID: externalID, Policy: purgePolicy}); err != nil {
		return nil, err
	}
	addresses := map[string]string{proxyDomain: proxy, originDomain: direct}
	f.edge, err = edge.New(edge.Options{
		Control: f.control, Distribution: distributionID,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			domain, _, _ := strings.Cut(address, ":")
			return new(net.Dialer).DialContext(ctx, network, addresses[domain])
		},
		Observer: func(e edge.Event) {
			if e.Aborted != "" {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.aborts[e.Aborted]++
			}
		},
	})
	if err != nil {
		return nil, err
	}
	if f.server, err = f.edge.Start("127.0.0.1:0"); err != nil {
		f.edge.Close()
		return nil, err
	}
	if f.api, err = f.control.Start("127.0.0.1:0"); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *front) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = f.server.Close(ctx) // whatever still waits is cut
	f.edge.Close()
	if f.api != nil {
		_ = f.api.Close(ctx)
	}
}

// environment is what karui and the watchdog need to reach the double.
func (f *front) environment() []string {
	return []string{
		"AWS_ENDPOINT_URL_CLOUDFRONT=" + f.api.URL, "AWS_ENDPOINT_URL_STS=" + f.api.URL, "AWS_ENDPOINT_URL_SESV2=" + f.api.URL,
		"AWS_ACCESS_KEY_ID=" + f.user.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + f.user.SecretAccessKey,
		"AWS_REGION=eu-west-1", "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
}

// swaps counts the mails that the watchdog sent, by the kind that their subject names.
func (f *front) swaps() map[string]int {
	out := map[string]int{}
	for _, m := range f.control.Messages() {
		subject := m.Subject
		if subject == "" {
			subject = subjectOf(m.Raw)
		}
		words := strings.Fields(subject)
		if len(words) >= 4 && words[2] == "SWAP" {
			out[words[2]+" "+words[3]]++
		} else if len(words) >= 3 {
			out[words[2]]++
		}
	}
	return out
}

// subjectOf reads the Subject of a raw mail.
func subjectOf(raw []byte) string {
	head, _, _ := strings.Cut(string(raw), "\r\n\r\n")
	for line := range strings.SplitSeq(head, "\r\n") {
		if value, ok := strings.CutPrefix(line, "Subject: "); ok {
			return value
		}
	}
	return ""
}

// degraded tells whether the true origin comes first in the group of images, which
// is the first group of the document.
func (f *front) degraded() bool {
	d, _ := f.control.Distribution(distributionID)
	return bytes.Index(d.Newest, []byte("<OriginId>origin<")) < bytes.Index(d.Newest, []byte("<OriginId>karui<"))
}

// updates counts the writes that the double answered, by status.
func (f *front) updates() map[int]int {
	out := map[int]int{}
	for _, call := range f.control.Calls("UpdateDistribution") {
		out[call.Status]++
	}
	return out
}

// list writes a list as CloudFront does, with its length.
func list(name string, items ...string) string {
	inner := ""
	if len(items) > 0 {
		inner = "<Items>" + strings.Join(items, "") + "</Items>"
	}
	return fmt.Sprintf("<%s><Quantity>%d</Quantity>%s</%s>", name, len(items), inner, name)
}

func element(name, text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes everything
	return "<" + name + ">" + b.String() + "</" + name + ">"
}

// distribution is the DistributionConfig that docs/cloudfront.md asks for, with
// shorter times.
func distribution() string {
	header := func(name, value string) string {
		return "<OriginCustomHeader>" + element("HeaderName", name) + element("HeaderValue", value) + "</OriginCustomHeader>"
	}
	origin := func(id, domain string, attempts, connect, read int, headers ...string) string {
		return "<Origin>" + element("Id", id) + element("DomainName", domain) + "<OriginPath></OriginPath>" + list("CustomHeaders", headers...) +
			"<CustomOriginConfig><HTTPPort>80</HTTPPort><HTTPSPort>443</HTTPSPort><OriginProtocolPolicy>http-only</OriginProtocolPolicy>" +
			list("OriginSslProtocols", element("SslProtocol", "TLSv1.2")) +
			fmt.Sprintf("<OriginReadTimeout>%d</OriginReadTimeout><OriginKeepaliveTimeout>60</OriginKeepaliveTimeout></CustomOriginConfig>", read) +
			fmt.Sprintf("<ConnectionAttempts>%d</ConnectionAttempts><ConnectionTimeout>%d</ConnectionTimeout>", attempts, connect) +
			"<OriginShield><Enabled>false</Enabled></OriginShield></Origin>"
	}
	group := func(id string, members ...string) string {
		var statuses, ids []string
		for _, code := range []int{http.StatusForbidden, 500, 502, 503, 504} {
			statuses = append(statuses, element("StatusCode", fmt.Sprint(code)))
		}
		for _, m := range members {
			ids = append(ids, "<OriginGroupMember>"+element("OriginId", m)+"</OriginGroupMember>")
		}
		return "<OriginGroup>" + element("Id", id) + "<FailoverCriteria>" + list("StatusCodes", statuses...) + "</FailoverCriteria>" +
			list("Members", ids...) + "</OriginGroup>"
	}
	methods := "<AllowedMethods><Quantity>3</Quantity><Items><Method>GET</Method><Method>HEAD</Method><Method>OPTIONS</Method></Items>" +
		"<CachedMethods><Quantity>2</Quantity><Items><Method>HEAD</Method><Method>GET</Method></Items></CachedMethods></AllowedMethods>"
	behavior := func(name, pattern, target, policy string) string {
		out := "<" + name + ">"
		if pattern != "" {
			out += element("PathPattern", pattern)
		}
		return out + element("TargetOriginId", target) + "<ViewerProtocolPolicy>allow-all</ViewerProtocolPolicy>" + methods +
			"<SmoothStreaming>false</SmoothStreaming><Compress>false</Compress><FieldLevelEncryptionId></FieldLevelEncryptionId>" +
			element("CachePolicyId", policy) + "</" + name + ">"
	}
	var failures []string
	for _, code := range []int{500, 502, 503, 504} {
		failures = append(failures, fmt.Sprintf("<CustomErrorResponse><ErrorCode>%d</ErrorCode><ErrorCachingMinTTL>0</ErrorCachingMinTTL></CustomErrorResponse>", code))
	}
	return `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<DistributionConfig xmlns="` + cloudfront.Namespace + `">` +
		"<CallerReference>chaos</CallerReference><Aliases><Quantity>0</Quantity></Aliases><DefaultRootObject></DefaultRootObject>" +
		list("Origins",
			origin("karui", proxyDomain, 1, 1, 2, header("X-Karui-Key", secret), header("X-Routing", siteID)),
			origin("origin", originDomain, 3, 2, 10)) +
		list("OriginGroups", group("images", "karui", "origin"), group("far", "origin", "karui")) +
		behavior("DefaultCacheBehavior", "", "origin", "images") +
		list("CacheBehaviors",
			behavior("CacheBehavior", farPrefix+"*", "far", "images"),
			behavior("CacheBehavior", "/account/*", "images", "personal"),
			behavior("CacheBehavior", "/images/*", "images", "images")) +
		list("CustomErrorResponses", failures...) +
		"<Comment>chaos</Comment><Logging><Enabled>false</Enabled><IncludeCookies>false</IncludeCookies><Bucket></Bucket><Prefix></Prefix></Logging>" +
		"<PriceClass>PriceClass_200</PriceClass><Enabled>true</Enabled>" +
		"<ViewerCertificate><CloudFrontDefaultCertificate>true</CloudFrontDefaultCertificate></ViewerCertificate>" +
		"<Restrictions><GeoRestriction><RestrictionType>none</RestrictionType><Quantity>0</Quantity></GeoRestriction></Restrictions>" +
		"<HttpVersion>http2</HttpVersion><IsIPV6Enabled>true</IsIPV6Enabled></DistributionConfig>"
}

// aborted copies the counts of connections that the edge cut.
func (f *front) aborted() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.aborts)
}
