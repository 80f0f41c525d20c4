package page

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Bytes(int64(0)), "0 B"},
		{Bytes(int64(1023)), "1023 B"},
		{Bytes(int64(1536)), "1.50 KiB"},
		{Bytes(int64(20) << 30), "20.0 GiB"},
		{Bytes(uint64(1) << 62), "4096 PiB"},
		{Bytes(int64(1<<20) - 1), "1.00 MiB"},
		{Count(0), "0"},
		{Count(999), "999"},
		{Count(1000), "1,000"},
		{Count(123456), "123,456"},
		{Count(999_999), "999,999"},
		{Count(1_000_000), "1.00 M"},
		{Count(2_500_000_000.0), "2.50 G"},
		{Count(999.7), "1,000"},
		{Rate(0), "0.00"},
		{Rate(0.001), "< 0.01"},
		{Rate(12.34), "12.3"},
		{Rate(123456), "123,456"},
		{Share(0, 0), "none asked"},
		{Share(5, 5), "100 %"},
		{Share(9999, 10000), "99.99 %"},
		{Share(99999, 100000), "99.999 %"},
		{Share(999_999_999, 1_000_000_000), "99.9999 %"},
		{Share(1, 2), "50.0 %"},
		{Share(998, 1000), "99.8 %"},
		{Share(0, 7), "0.0 %"},
		{Percent(0), "0.0 %"},
		{Percent(0.0001), "< 0.1 %"},
		{Percent(0.345), "34 %"},
		{Percent(1), "100 %"},
		{Percent(0.055), "5.5 %"},
		{Took(0), "0 ms"},
		{Took(1234 * time.Microsecond), "1.2 ms"},
		{Took(999800 * time.Microsecond), "1.0 s"},
		{Took(340 * time.Millisecond), "340 ms"},
		{Took(2100 * time.Millisecond), "2.1 s"},
		{Took(75 * time.Second), "1 min 15 s"},
		{Long(-time.Second), "0 s"},
		{Long(2*time.Hour + 14*time.Minute), "2 h 14 min"},
		{Long(3 * 24 * time.Hour), "3 d"},
		{Long(49 * time.Hour), "2 d 1 h"},
		{Plural(1, "worker"), "1 worker"},
		{Plural(0, "worker"), "0 workers"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	now := time.Date(2026, 8, 2, 0, 1, 0, 0, time.UTC)
	if got := Clock(now.Add(-2*time.Minute), now); got != "Aug 1 23:59:00" {
		t.Error(got)
	}
}

// A share that is not all of them never reads as if it were.
func FuzzShare(f *testing.F) {
	f.Add(uint64(9999), uint64(10000))
	f.Add(uint64(math.MaxUint64-1), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, good, all uint64) {
		if got := Share(good, all); good < all && strings.HasPrefix(got, "100") {
			t.Errorf("%d of %d: %s", good, all, got)
		}
	})
}

func TestScale(t *testing.T) {
	log := Scale{Min: 0.001, Max: 10, Log: true}
	for v, want := range map[float64]float64{0: 0, 0.001: 0, 0.1: 0.5, 10: 1, 1e9: 1} {
		if got := log.At(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%g is at %g, want %g", v, got, want)
		}
	}
	if got := (Scale{}).At(5); got != 0 {
		t.Errorf("a scale of nothing: %g", got)
	}
	for v, want := range map[float64]float64{0: 1, 0.2: 1, 1.5: 2, 4.1: 6, 9: 10, 11: 20, 61: 80, math.NaN(): 1, math.Inf(1): 1e300} {
		if got := Ceiling(v); got != want {
			t.Errorf("ceiling of %g: %g, want %g", v, got, want)
		}
	}
}

