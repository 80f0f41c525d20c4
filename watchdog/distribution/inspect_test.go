package distribution

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestInspect(t *testing.T) {
	doc, err := Inspect(shopXML(t))
	if err != nil {
		t.Fatal(err)
	}
	if !doc.Enabled || doc.Staging || doc.Comment != "the shop & its images" || !slices.Equal(doc.Aliases, []string{"www.example.com"}) || doc.Odd != nil {
		t.Errorf("head: %+v", doc)
	}
	if want := []Group{
		{ID: "images", Members: []string{"karui", "origin"}, Criteria: []int{403, 500, 502, 503, 504}, Selection: "default"},
		{ID: "static", Members: []string{"assets", "origin"}, Criteria: []int{404}, Selection: "default"},
	}; !reflect.DeepEqual(doc.Groups, want) {
		t.Errorf("groups: %+v", doc.Groups)
	}
	karui, ok := doc.Origin("karui")
	if want := (Origin{
		ID: "karui", Domain: "karui.example.com", ConnectionAttempts: 1, ConnectionTimeout: 2 * time.Second,
		ReadTimeout: 10 * time.Second, KeepaliveTimeout: time.Minute, HeaderNames: []string{"X-Routing"},
	}); !ok || !reflect.DeepEqual(karui, want) {
		t.Errorf("origin: %+v", karui)
	}
	if want := []Behavior{{Path: "/images/*", Target: "images", CachePolicyID: imagesPolicy}}; !reflect.DeepEqual(doc.BehaviorsOf("images"), want) {
		t.Errorf("behaviours of images: %+v", doc.BehaviorsOf("images"))
	}
	if want := []Behavior{{
		Path: "*", Target: "origin", MaxTTL: 365 * 24 * time.Hour, Headers: []string{"Host"}, QueryForwarded: true,
	}}; !reflect.DeepEqual(doc.BehaviorsOf("origin"), want) {
		t.Errorf("behaviours of origin: %+v", doc.BehaviorsOf("origin"))
	}
	if ttl, set := doc.ErrorTTL(503); ttl != 0 || !set {
		t.Errorf("503 is kept %v, set %v", ttl, set)
	}
	if ttl, set := doc.ErrorTTL(404); ttl != 10*time.Second || set {
		t.Errorf("404 is kept %v, set %v", ttl, set)
	}
}

func TestInspectDefaultsAndOddNumbers(t *testing.T) {
	doc, err := Inspect([]byte(`<DistributionConfig xmlns="` + Namespace + `"><Origins><Items><Origin><Id>a</Id>` +
		`<ConnectionAttempts>many</ConnectionAttempts><ConnectionTimeout>-1</ConnectionTimeout></Origin></Items></Origins>` +
		`<OriginGroups><Items><OriginGroup><Id>g</Id><FailoverCriteria><StatusCodes><Items><StatusCode>5xx</StatusCode></Items></StatusCodes>` +
		`</FailoverCriteria></OriginGroup></Items></OriginGroups><DefaultCacheBehavior><TargetOriginId>a</TargetOriginId>` +
		`<MaxTTL>99999999999999999999</MaxTTL></DefaultCacheBehavior><CustomErrorResponses><Items><CustomErrorResponse><ErrorCode>503</ErrorCode>` +
		`</CustomErrorResponse></Items></CustomErrorResponses></DistributionConfig>`))
	if err != nil {
		t.Fatal(err)
	}
	if o := doc.Origins[0]; o.ConnectionAttempts != 3 || o.ConnectionTimeout != 10*time.Second || o.ReadTimeout != 30*time.Second || o.KeepaliveTimeout != 5*time.Second {
		t.Errorf("origin: %+v", o)
	}
	if b := doc.Behaviors[0]; b.DefaultTTL != 24*time.Hour || b.MaxTTL != 365*24*time.Hour {
		t.Errorf("behaviour: %+v", b)
	}
	if ttl, set := doc.ErrorTTL(503); ttl != 10*time.Second || !set {
		t.Errorf("503 is kept %v, set %v", ttl, set)
	}
	if len(doc.Odd) != 4 || !strings.Contains(strings.Join(doc.Odd, "\n"), `origin "a": ConnectionAttempts is "many"`) {
		t.Errorf("odd: %q", doc.Odd)
	}
	if _, err := Inspect([]byte("<x/>")); !errors.Is(err, ErrDocument) {
		t.Errorf("error is %v", err)
	}
}

