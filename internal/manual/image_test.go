package manual

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"karui/internal/browsertest"
)

// In the drawing, words stay within their box, and no line goes through any. Takes
// about 3 s.
func TestDrawingKeepsItsWordsApart(t *testing.T) {
	drawing, err := os.ReadFile("../../docs/images/how-it-works.svg")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Path == "/" {
			_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>x</title><body id="all">` + string(drawing)))
		}
	}))
	defer server.Close()
	b := browsertest.Open(t, browsertest.Options{})
	b.Visit(server.URL+"/", "#all")
	const script = `(() => {
		const wrong = [], inside = (b, x, y) => x > b.x && x < b.x + b.width && y > b.y && y < b.y + b.height;
		const texts = [...document.querySelectorAll('svg text')].map(t => [t.textContent, t.getBBox()]);
		for (const r of document.querySelectorAll('svg rect')) {
			const box = r.getBBox();
			for (const [words, b] of texts)
				if (inside(box, b.x + b.width / 2, b.y + b.height / 2) && (b.x < box.x + 4 || b.x + b.width > box.x + box.width - 4)) wrong.push(words + ' leaves its box');
		}
		for (const p of document.querySelectorAll('svg path.a'))
			for (let at = 0; at <= p.getTotalLength(); at += 2) {
				const { x, y } = p.getPointAtLength(at);
				for (const [words, b] of texts) if (inside(b, x, y) && !wrong.includes(words + ' is crossed')) wrong.push(words + ' is crossed');
			}
		return [texts.length > 20, ...wrong].join('\n');
	})()`
	if got := browsertest.Eval[string](b, script); got != "true" {
		t.Error(strings.TrimPrefix(got, "true\n"))
	}
}