// wellFormed reads the drawing as XML and gives all text in it.
func wellFormed(t *testing.T, svg string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	var text strings.Builder
	for {
		token, err := d.Token()
		if err == io.EOF {
			return text.String()
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		if s, ok := token.(xml.CharData); ok {
			text.Write(s)
		}
	}
}

func TestLinesLeaveGapsWhereNothingIsKnown(t *testing.T) {
	c := Lines(Chart{ID: "a", Title: `<b>"`, Text: "&", From: 1, Y: []string{"1", "0"}}, []Series{
		{Key: Key{Name: "x", Class: "s1"}, Values: []float64{Unknown(), 0.5, 0.5, Unknown(), 1, 0}},
	}, 6, Scale{Max: 1}, []Limit{{At: 0.9, Name: "<3 s>"}})
	svg := string(c.SVG)
	if !strings.Contains(svg, `d="M1 50h1h1M4 0h1L6 100"`) {
		t.Errorf("%s", svg)
	}
	if text := wellFormed(t, svg); !strings.Contains(text, `<b>"`) || !strings.Contains(text, "<3 s>") {
		t.Errorf("%q", text)
	}
	// The column before the start is shaded.
	if !strings.Contains(svg, `<rect class="unknown" x="0" y="0" width="1"`) {
		t.Errorf("%s", svg)
	}
}

func TestBarsOfNothingAndOfTooMuch(t *testing.T) {
	words := func(v float64) string { return Count(v) }
	c := Bars(Chart{ID: "a"}, []Series{{Values: []float64{0, 0, math.Inf(1), math.NaN(), -1}}}, 5, BarOptions{Words: words, Tip: func(int) string { return "<tip>" }})
	if text := wellFormed(t, string(c.SVG)); !strings.Contains(text, "<tip>") || strings.Contains(string(c.SVG), "NaN") {
		t.Errorf("%s", c.SVG)
	}
	empty := Bars(Chart{ID: "a", From: 3, Before: "before <it>", Nothing: "no values"}, nil, 3, BarOptions{Words: words})
	if text := wellFormed(t, string(empty.SVG)); text != "before <it>" {
		t.Errorf("nothing is known, and drawn is %s", empty.SVG)
	}
	none := Lines(Chart{ID: "a", From: -1, Before: "before", Nothing: "no <values>"}, []Series{{Values: []float64{math.NaN()}}}, 3, Scale{Max: 1}, nil)
	if text := wellFormed(t, string(none.SVG)); text != "no <values>" {
		t.Errorf("drawn is %s", none.SVG)
	}
}

func TestSmallDrawings(t *testing.T) {
	for _, svg := range []string{
		string(Spark(`"<a>`, []float64{0, 3, math.Inf(1), math.NaN()}, []float64{0, 1})), string(Spark("", nil, nil)),
		string(Meter(`"<a>`, `"s1`, 0.5, 0.9, 7)), string(Meter("", "s1", math.NaN())),
	} {
		if wellFormed(t, svg); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s", svg)
		}
	}
	for v, want := range map[float64]float64{0: 1, 1500: 2048, 1 << 30: 1 << 30, 3e9: 3 << 30, 1020 * 1024: 1024 * 1024} {
		if got := CeilingBytes(v); got != want {
			t.Errorf("%g: %g, want %g", v, got, want)
		}
	}
}

func TestSet(t *testing.T) {
	files := fstest.MapFS{"p.html": {Data: []byte(`{{define "whole"}}<link href="{{asset "style.css"}}"><p data-fragment="a">{{template "a" .}}</p>{{end}}{{define "a"}}<i>{{.}}</i>{{end}}{{define "b"}}same{{end}}`)}}
	s, err := New("/status", files, "*.html", "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	s.Assets(mux)
	w := httptest.NewRecorder()
	if err := s.Whole(w, 200, "whole", "<script>"); err != nil {
		t.Fatal(err)
	}
	page := w.Body.String()
	if !strings.Contains(page, "&lt;script&gt;") || w.Header().Get("Content-Security-Policy") != Policy {
		t.Errorf("%s %v", page, w.Header())
	}
	href := page[strings.Index(page, `"`)+1 : strings.Index(page, `">`)]
	w = httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", href, nil))
	if w.Code != 200 || w.Header().Get("Cache-Control") != "private, max-age=86400" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/css") {
		t.Errorf("%s: %d %v", href, w.Code, w.Header())
	}

	live := func(have string, v any) map[string]fragment {
		w := httptest.NewRecorder()
		if err := s.Live(w, httptest.NewRequest("GET", "/status/live?have="+have, nil), v); err != nil {
			t.Fatal(err)
		}
		var answer struct{ Fragments map[string]fragment }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		return answer.Fragments
	}
	first := live("", 1)
	if len(first) != 2 || first["a"].HTML != "<i>1</i>" {
		t.Fatalf("%+v", first)
	}
	next := live(first["a"].Tag+","+first["b"].Tag, 2)
	if len(next) != 1 || next["a"].HTML != "<i>2</i>" {
		t.Errorf("%+v", next)
	}
	if _, err := New("/s", fstest.MapFS{"p.html": {Data: []byte(`{{asset`)}}, "*.html"); err == nil {
		t.Error("a template that is none was read")
	}
}