func TestDifference(t *testing.T) {
	shop := shopXML(t)
	swapped, err := Exchange(shop, "images", "origin", "karui")
	if err != nil {
		t.Fatal(err)
	}
	change := func(old, new string) []byte { return bytes.Replace(shop, []byte(old), []byte(new), 1) }
	for name, tc := range map[string]struct {
		other []byte
		want  string
	}{
		"itself":     {shop, ""},
		"spaces":     {change("<Comment>the shop &amp; its images</Comment>", "\n <Comment>\n<!-- c -->the shop <![CDATA[&]]>\tits images </Comment>"), ""},
		"text":       {change("the shop", "a shop"), `DistributionConfig/Comment[9] is "a shop & its images", was "the shop & its images"`},
		"gone":       {change("<Staging>false</Staging>", ""), "DistributionConfig/Staging[19] is missing"},
		"new":        {change("<Staging>false</Staging>", "<Staging>false</Staging><More/>"), "DistributionConfig/More is new"},
		"other name": {change("<Staging>false</Staging>", "<Stage>false</Stage>"), "{" + Namespace + "}Stage"},
		"attribute":  {change("<Staging>", `<Staging a="1">`), "other attributes"},
		"order":      {swapped, `OriginGroupMember[1]/OriginId is "origin", was "karui"`},
	} {
		got, err := Difference(shop, tc.other)
		if err != nil || !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := Difference(shop, []byte("x")); !errors.Is(err, ErrDocument) {
		t.Errorf("error is %v", err)
	}
}

func TestCheck(t *testing.T) {
	shop := string(shopXML(t))
	for name, tc := range map[string]struct {
		old, new string
		target   func(*Target)
		degrade  string // codes, refusals with a !
		restore  string
	}{
		"good":             {},
		"wrong group":      {target: func(t *Target) { t.GroupID = "pictures" }, degrade: "!no_group", restore: "!no_group"},
		"wrong origin":     {target: func(t *Target) { t.ProxyOrigin = "proxy" }, degrade: "!no_origin", restore: "!no_origin"},
		"both wrong":       {target: func(t *Target) { t.ProxyOrigin, t.DirectOrigin = "a", "b" }, degrade: "!no_origin !no_origin", restore: "!no_origin !no_origin"},
		"other members":    {target: func(t *Target) { t.ProxyOrigin = "assets" }, degrade: "!members", restore: "!members"},
		"quality":          {old: ">default<", new: ">media-quality-based<", degrade: "quality_based", restore: "!quality_based"},
		"no 503":           {old: "<StatusCode>503</StatusCode>", new: "", degrade: "no_failover_503", restore: "!no_failover_503"},
		"unused":           {old: "<TargetOriginId>images", new: "<TargetOriginId>origin", degrade: "unused", restore: "!unused"},
		"not understood":   {old: "<Members><Quantity>2<", new: "<Members><Quantity>3<", degrade: "!document", restore: "!document"},
		"refusal first":    {old: ">default<", new: ">media-quality-based<", target: func(t *Target) { t.ProxyOrigin = "assets" }, degrade: "!members quality_based", restore: "!members !quality_based"},
		"no group element": {old: shop[strings.Index(shop, "<OriginGroups>"):strings.Index(shop, "<DefaultCacheBehavior>")], new: "", degrade: "!no_group", restore: "!no_group"},
	} {
		raw := []byte(shop)
		if tc.old != "" {
			raw = []byte(strings.Replace(shop, tc.old, tc.new, 1))
			if bytes.Equal(raw, []byte(shop)) {
				t.Fatalf("%s: the document is unchanged", name)
			}
		}
		target := shopTarget()
		if tc.target != nil {
			tc.target(&target)
		}
		doc, err := Inspect(raw)
		if err != nil {
			t.Fatal(err)
		}
		for purpose, want := range map[Purpose]string{ForDegrade: tc.degrade, ForRestore: tc.restore, ForRehearsal: tc.restore} {
			var codes []string
			for _, f := range Check(raw, doc, target, purpose) {
				code := f.Code
				if f.Refusal {
					code = "!" + code
				}
				codes = append(codes, code)
				if f.Message == "" || f.Hint == "" || f.String() == "" {
					t.Errorf("%s: finding without words: %+v", name, f)
				}
			}
			if got := strings.Join(codes, " "); got != want {
				t.Errorf("%s for %d: %q, want %q", name, purpose, got, want)
			}
		}
	}
	raw := []byte(strings.Replace(shop, "<StatusCode>403</StatusCode>", "", 1))
	doc, err := Inspect(raw)
	if err != nil {
		t.Fatal(err)
	}
	if f := Check(raw, doc, shopTarget(), ForRehearsal); len(f) != 1 || f[0].Code != FindingFailover403 || f[0].Refusal {
		t.Errorf("without 403: %+v", f)
	}
}

func TestTargetValidate(t *testing.T) {
	if err := shopTarget().Validate(); err != nil {
		t.Errorf("a good target: %v", err)
	}
	bad := Target{DistributionID: "../x", GroupID: "", ProxyOrigin: " a", DirectOrigin: " a", RoleARN: "karui", ExternalID: "x"}
	err := bad.Validate()
	if err == nil {
		t.Fatal("a bad target was taken")
	}
	if n := len(strings.Split(err.Error(), "\n")); n != 7 {
		t.Errorf("%d mistakes reported: %v", n, err)
	}
	if _, err := New(awsConfig(), bad, Options{}); err == nil {
		t.Error("a client for a bad target was made")
	}
}

func TestBatch(t *testing.T) {
	many := make([]string, 7001)
	for i := range many {
		many[i] = "/a"
	}
	stars := make([]string, 31)
	for i := range stars {
		stars[i] = "/b*"
	}
	got, err := batch(append(slices.Clone(many), stars...))
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, b := range got {
		sizes = append(sizes, len(b))
	}
	if !slices.Equal(sizes, []int{3000, 3000, 1001 + 15, 15, 1}) {
		t.Errorf("batches of %v", sizes)
	}
	for _, bad := range [][]string{nil, {"images"}, {"/a*b"}, {"/a b"}} {
		if _, err := batch(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
