package distribution

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func shopXML(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("../../internal/cloudfront/testdata/shop.xml")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// oddXML is a small document with everything around the members that XML allows.
const oddXML = "\ufeff" + `<?xml version='1.0' encoding="utf-8" standalone='yes'?>
<!-- OriginGroupMember -->
<?keep <OriginGroupMember> ?>
<cf:DistributionConfig
   xmlns:cf="http://cloudfront.amazonaws.com/doc/2020-05-31/" xmlns:n='urn:new' xmlns="urn:other" >
  <OriginGroups><Items><OriginGroup><Id>images</Id><Members>not ours</Members></OriginGroup></Items></OriginGroups>
  <cf:Comment><![CDATA[<OriginGroupMember><OriginId>karui</OriginId></OriginGroupMember> & 軽い]]></cf:Comment>
  <cf:OriginGroups n:since="2031"><cf:Quantity>1</cf:Quantity><n:Items/>` + "\r\n\t" + `<cf:Items>
    <cf:OriginGroup><cf:Future>1</cf:Future><cf:Id> <!-- x -->ima<![CDATA[ges]]>
      </cf:Id>
      <cf:Members ><cf:Quantity>2</cf:Quantity><cf:Items><n:Before a="/>"/>
        <cf:OriginGroupMember a='1>2' b="'"><!--a--><n:Weight>7</n:Weight><cf:OriginId
        >karui</cf:OriginId ><cf:Since/></cf:OriginGroupMember
        ><n:Between><cf:OriginGroupMember><cf:OriginId>third</cf:OriginId></cf:OriginGroupMember></n:Between>&#32;<!-- -->
		<cf:OriginGroupMember xmlns:m="urn:m"><m:X><cf:OriginId>y</cf:OriginId></m:X><cf:OriginId>o&amp;r<!-- i -->&#x69;gin
		</cf:OriginId></cf:OriginGroupMember><n:After/>text</cf:Items></cf:Members></cf:OriginGroup>
  </cf:Items></cf:OriginGroups>
</cf:DistributionConfig>
<!-- end --><?pi?>
`

func TestExchangeMovesOnlyTheMembers(t *testing.T) {
	got, err := Exchange([]byte(oddXML), "images", "o&rigin", "karui")
	if err != nil {
		t.Fatal(err)
	}
	first := oddXML[strings.Index(oddXML, "<cf:OriginGroupMember a="):]
	first = first[:strings.Index(first, "<n:Between>")]
	second := oddXML[strings.Index(oddXML, "<cf:OriginGroupMember xmlns:m"):]
	second = second[:strings.Index(second, "<n:After/>")]
	want := strings.Replace(strings.Replace(strings.Replace(oddXML, first, "\x00", 1), second, first, 1), "\x00", second, 1)
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	back, err := Exchange(got, "images", "karui", "o&rigin")
	if err != nil || string(back) != oddXML {
		t.Errorf("exchanging back does not give the input (%v)", err)
	}
	same, err := Exchange(got, "images", "o&rigin", "karui")
	if err != nil || !bytes.Equal(same, got) {
		t.Errorf("a document in the wanted order was changed (%v)", err)
	}
}

func TestExchangeTouchesOneGroup(t *testing.T) {
	shop := shopXML(t)
	got, err := Exchange(shop, "images", "origin", "karui")
	if err != nil {
		t.Fatal(err)
	}
	member := func(id string) string {
		return "<OriginGroupMember><OriginId>" + id + "</OriginId></OriginGroupMember>"
	}
	want := strings.Replace(string(shop), member("karui")+member("origin"), member("origin")+member("karui"), 1)
	if string(got) != want || want == string(shop) {
		t.Error("something else than the members of images changed")
	}
}

func TestExchangeRefuses(t *testing.T) {
	shop := string(shopXML(t))
	member := "<OriginGroupMember><OriginId>karui</OriginId></OriginGroupMember>"
	const end = "</DistributionConfig>"
	replace := func(old, new string) string {
		if !strings.Contains(shop, old) {
			t.Fatalf("%q is not in the document", old)
		}
		return strings.Replace(shop, old, new, 1)
	}
	images := shop[strings.Index(shop, "<OriginGroup><Id>images"):strings.Index(shop, "<OriginGroup><Id>static")]
	for name, tc := range map[string]struct {
		doc   string
		group string
		want  error
	}{
		"empty":               {"", "images", ErrDocument},
		"no xml":              {"OK", "images", ErrDocument},
		"html":                {"<html><body>busy</body></html>", "images", ErrDocument},
		"json":                {`{"DistributionConfig":{}}`, "images", ErrDocument},
		"cut off":             {shop[:len(shop)-20], "images", ErrDocument},
		"text after":          {shop + "x", "images", ErrDocument},
		"text before":         {"x" + shop, "images", ErrDocument},
		"two roots":           {shop + "<a/>", "images", ErrDocument},
		"other root":          {strings.ReplaceAll(shop, "DistributionConfig", "Distribution"), "images", ErrDocument},
		"other namespace":     {replace("2020-05-31", "2010-11-01"), "images", ErrDocument},
		"no namespace":        {replace(` xmlns="`+Namespace+`"`, ""), "images", ErrDocument},
		"document type":       {replace("<DistributionConfig", "<!DOCTYPE DistributionConfig><DistributionConfig"), "images", ErrDocument},
		"own entity":          {replace("<DistributionConfig", `<!DOCTYPE d [<!ENTITY k "karui">]><DistributionConfig`), "images", ErrDocument},
		"unknown entity":      {replace("<OriginId>karui", "<OriginId>&karui;"), "images", ErrDocument},
		"latin-1 declared":    {replace(`encoding="UTF-8"`, `encoding="ISO-8859-1"`), "images", ErrDocument},
		"latin-1":             {replace("the shop", "le caf\xe9"), "images", ErrDocument},
		"utf-16":              {"\xff\xfe<\x00a\x00/\x00>\x00", "images", ErrDocument},
		"control character":   {replace("the shop", "the \x01 shop"), "images", ErrDocument},
		"huge":                {replace("the shop", strings.Repeat("x", maxDocument)), "images", ErrDocument},
		"deep":                {replace(end, strings.Repeat("<a>", 100)+strings.Repeat("</a>", 100)+end), "images", ErrDocument},
		"many elements":       {replace(end, strings.Repeat("<a/>", maxElements+1)+end), "images", ErrDocument},
		"two group lists":     {replace(end, "<OriginGroups/>"+end), "images", ErrDocument},
		"two groups of an id": {replace(images, images+images), "images", ErrDocument},
		"group without id":    {replace("<Id>static</Id>", ""), "images", ErrDocument},
		"group with two ids":  {replace("<Id>static</Id>", "<Id>static</Id><Id>images</Id>"), "images", ErrDocument},
		"two member lists":    {replace("<Members><Quantity>2</Quantity>", "<Members/><Members><Quantity>2</Quantity>"), "images", ErrDocument},
		"two item lists":      {replace("<Items>"+member, "<Items/><Items>"+member), "images", ErrDocument},
		"two origin ids":      {replace("<OriginId>karui</OriginId>", "<OriginId>karui</OriginId><OriginId>karui</OriginId>"), "images", ErrDocument},
		"element in the id":   {replace("<OriginId>karui", "<OriginId><b/>karui"), "images", ErrDocument},
		"other quantity":      {replace("<Quantity>2</Quantity><Items>"+member, "<Quantity>3</Quantity><Items>"+member), "images", ErrDocument},
		"no members":          {replace("<Members><Quantity>2</Quantity><Items>"+member, "<Other><Quantity>2</Quantity><Items>"+member), "images", ErrDocument},
		"one member":          {replace(member, ""), "images", ErrMembers},
		"three members":       {replace(member, member+"<OriginGroupMember><OriginId>assets</OriginId></OriginGroupMember>"), "images", ErrMembers},
		"same member twice":   {replace("<OriginId>origin</OriginId>", "<OriginId>karui</OriginId>"), "images", ErrMembers},
		"other group":         {shop, "static", ErrMembers},
		"no such group":       {shop, "pictures", ErrNoGroup},
		"id by case":          {shop, "Images", ErrNoGroup},
		"no groups at all":    {shop[:strings.Index(shop, "<OriginGroups>")] + shop[strings.Index(shop, "<DefaultCacheBehavior>"):], "images", ErrNoGroup},
	} {
		got, err := Exchange([]byte(tc.doc), tc.group, "origin", "karui")
		if !errors.Is(err, tc.want) || got != nil {
			t.Errorf("%s: error is %v, want %v", name, err, tc.want)
		}
	}
	if _, err := Exchange([]byte(shop), "images", "karui", "karui"); !errors.Is(err, ErrMembers) {
		t.Errorf("one origin in both places: %v", err)
	}
}

// noise is anything that may stand between elements.
var noise = rapid.SampledFrom([]string{
	"", " ", "\n\t", "\r\n", "<!-- <OriginGroupMember/> -->", "<?pi a?>", "<New><Items><OriginGroupMember/></Items></New>",
	`<x:Y xmlns:x="urn:y" a="/Members>">t</x:Y>`, "<![CDATA[]]>", "&#32;", "text",
})

// spelling is one of the ways to write a text.
func spelling(t *rapid.T, s string) string {
	cut := rapid.IntRange(0, len(s)).Draw(t, "cut")
	between := rapid.SampledFrom([]string{"", "<!-- c -->", "<?p?>"}).Draw(t, "between")
	tail := s[cut:]
	if rapid.Bool().Draw(t, "cdata") {
		tail = "<![CDATA[" + tail + "]]>"
	}
	pad := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "pad")
	return pad + s[:cut] + between + tail + pad
}

func TestExchangeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func() string { return noise.Draw(t, "noise") }
		prefix := rapid.SampledFrom([]string{"", "cf:", "ns0:"}).Draw(t, "prefix")
		e := func(name, inner string) string {
			space := rapid.SampledFrom([]string{"", " ", "\n", ` a="b>c"`, ` x:a='"' xmlns:x='urn:x'`}).Draw(t, "space")
			return "<" + prefix + name + space + ">" + inner + "</" + prefix + name + ">"
		}
		member := func(id string) string {
			return e("OriginGroupMember", n()+e("OriginId", spelling(t, id))+n())
		}
		before := n() + member("karui")
		after := n() + member("origin") + n()
		group := e("OriginGroup", n()+e("Id", spelling(t, "images"))+n()+
			e("Members", n()+e("Quantity", "2")+n()+e("Items", before+after)+n())+n())
		xmlns := "xmlns"
		if prefix != "" {
			xmlns += ":" + strings.TrimSuffix(prefix, ":")
		}
		doc := []byte("<" + prefix + "DistributionConfig " + xmlns + `="` + Namespace + `">` + n() +
			e("OriginGroups", n()+e("Items", n()+group+n())) + n() + "</" + prefix + "DistributionConfig>")

		swapped, err := Exchange(doc, "images", "origin", "karui")
		if err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		if bytes.Equal(swapped, doc) || len(swapped) != len(doc) {
			t.Fatalf("%d bytes became %d", len(doc), len(swapped))
		}
		back, err := Exchange(swapped, "images", "karui", "origin")
		if err != nil || !bytes.Equal(back, doc) {
			t.Fatalf("not the input again: %v\n%s\n%s", err, doc, back)
		}
		again, err := Exchange(swapped, "images", "origin", "karui")
		if err != nil || !bytes.Equal(again, swapped) {
			t.Fatalf("not idempotent: %v", err)
		}
		// All other bytes: the same before the first member and after the second,
		// and the same pieces in between.
		m, err := membersOf(doc, "images", "karui", "origin")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(swapped, doc[:m[0].start]) || !bytes.HasSuffix(swapped, doc[m[1].end:]) ||
			!bytes.Contains(swapped, slicesJoin(doc[m[1].start:m[1].end], doc[m[0].end:m[1].start], doc[m[0].start:m[0].end])) {
			t.Fatalf("other bytes changed\n%s\n%s", doc, swapped)
		}
		inspected, err := Inspect(swapped)
		if err != nil || len(inspected.Groups) != 1 || strings.Join(inspected.Groups[0].Members, " ") != "origin karui" {
			t.Fatalf("inspected as %+v, %v", inspected.Groups, err)
		}
	})
}

