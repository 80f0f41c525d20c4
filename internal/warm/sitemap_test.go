package warm

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

const sampleSitemap = `<?xml version="1.0" encoding="UTF-8"?>
<!-- made by hand -->
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"
  xmlns:video="http://www.google.com/schemas/sitemap-video/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml">
 <url>
  <loc> https://www.example.com/one.html </loc><lastmod>2026-01-01</lastmod>
  <xhtml:link rel="alternate" hreflang="de" href="https://www.example.com/de/"/>
  <image:image><image:loc>https://www.example.com/a.jpg?x=1&amp;y=2</image:loc><image:caption>loc</image:caption></image:image>
  <image:image><image:loc><![CDATA[https://www.example.com/b.jpg]]></image:loc></image:image>
  <video:video><video:thumbnail_loc>https://www.example.com/v.jpg</video:thumbnail_loc><video:loc>https://x/</video:loc></video:video>
 </url>
 <url><loc>https://www.example.com/two.html</loc></url>
 <url></url>
</urlset>`

func TestParseSitemap(t *testing.T) {
	s, err := parseSitemap([]byte(sampleSitemap))
	want := []entry{
		{"https://www.example.com/one.html", []string{"https://www.example.com/a.jpg?x=1&y=2", "https://www.example.com/b.jpg"}},
		{"https://www.example.com/two.html", nil},
	}
	if err != nil || fmt.Sprint(s.entries) != fmt.Sprint(want) || len(s.others) > 0 {
		t.Errorf("%v %+v", err, s)
	}
	// Without name spaces declared, and as others write it.
	s, err = parseSitemap([]byte(`<urlset><url><loc>/p</loc><image:image><image:loc>/a.jpg</image:loc></image:image></url></urlset>`))
	if err != nil || len(s.entries) != 1 || !slices.Equal(s.entries[0].images, []string{"/a.jpg"}) {
		t.Errorf("%v %+v", err, s)
	}
	s, err = parseSitemap([]byte("\xef\xbb\xbf\n<sitemapindex><sitemap><loc>https://www.example.com/1.xml.gz</loc></sitemap><sitemap><loc>/2.xml</loc></sitemap></sitemapindex>"))
	if err != nil || !slices.Equal(s.others, []string{"https://www.example.com/1.xml.gz", "/2.xml"}) {
		t.Errorf("%v %+v", err, s)
	}
	s, err = parseSitemap([]byte("https://www.example.com/1\r\nhttps://www.example.com/2\r\n"))
	if err != nil || len(s.entries) != 2 || s.entries[1].loc != "https://www.example.com/2" {
		t.Errorf("%v %+v", err, s)
	}
}

func TestSitemapsOfOtherCharacterSets(t *testing.T) {
	s, err := parseSitemap([]byte("<?xml version='1.0' encoding='Shift_JIS'?><urlset><url><loc>/\x8e\xca\x90^.jpg</loc></url></urlset>"))
	if err != nil || s.entries[0].loc != "/写真.jpg" {
		t.Errorf("%v %+v", err, s)
	}
	var b []byte
	for _, u := range utf16.Encode([]rune("\ufeff<?xml version='1.0' encoding='UTF-16'?><urlset><url><loc>/写.jpg</loc></url></urlset>")) {
		b = append(b, byte(u), byte(u>>8))
	}
	if s, err = parseSitemap(b); err != nil || s.entries[0].loc != "/写.jpg" {
		t.Errorf("%v %+v", err, s)
	}
}

