package demo

import (
	"context"
	"crypto/rand"
	"encoding/xml"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"karui/internal/cloudfront"
	"karui/internal/cloudfront/edge"
)

// Names by which the edge knows the site and its origins. They lead nowhere but to
// this machine, by the edge's own way of connecting.
const (
	edgeHost   = "www.demo.example"
	proxyHost  = "karui.demo.example"
	originHost = "origin.demo.example"

	policyID  = "5b1a0c1e-0000-4000-8000-0000000000de"
	userName  = "karui-watchdog"
	roleName  = "karui-watchdog"
	awsRegion = "us-east-1"
)

// rolePolicy is what the watchdog may do in the site's account.
const rolePolicy = `{"Version":"2012-10-17","Statement":[` +
	`{"Effect":"Allow","Action":["cloudfront:GetDistribution","cloudfront:GetDistributionConfig","cloudfront:UpdateDistribution",` +
	`"cloudfront:CreateInvalidation","cloudfront:GetInvalidation"],"Resource":"arn:aws:cloudfront::*:distribution/*"},` +
	`{"Effect":"Allow","Action":"cloudfront:GetCachePolicy","Resource":"arn:aws:cloudfront::*:cache-policy/*"}]}`

// acceptFunction reduces what browsers accept to three values, so that the edge
// keeps at most three versions of an image.
const acceptFunction = `function handler(event) {
  var request = event.request;
  var accept = request.headers.accept ? request.headers.accept.value : '';
  var few = 'image/*';
  if (/image\/avif/.test(accept)) few = 'image/avif,image/webp';
  else if (/image\/webp/.test(accept)) few = 'image/webp';
  request.headers.accept = { value: few };
  return request;
}`

// edgeSide is AWS as far as the system needs one: the control plane and the edge.
type edgeSide struct {
	secret     string   // that the edge sends to karui
	extensions []string // of the paths that lead to the origin group

	url      string // of the edge
	host     string // of the site at the edge
	api      string // of the control plane
	role     string
	external string
	keys     cloudfront.Credentials

	double *cloudfront.Double
	plane  *edge.Edge
	server *service
	apis   *cloudfront.Server
}

// open starts both planes for the demonstration's line and origin.
func (e *edgeSide) open(d *demo) (err error) {
	e.host = edgeHost
	e.double = cloudfront.New(cloudfront.Options{DeployDelay: deployDelay})
	if err := e.setUp(); err != nil {
		return err
	}
	e.plane, err = edge.New(edge.Options{
		Control: e.double, Distribution: distributionID, Memory: 64 << 20, Dial: dialer(map[string]string{
			proxyHost: d.line.address, originHost: strings.TrimPrefix(d.origin.url, "http://"),
		}),
		Observer: func(v edge.Event) { d.numbers.add(visitOf(v)) },
	})
	if err != nil {
		return err
	}
	if e.apis, err = e.double.Start("127.0.0.1:0"); err != nil {
		e.plane.Close()
		return err
	}
	e.api = e.apis.URL
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.closeAPI()
		e.plane.Close()
		return err
	}
	e.server = serve(l, savings(e.plane, d.numbers))
	e.url = e.server.URL
	return nil
}

func (e *edgeSide) close() {
	e.server.close()
	e.closeAPI()
	e.plane.Close()
}

func (e *edgeSide) closeAPI() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = e.apis.Close(ctx)
}

// setUp makes the account: the distribution, and the watchdog's user and role.
func (e *edgeSide) setUp() error {
	d := e.double
	if err := d.PutCachePolicy(cloudfront.CachePolicy{
		ID: policyID, Name: "images", DefaultTTL: edgeTTL, MaxTTL: edgeTTL, Headers: []string{"Accept"}, QueryAll: true,
	}); err != nil {
		return err
	}
	function, err := d.PutFunction("few-accepts", acceptFunction)
	if err != nil {
		return err
	}
	if err := d.PutDistribution(distributionID, []byte(distribution(e.secret, function, e.extensions))); err != nil {
		return err
	}
	if e.keys, err = d.AddUser(userName, cloudfront.AllowAll); err != nil {
		return err
	}
	e.external = rand.Text()
	e.role, err = d.PutRole(cloudfront.Role{Name: roleName, ExternalID: e.external, Policy: rolePolicy})
	return err
}

