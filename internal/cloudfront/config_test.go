package cloudfront

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func shopDouble(t *testing.T) (*Double, []byte) {
	t.Helper()
	shop, err := os.ReadFile("testdata/shop.xml")
	if err != nil {
		t.Fatal(err)
	}
	d := New(Options{})
	if err := d.PutCachePolicy(CachePolicy{ID: imagesPolicy, Name: "images", DefaultTTL: time.Hour, MaxTTL: 24 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	return d, shop
}

func TestConfigHoldsWhatADataPlaneNeeds(t *testing.T) {
	d, shop := shopDouble(t)
	if err := d.PutDistribution(shopID, shop); err != nil {
		t.Fatal(err)
	}
	x, ok := d.DeployedAt("www.example.com")
	if !ok || x.ID != shopID {
		t.Fatalf("%+v", x)
	}
	c := x.Config
	karui, assets := c.Origins["karui"], c.Origins["assets"]
	if karui.Attempts != 1 || karui.ConnectTimeout != 2*time.Second || karui.ResponseTimeout != 10*time.Second || karui.KeepaliveTimeout != time.Minute ||
		karui.Protocol != "https-only" || len(karui.Headers) != 1 || karui.Headers[0] != (Header{"X-Routing", "shop"}) || karui.S3 {
		t.Errorf("%+v", karui)
	}
	if !assets.S3 || assets.Attempts != 3 || assets.ResponseTimeout != 30*time.Second {
		t.Errorf("%+v", assets)
	}
	group := c.Groups["images"]
	if !slices.Equal(group.Members, []string{"karui", "origin"}) || !slices.Equal(group.Statuses, []int{403, 500, 502, 503, 504}) {
		t.Errorf("%+v", group)
	}
	if len(c.Behaviors) != 2 || c.Behaviors[0].Pattern != "/images/*" || c.Behaviors[0].CachePolicyID != imagesPolicy || c.Behaviors[1].Pattern != "*" {
		t.Fatalf("%+v", c.Behaviors)
	}
	if v := c.Behaviors[1].Legacy; v == nil || !v.Query || v.Cookies != "all" || !slices.Equal(v.Headers, []string{"Host"}) || v.MaxTTL != 365*24*time.Hour {
		t.Errorf("%+v", v)
	}
	if c.ErrorTTL(503) != 0 || c.ErrorTTL(404) != 10*time.Second {
		t.Errorf("error TTLs %v, %v", c.ErrorTTL(503), c.ErrorTTL(404))
	}
	if _, ok := d.DeployedAt("www.example.org"); ok {
		t.Error("a host of nobody was found")
	}
	if _, ok := d.Deployment("E404"); ok {
		t.Error("a distribution that does not exist was found")
	}
}

func TestAssociationsHaveToExist(t *testing.T) {
	d, shop := shopDouble(t)
	arn, err := d.PutFunction("normalise", "function handler(event) { return event.request; }")
	if err != nil {
		t.Fatal(err)
	}
	associate := func(arn, event string) []byte {
		one := "<FunctionAssociation><FunctionARN>" + arn + "</FunctionARN><EventType>" + event + "</EventType></FunctionAssociation>"
		return []byte(strings.Replace(string(shop), "<FunctionAssociations><Quantity>0</Quantity></FunctionAssociations>",
			"<FunctionAssociations><Quantity>1</Quantity><Items>"+one+"</Items></FunctionAssociations>", 1))
	}
	if err := d.PutDistribution(shopID, associate(arn, "viewer-request")); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ arn, event, code string }{
		{arn + "2", "viewer-request", "InvalidFunctionAssociation"}, {arn, "origin-request", "InvalidFunctionAssociation"},
	} {
		if err := d.PutDistribution(shopID, associate(c.arn, c.event)); err == nil || !strings.Contains(err.Error(), c.code) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	withPolicy := []byte(strings.Replace(string(shop), "<CachePolicyId>", "<OriginRequestPolicyId>orp</OriginRequestPolicyId><CachePolicyId>", 1))
	if err := d.PutDistribution(shopID, withPolicy); err == nil || !strings.Contains(err.Error(), "NoSuchOriginRequestPolicy") {
		t.Errorf("%v", err)
	}
	if err := d.PutOriginRequestPolicy(OriginRequestPolicy{ID: "orp", Name: "orp"}); err != nil {
		t.Fatal(err)
	}
	if err := d.PutDistribution(shopID, withPolicy); err != nil {
		t.Error(err)
	}
}

func TestFunctionsAndPoliciesThatAreRefused(t *testing.T) {
	d := New(Options{})
	for name, code := range map[string]string{"": "x", "a b": "x", "empty": "", "long": strings.Repeat("x", 10<<10+1)} {
		if _, err := d.PutFunction(name, code); err == nil {
			t.Errorf("function %q of %d bytes was taken", name, len(code))
		}
	}
	for _, p := range []OriginRequestPolicy{{Name: "x"}, {ID: "x"}, {ID: "x", Name: "x", HeaderMode: "all"}, {ID: "x", Name: "x", QueryMode: "allViewer"}} {
		if err := d.PutOriginRequestPolicy(p); err == nil {
			t.Errorf("%+v was taken", p)
		}
	}
}
