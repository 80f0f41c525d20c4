package distribution

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront/types"
)

// Caching is how a behaviour's cache key and lifetimes are made, whether by a
// cache policy or by the older settings in the behaviour itself.
type Caching struct {
	Policy                     string // its name; empty for the older settings
	MinTTL, DefaultTTL, MaxTTL time.Duration
	Headers                    []string // in the key
	QueryAll                   bool     // every query parameter is in the key ...
	QueryExcept                []string // ... but these
	Queries                    []string // else only these
}

// KeyHasHeader tells whether a header is in the cache key.
func (c Caching) KeyHasHeader(name string) bool {
	return slices.ContainsFunc(c.Headers, func(h string) bool { return h == "*" || strings.EqualFold(h, name) })
}

// KeyHasQuery tells whether a query parameter of that name is in the cache key.
func (c Caching) KeyHasQuery(name string) bool {
	if c.QueryAll {
		return !slices.Contains(c.QueryExcept, name)
	}
	return slices.Contains(c.Queries, name)
}

// CachingOf tells how a behaviour caches. For one with a cache policy it needs
// the right to cloudfront:GetCachePolicy, and fails with KindDenied without.
func (c *Client) CachingOf(ctx context.Context, b Behavior) (Caching, error) {
	if b.CachePolicyID == "" {
		out := Caching{MinTTL: b.MinTTL, DefaultTTL: b.DefaultTTL, MaxTTL: b.MaxTTL, Headers: b.Headers}
		if b.QueryForwarded {
			out.QueryAll, out.Queries = len(b.QueryKeys) == 0, b.QueryKeys
		}
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.opt.CallTimeout)
	defer cancel()
	const action = "cloudfront:GetCachePolicy"
	partition, account := c.target.partition()
	on := fmt.Sprintf("arn:%s:cloudfront::%s:cache-policy/%s", partition, account, b.CachePolicyID)
	got, err := c.cloudfront.GetCachePolicy(ctx, &cloudfront.GetCachePolicyInput{Id: &b.CachePolicyID})
	if err != nil {
		return Caching{}, c.explain(ctx, action, on, err)
	}
	if got.CachePolicy == nil || got.CachePolicy.CachePolicyConfig == nil {
		return Caching{}, &Error{
			Kind: KindDocument, Action: action, On: on, Message: "the answer holds no cache policy",
			Hint: "look at the cache policy in the CloudFront console",
		}
	}
	return fromPolicy(got.CachePolicy.CachePolicyConfig), nil
}

func fromPolicy(p *types.CachePolicyConfig) Caching {
	out := Caching{
		Policy:     aws.ToString(p.Name),
		MinTTL:     seconds(p.MinTTL, 0),
		DefaultTTL: seconds(p.DefaultTTL, defaultDefaultTTL),
		MaxTTL:     seconds(p.MaxTTL, defaultMaxTTL),
	}
	key := p.ParametersInCacheKeyAndForwardedToOrigin
	if key == nil {
		return out
	}
	if h := key.HeadersConfig; h != nil && h.Headers != nil && h.HeaderBehavior == types.CachePolicyHeaderBehaviorWhitelist {
		out.Headers = h.Headers.Items
	}
	if q := key.QueryStringsConfig; q != nil {
		var names []string
		if q.QueryStrings != nil {
			names = q.QueryStrings.Items
		}
		switch q.QueryStringBehavior {
		case types.CachePolicyQueryStringBehaviorAll:
			out.QueryAll = true
		case types.CachePolicyQueryStringBehaviorAllExcept:
			out.QueryAll, out.QueryExcept = true, names
		case types.CachePolicyQueryStringBehaviorWhitelist:
			out.Queries = names
		}
	}
	return out
}

func seconds(v *int64, fallback time.Duration) time.Duration {
	if v == nil {
		return fallback
	}
	return time.Duration(min(max(*v, 0), maxSeconds)) * time.Second
}