// env is what lets the SDK of a child reach the control plane.
func (e *edgeSide) env() []string {
	return []string{
		"AWS_ENDPOINT_URL_CLOUDFRONT=" + e.api, "AWS_ENDPOINT_URL_STS=" + e.api, "AWS_REGION=" + awsRegion,
		"AWS_ACCESS_KEY_ID=" + e.keys.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + e.keys.SecretAccessKey,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
}

// orders are the order in the distribution and the one in effect at the edge.
func (e *edgeSide) orders() (written, atEdge order) {
	s, ok := e.double.Distribution(distributionID)
	if !ok {
		return orderUnknown, orderUnknown
	}
	return orderOf(s.Newest), orderOf(s.Deployed)
}

// dialer connects to the origins by their names.
func dialer(addresses map[string]string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		where, ok := addresses[host]
		if !ok {
			return nil, fmt.Errorf("no origin has the name %q", host)
		}
		return new(net.Dialer).DialContext(ctx, network, where)
	}
}

// savings counts the bytes that variants saved, which only their header tells.
func savings(next http.Handler, n *numbers) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		n.save(savedOf(w.Header()))
	})
}

// visitOf is one answer of the edge, for the numbers.
func visitOf(v edge.Event) visit {
	kind := strings.TrimPrefix(v.ContentType, "image/")
	out := visit{Way: wayNone, Format: "other", Bytes: v.Bytes, Failover: v.FailedOver != ""}
	for _, f := range formats() {
		if f == kind {
			out.Format = f
		}
	}
	switch {
	case v.Status != http.StatusOK && v.Status != http.StatusNotModified || v.Aborted != "":
	case v.Result == edge.Hit:
		out.Way = wayEdge
	case v.Member == proxyOrigin:
		out.Way = wayKarui
	case v.Member == directOrigin:
		out.Way = wayOrigin
	}
	return out
}

// imageExtensions are those of the paths that lead to the origin group. A pattern
// tells capitals from small letters, so a real site needs both.
func imageExtensions(site bool) []string {
	if site {
		return []string{"jpg", "jpeg", "jpe", "jfif", "png", "gif", "JPG", "JPEG", "PNG", "GIF"}
	}
	return []string{"jpg", "png", "gif"}
}

