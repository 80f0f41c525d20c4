package cloudfront

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// CachePolicy is what a behaviour's cache key and lifetimes are made of.
type CachePolicy struct {
	ID   string
	Name string

	// Lifetimes in whole seconds at the API.
	MinTTL, DefaultTTL, MaxTTL time.Duration

	// Headers in the cache key. Empty means none.
	Headers []string

	// QueryAll puts the whole query into the key; else only the named ones.
	QueryAll bool
	Queries  []string

	// CookieAll puts all cookies into the key; else only the named ones.
	CookieAll bool
	Cookies   []string

	// Encodings puts the viewer's Accept-Encoding into the key, reduced to br
	// and gzip, and sends it on.
	Encodings bool
}

type namesXML struct {
	Quantity int      `xml:"Quantity"`
	Names    []string `xml:"Items>Name,omitempty"`
}

type cachePolicyXML struct {
	XMLName   xml.Name    `xml:"CachePolicy"`
	Namespace string      `xml:"xmlns,attr"`
	ID        string      `xml:"Id"`
	Modified  string      `xml:"LastModifiedTime"`
	Comment   string      `xml:"CachePolicyConfig>Comment"`
	Name      string      `xml:"CachePolicyConfig>Name"`
	Default   int64       `xml:"CachePolicyConfig>DefaultTTL"`
	Max       int64       `xml:"CachePolicyConfig>MaxTTL"`
	Min       int64       `xml:"CachePolicyConfig>MinTTL"`
	Key       cacheKeyXML `xml:"CachePolicyConfig>ParametersInCacheKeyAndForwardedToOrigin"`
}

type cacheKeyXML struct {
	Gzip            bool      `xml:"EnableAcceptEncodingGzip"`
	Brotli          bool      `xml:"EnableAcceptEncodingBrotli"`
	HeaderBehavior  string    `xml:"HeadersConfig>HeaderBehavior"`
	Headers         *namesXML `xml:"HeadersConfig>Headers,omitempty"`
	CookieBehavior  string    `xml:"CookiesConfig>CookieBehavior"`
	Cookies         *namesXML `xml:"CookiesConfig>Cookies,omitempty"`
	QueryBehavior   string    `xml:"QueryStringsConfig>QueryStringBehavior"`
	QueryParameters *namesXML `xml:"QueryStringsConfig>QueryStrings,omitempty"`
}

// PutCachePolicy makes or replaces a cache policy.
func (d *Double) PutCachePolicy(p CachePolicy) error {
	if p.ID == "" || p.Name == "" {
		return errors.New("cache policy needs an id and a name")
	}
	if p.MinTTL < 0 || p.DefaultTTL < p.MinTTL || p.MaxTTL < p.DefaultTTL {
		return fmt.Errorf("cache policy %s: expected 0 <= MinTTL <= DefaultTTL <= MaxTTL, have %v, %v, %v", p.ID, p.MinTTL, p.DefaultTTL, p.MaxTTL)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.policies[p.ID] = p
	return nil
}

// CachePolicy is a policy by id, for a data plane.
func (d *Double) CachePolicy(id string) (CachePolicy, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.policies[id]
	return p, ok
}

func (d *Double) getCachePolicy(c *call) (reply, *failure) {
	p, ok := d.CachePolicy(c.id)
	if !ok {
		return reply{}, failf(http.StatusNotFound, "NoSuchCachePolicy", "The specified cache policy does not exist.")
	}
	key := cacheKeyXML{Gzip: p.Encodings, Brotli: p.Encodings, HeaderBehavior: "none", CookieBehavior: "none", QueryBehavior: "none"}
	if len(p.Headers) > 0 {
		key.HeaderBehavior, key.Headers = "whitelist", &namesXML{Quantity: len(p.Headers), Names: p.Headers}
	}
	switch {
	case p.QueryAll:
		key.QueryBehavior = "all"
	case len(p.Queries) > 0:
		key.QueryBehavior, key.QueryParameters = "whitelist", &namesXML{Quantity: len(p.Queries), Names: p.Queries}
	}
	switch {
	case p.CookieAll:
		key.CookieBehavior = "all"
	case len(p.Cookies) > 0:
		key.CookieBehavior, key.Cookies = "whitelist", &namesXML{Quantity: len(p.Cookies), Names: p.Cookies}
	}
	body := mustXML(cachePolicyXML{
		Namespace: Namespace, ID: p.ID, Modified: xmlTime(d.now()), Name: p.Name,
		Min: seconds(p.MinTTL), Default: seconds(p.DefaultTTL), Max: seconds(p.MaxTTL), Key: key,
	})
	etag := "E" + strings.ToUpper(hexSum(body)[:13])
	return reply{status: http.StatusOK, header: map[string]string{"ETag": etag}, body: body}, nil
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