// What is hostile or broken gives what was read before it, and an error in words.
func TestBadSitemaps(t *testing.T) {
	billion := "<?xml version='1.0'?><!DOCTYPE l [<!ENTITY a '" + strings.Repeat("x", 1000) + "'>"
	for c := 'b'; c < 'k'; c++ {
		billion += fmt.Sprintf("<!ENTITY %c '%s'>", c, strings.Repeat(fmt.Sprintf("&%c;", c-1), 10))
	}
	billion += "]><urlset><url><loc>&j;</loc></url></urlset>"
	many := "<urlset>" + strings.Repeat("<url><loc>/a.jpg</loc></url>", maxEntries+1) + "</urlset>"
	for name, c := range map[string]struct {
		body, err string
		entries   int
	}{
		"empty":           {" \n", "it is empty", 0},
		"entities":        {billion, "invalid character entity &j;", 0},
		"external entity": {"<!DOCTYPE u [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><urlset><url><loc>&x;</loc></url></urlset>", "invalid character entity", 0},
		"page":            {"<html><head><title>Not found</title></head></html>", `its first element is "html"`, 0},
		"text":            {"Not found", "line 1", 0},
		"deep":            {"<urlset>" + strings.Repeat("<a>", 1000000), "nested more than 32 deep", 0},
		"cut":             {"<urlset><url><loc>/a.jpg</loc></url><url><loc>/b", "unexpected EOF", 1},
		"many":            {many, "more than 200000 addresses", maxEntries},
		"unknown set":     {"<?xml version='1.0' encoding='klingon'?><urlset/>", "klingon", 0},
		"only comment":    {"<!-- -->", "it is no sitemap", 0},
		"closing":         {"</urlset>", "unexpected end element", 0},
		"nul":             {"<urlset>\x00</urlset>", "illegal character", 0},
	} {
		s, err := parseSitemap([]byte(c.body))
		if err == nil || !strings.Contains(err.Error(), c.err) || len(err.Error()) > 300 || len(s.entries) != c.entries {
			t.Errorf("%s: %v, %d entries", name, err, len(s.entries))
		}
	}
	// An address that is too long is none, and the others stay.
	s, err := parseSitemap([]byte("<urlset><url><loc>" + strings.Repeat("x", 2*maxAddress) + "</loc></url><url><loc>/a.jpg</loc></url></urlset>"))
	if err != nil || s.entries[len(s.entries)-1].loc != "/a.jpg" {
		t.Errorf("%v %d", err, len(s.entries))
	}
}

func FuzzSitemap(f *testing.F) {
	for _, seed := range []string{sampleSitemap, "<sitemapindex><sitemap><loc>x</loc></sitemap></sitemapindex>", "/a.jpg\n#\n", "\xfe\xff\x00<", "<?xml encoding='x'?><urlset>", "<urlset></url>"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s, _ := parseSitemap(body)
		for _, e := range s.entries {
			for _, u := range append(e.images, e.loc) {
				if len(u) > maxAddress {
					t.Errorf("%d bytes", len(u))
				}
				resolve(address{}, u)
			}
		}
	})
}

func TestReadBounded(t *testing.T) {
	pack := func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = z.Write(b)
		_ = z.Close()
		return out.Bytes()
	}
	if b, err := readBounded(bytes.NewReader(pack([]byte("hello"))), 100); err != nil || string(b) != "hello" {
		t.Errorf("%q %v", b, err)
	}
	bomb := pack(make([]byte, 50<<20))
	if _, err := readBounded(bytes.NewReader(bomb), 1<<20); err == nil || !strings.Contains(err.Error(), "over 1048576 bytes") {
		t.Errorf("a bomb: %v", err)
	}
	if _, err := readBounded(bytes.NewReader(pack([]byte("hello"))[:12]), 100); err == nil {
		t.Error("a torn file is no error")
	}
	if _, err := readBounded(strings.NewReader(strings.Repeat("x", 101)), 100); err == nil {
		t.Error("101 bytes are no error")
	}
}

func TestParseList(t *testing.T) {
	got, err := parseList([]byte("\xef\xbb\xbf/a.jpg\r\n\n# comment\nHTTPS://www.example.com/b.jpg\n  /c d.jpg  "))
	if err != nil || !slices.Equal(got, []string{"/a.jpg", "HTTPS://www.example.com/b.jpg", "/c d.jpg"}) {
		t.Errorf("%q %v", got, err)
	}
	got, err = parseList([]byte("/a.jpg\nb.jpg\n"))
	if err == nil || !strings.Contains(err.Error(), `line 2 is "b.jpg"`) || len(got) != 1 {
		t.Errorf("%q %v", got, err)
	}
	if _, err = parseList([]byte("/a.jpg\n/" + strings.Repeat("x", maxAddress+1))); err == nil || !strings.Contains(err.Error(), "line 2 is longer") {
		t.Error(err)
	}
}