// distribution is the document: an origin group with karui first, which image paths
// lead to, as docs/cloudfront.md describes it.
func distribution(secret, function string, extensions []string) string {
	text := func(s string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
		return b.String()
	}
	list := func(items ...string) string {
		return fmt.Sprintf("<Quantity>%d</Quantity><Items>%s</Items>", len(items), strings.Join(items, ""))
	}
	wrap := func(name string, values ...string) []string {
		out := make([]string, len(values))
		for i, v := range values {
			out[i] = "<" + name + ">" + v + "</" + name + ">"
		}
		return out
	}
	header := func(name, value string) string {
		return "<OriginCustomHeader><HeaderName>" + name + "</HeaderName><HeaderValue>" + text(value) + "</HeaderValue></OriginCustomHeader>"
	}
	server := func(id, host, headers string, wait time.Duration, connect time.Duration) string {
		return "<Origin><Id>" + id + "</Id><DomainName>" + host + "</DomainName><OriginPath></OriginPath><CustomHeaders>" + headers + "</CustomHeaders>" +
			"<CustomOriginConfig><HTTPPort>80</HTTPPort><HTTPSPort>443</HTTPSPort><OriginProtocolPolicy>http-only</OriginProtocolPolicy>" +
			"<OriginSslProtocols>" + list(wrap("SslProtocol", "TLSv1.2")...) + "</OriginSslProtocols>" +
			fmt.Sprintf("<OriginReadTimeout>%d</OriginReadTimeout><OriginKeepaliveTimeout>60</OriginKeepaliveTimeout></CustomOriginConfig>", int(wait.Seconds())) +
			fmt.Sprintf("<ConnectionAttempts>1</ConnectionAttempts><ConnectionTimeout>%d</ConnectionTimeout></Origin>", int(connect.Seconds()))
	}
	methods := "<AllowedMethods>" + list(wrap("Method", "HEAD", "GET")...) + "</AllowedMethods>"
	methods = strings.Replace(methods, "</AllowedMethods>", "<CachedMethods>"+list(wrap("Method", "HEAD", "GET")...)+"</CachedMethods></AllowedMethods>", 1)
	behaviour := func(target string) string {
		return "<TargetOriginId>" + target + "</TargetOriginId><ViewerProtocolPolicy>allow-all</ViewerProtocolPolicy>" + methods +
			"<SmoothStreaming>false</SmoothStreaming><Compress>false</Compress>" +
			"<FunctionAssociations>" + list("<FunctionAssociation><FunctionARN>"+function+"</FunctionARN><EventType>viewer-request</EventType></FunctionAssociation>") + "</FunctionAssociations>" +
			"<FieldLevelEncryptionId></FieldLevelEncryptionId><CachePolicyId>" + policyID + "</CachePolicyId>"
	}
	var behaviours, errors []string
	for _, ext := range extensions {
		behaviours = append(behaviours, "<CacheBehavior><PathPattern>*."+ext+"</PathPattern>"+behaviour(groupID)+"</CacheBehavior>")
	}
	for _, code := range []string{"500", "502", "503", "504"} {
		errors = append(errors, "<CustomErrorResponse><ErrorCode>"+code+"</ErrorCode><ErrorCachingMinTTL>0</ErrorCachingMinTTL></CustomErrorResponse>")
	}
	return `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<DistributionConfig xmlns="` + cloudfront.Namespace + `">` +
		"<CallerReference>karui-demo</CallerReference><Aliases>" + list(wrap("CNAME", edgeHost)...) + "</Aliases><DefaultRootObject></DefaultRootObject>" +
		"<Origins>" + list(
		server(proxyOrigin, proxyHost, list(header(routingHeader, siteID), header(secretHeader, secret)), responseTimeout, 2*time.Second),
		server(directOrigin, originHost, "<Quantity>0</Quantity>", 10*time.Second, 5*time.Second),
	) + "</Origins>" +
		"<OriginGroups>" + list("<OriginGroup><Id>"+groupID+"</Id><FailoverCriteria><StatusCodes>"+list(wrap("StatusCode", "403", "500", "502", "503", "504")...)+
		"</StatusCodes></FailoverCriteria><Members>"+list(wrap("OriginGroupMember", "<OriginId>"+proxyOrigin+"</OriginId>", "<OriginId>"+directOrigin+"</OriginId>")...)+
		"</Members><SelectionCriteria>default</SelectionCriteria></OriginGroup>") + "</OriginGroups>" +
		"<DefaultCacheBehavior>" + behaviour(directOrigin) + "</DefaultCacheBehavior>" +
		"<CacheBehaviors>" + list(behaviours...) + "</CacheBehaviors>" +
		"<CustomErrorResponses>" + list(errors...) + "</CustomErrorResponses>" +
		"<Comment>karui demo</Comment><PriceClass>PriceClass_All</PriceClass><Enabled>true</Enabled>" +
		"<ViewerCertificate><CloudFrontDefaultCertificate>true</CloudFrontDefaultCertificate></ViewerCertificate>" +
		"<HttpVersion>http2</HttpVersion><IsIPV6Enabled>true</IsIPV6Enabled></DistributionConfig>"
}
