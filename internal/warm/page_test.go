package warm

import (
	"slices"
	"strings"
	"testing"
)

const samplePage = `<!doctype html><html><head>
<base href="/shop/"><base href="/second/">
<link rel="icon" href=favicon.png><link rel="apple-touch-icon" sizes=180x180 href="touch.png"><link rel="stylesheet" href="x.css">
<link rel="preload" as="image" href="hero.jpg" imagesrcset="hero-1.jpg 1x, hero-2.jpg 2x"><link rel=preload as=font href=f.woff>
<meta property="og:image" content="https://www.example.com/og.jpg"><meta name="twitter:image" content="tw.jpg"><meta name="description" content="no.jpg">
<script>var s = '<img src="script.jpg">'</script><style>p { background: url(sheet.jpg) }</style>
<!-- <img src="comment.jpg"> --><title><img src="title.jpg"></title>
</head><body style="background:url('bg.png') no-repeat">
<img src="a.jpg" srcset="a-1.jpg 100w, a-2.jpg?x=1,2 200w,a-3.jpg" alt="b.jpg"><IMG SRC=c&amp;d.jpg>
<picture><source type="image/webp" srcset="data:image/webp;base64,AAAA 1x"><source srcset="p.jpg, q.jpg 2x"><img src='r.jpg'></picture>
<noscript><img src="lazy.jpg"></noscript><img src="after.jpg">
<div style="background-image: URL( &quot;x y.png&quot; ), url(z\).png )"></div>
<input type=image src=button.gif><input type=text src=no.gif><video poster=poster.jpg></video>
<svg><image href="in.png" xlink:href="in2.png"/></svg><a href="link.jpg">x</a><img src=""><img>
</body></html>`

func TestParsePage(t *testing.T) {
	p, err := parsePage([]byte(samplePage), "text/html; charset=utf-8")
	want := []string{
		"favicon.png", "touch.png", "hero.jpg", "hero-1.jpg", "hero-2.jpg", "https://www.example.com/og.jpg", "tw.jpg", "bg.png",
		"a.jpg", "a-1.jpg", "a-2.jpg?x=1,2", "a-3.jpg", "c&d.jpg", "data:image/webp;base64,AAAA", "p.jpg", "q.jpg", "r.jpg", "lazy.jpg", "after.jpg",
		"x y.png", "z).png", "button.gif", "poster.jpg", "in.png", "in2.png",
	}
	if err != nil || p.base != "/shop/" || !slices.Equal(p.images, want) {
		t.Errorf("%v %q\n%q\n%q", err, p.base, p.images, want)
	}
	p, err = parsePage([]byte("<meta charset=shift_jis><img src='\x8e\xca\x90^.jpg'>"), "text/html")
	if err != nil || !slices.Equal(p.images, []string{"写真.jpg"}) {
		t.Errorf("%v %q", err, p.images)
	}
}

// A page cannot make a run work or remember without bounds.
func TestHostilePages(t *testing.T) {
	for name, c := range map[string]struct{ body, err string }{
		"images":    {strings.Repeat("<img src=a.jpg>", maxPageImages+2), "more than 20000 images"},
		"noscripts": {strings.Repeat("<noscript>", 200000) + "<img src=a>", ""},
		"nested":    {"<noscript>" + strings.Repeat("<noscript><img src=a.jpg>", 1000), ""},
		"tag":       {"<img src='" + strings.Repeat("a", 2<<20), ""},
		"binary":    {strings.Repeat("\x00\xff<", 10000), ""},
		"set":       {`<img srcset="` + strings.Repeat("a,", 100000) + `">`, ""},
		"css":       {`<p style="` + strings.Repeat("url(", 100000) + `">`, ""},
	} {
		_, err := parsePage([]byte(c.body), "text/html")
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSourceSet(t *testing.T) {
	for set, want := range map[string][]string{
		"":                                nil,
		" , ,":                            nil,
		"a.jpg":                           {"a.jpg"},
		"a.jpg, b.jpg":                    {"a.jpg", "b.jpg"},
		"a.jpg 1x,b.jpg 2x":               {"a.jpg", "b.jpg"},
		"a.jpg 1x , b.jpg 2x ,":           {"a.jpg", "b.jpg"},
		"a.jpg,b.jpg":                     {"a.jpg,b.jpg"}, // as browsers read it
		"w_100,h_50/a.jpg 1x, c.jpg 100w": {"w_100,h_50/a.jpg", "c.jpg"},
		"a.jpg foo(1,2) 1x, b.jpg":        {"a.jpg", "b.jpg"},
		"a.jpg,, b.jpg":                   {"a.jpg", "b.jpg"},
	} {
		if got := sourceSet(set); !slices.Equal(got, want) {
			t.Errorf("%q: %q", set, got)
		}
	}
}

func FuzzPage(f *testing.F) {
	for _, seed := range []string{samplePage, "<img srcset=", "<base href=x><p style=url(", "<noscript><noscript>", "\xff\xfe<\x00"} {
		f.Add([]byte(seed), "text/html")
	}
	f.Add([]byte("<img src=\x8e>"), "text/html; charset=shift_jis")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		p, _ := parsePage(body, contentType)
		for _, u := range append(p.images, p.base) {
			resolve(address{scheme: "https", host: "www.example.com", path: "/"}, u)
			sourceSet(u)
			cssURLs(u)
		}
	})
}