func slicesJoin(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func FuzzExchange(f *testing.F) {
	f.Add([]byte(oddXML), "images", "karui", "o&rigin")
	f.Add(shopXML(f), "images", "origin", "karui")
	f.Add([]byte(`<a:DistributionConfig xmlns:a="`+Namespace+`"><a:OriginGroups/></a:DistributionConfig>`), "g", "a", "b")
	f.Add([]byte(`<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>`), "g", "a", "b")
	f.Fuzz(func(t *testing.T, doc []byte, group, a, b string) {
		swapped, err := Exchange(doc, group, b, a)
		if err != nil {
			return
		}
		if len(swapped) != len(doc) {
			t.Fatalf("%d bytes became %d", len(doc), len(swapped))
		}
		first, err := Exchange(doc, group, a, b)
		if err != nil {
			t.Fatalf("one way goes and the other does not: %v", err)
		}
		// One of the two was the document itself, and each gives the other.
		if !bytes.Equal(first, doc) && !bytes.Equal(swapped, doc) {
			t.Fatal("the document has neither order")
		}
		back, err := Exchange(swapped, group, a, b)
		if err != nil || !bytes.Equal(back, first) {
			t.Fatalf("exchanging back: %v", err)
		}
		if _, err := Inspect(swapped); err != nil {
			t.Fatalf("exchanged but not inspected: %v", err)
		}
		if d, err := Difference(doc, doc); d != "" || err != nil {
			t.Fatalf("a document differs from itself: %s, %v", d, err)
		}
	})
}
