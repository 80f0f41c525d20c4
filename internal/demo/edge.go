package demo

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"karui/internal/cloudfront"
	"karui/internal/cloudfront/edge"
)

// awsRegion is for the SDK, which wants one.
const awsRegion = "us-east-1"

// edgeSide is AWS as far as the system needs one: the control plane and the edge.
type edgeSide struct {
	secret string // that the edge sends to karui
	url    string // of the edge, for viewers

	sample *edge.Sample
	server *service
}

// open starts both planes in front of karui's line and the origin.
func (e *edgeSide) open(proxy, origin string, n *numbers) error {
	sample, err := edge.StartSample(edge.SampleOptions{
		Proxy: proxy, Origin: origin,
		Header: []cloudfront.Header{{Name: routingHeader, Value: siteID}, {Name: keyHeader, Value: e.secret}},
		// Longer than karui waits for the origin, and shorter than it is slow.
		ProxyTimeout: responseTimeout, OriginTimeout: 10 * time.Second,
		MaxTTL:  edgeTTL,
		Control: cloudfront.Options{DeployDelay: deployDelay},
		Edge:    edge.Options{Memory: 64 << 20, Observer: func(v edge.Event) { n.add(visitOf(v)) }},
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		closeSample(sample)
		return err
	}
	e.sample, e.server = sample, serve(l, savings(sample.Edge, n))
	e.url = e.server.URL
	return nil
}

func (e *edgeSide) close() {
	e.server.close()
	closeSample(e.sample)
}

func closeSample(s *edge.Sample) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.Close(ctx) // what is still under way is cut
}

// env is what lets the SDK of a child reach the control plane.
func (e *edgeSide) env() []string {
	api, keys := e.sample.ControlURL, e.sample.Watchdog
	return []string{
		"AWS_ENDPOINT_URL_CLOUDFRONT=" + api, "AWS_ENDPOINT_URL_STS=" + api, "AWS_REGION=" + awsRegion,
		"AWS_ACCESS_KEY_ID=" + keys.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + keys.SecretAccessKey,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
}

// orders are the order in the distribution and the one in effect at the edge.
func (e *edgeSide) orders() (written, atEdge order) {
	s, ok := e.sample.Control.Distribution(edge.SampleDistribution)
	if !ok {
		return orderUnknown, orderUnknown
	}
	return orderOf(s.Newest), orderOf(s.Deployed)
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
	out := visit{Way: wayNone, Format: "other", Bytes: v.Bytes, Failover: v.FailedOver != ""}
	if kind := strings.TrimPrefix(v.ContentType, "image/"); slices.Contains(formats(), kind) {
		out.Format = kind
	}
	if len(v.Tries) > 0 {
		first := v.Tries[0]
		last := v.Tries[len(v.Tries)-1]
		out.Vain = out.Failover && (last.Failure != "" || last.Status >= http.StatusInternalServerError)
		out.Shed = out.Failover && first.Origin == edge.SampleProxyID && first.Status == http.StatusServiceUnavailable
	}
	switch {
	case v.Status != http.StatusOK && v.Status != http.StatusNotModified || v.Aborted != "":
	case v.Result == edge.Hit || v.Stale:
		out.Way = wayEdge
	case v.Member == edge.SampleProxyID:
		out.Way = wayKarui
	case v.Member == edge.SampleOriginID:
		out.Way = wayOrigin
	}
	return out
}
