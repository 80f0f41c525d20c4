package warm

import (
	"slices"
	"strings"
	"testing"
)

func TestPageImages(t *testing.T) {
	const body = `<!doctype html><base href="/shop/"><img src="a.jpg" srcset="b.jpg 2x, a.jpg 1x"><img src="data:image/png;,x">
<img src="//cdn.example.com/c.png"><a style="background:url(d.gif)"></a><img src="javascript:alert(1)"><img src="file:///etc/passwd">
<meta property="og:image" content="https://other.example/e.jpg">`
	for from, want := range map[string][]string{
		"https://www.example.com/x/page.html": {
			"https://www.example.com/shop/a.jpg", "https://www.example.com/shop/b.jpg", "https://cdn.example.com/c.png",
			"https://www.example.com/shop/d.gif", "https://other.example/e.jpg",
		},
		"": {"https://cdn.example.com/c.png", "https://other.example/e.jpg"},
	} {
		got, err := PageImages([]byte(body), "text/html; charset=utf-8", from)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("from %q: %q, %v", from, got, err)
		}
	}
	if got, err := PageImages([]byte(strings.Repeat("<img src=a.jpg>", maxPageImages+2)), "", "http://a.example/"); err == nil || len(got) != 1 {
		t.Errorf("%d, %v", len(got), err)
	}
}
