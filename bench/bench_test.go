package main

import (
	"bytes"
	"image/jpeg"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"karui/internal/sample"
)

func TestParseStat(t *testing.T) {
	line := "42 (a name) with) S 7 42 42 0 -1 4194560 100 200 0 0 150 50 30 20 20 0 4 0 100 1000 10 18446744073709551615"
	got, err := parseStat([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if want := (stat{parent: 7, self: 2 * time.Second, waited: 500 * time.Millisecond}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "42 (name", "42 (name) S 7", strings.Replace(line, "150", "x", 1)} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestTree(t *testing.T) {
	all := map[int]stat{1: {}, 5: {parent: 1}, 6: {parent: 5}, 7: {parent: 6}, 8: {parent: 1}}
	got := tree([]int{5, 99}, all)
	slices.Sort(got)
	if want := []int{5, 6, 7}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParseListening(t *testing.T) {
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0 100 0 0 10 0
   2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0 100 0 0 10 0
`
	if got := parseListening(table, 8080); !slices.Equal(got, []string{"111"}) {
		t.Errorf("got %v, want the one that listens on 8080", got)
	}
}

func TestParsePSS(t *testing.T) {
	got, err := parsePSS([]byte("00400000-7fff ---p 00000000 00:00 0 [rollup]\nRss:  900 kB\nPss:  12 kB\nPss_Anon: 5 kB\n"))
	if err != nil || got != 12<<10 {
		t.Errorf("got %d, %v, want 12 KiB", got, err)
	}
}

func TestParseWrk(t *testing.T) {
	out := `Running 3s test @ http://127.0.0.1:1/
  2 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.10ms    1.20ms  30.00ms   80.00%
  Latency Distribution
     50%    1.90ms
     99%    6.50ms
  90000 requests in 3.00s, 4.30GB read
Requests/sec:  30000.50
Transfer/sec:      1.43GB
`
	got, err := parseWrk(out)
	if err != nil {
		t.Fatal(err)
	}
	if want := (wrkResult{90000, 30000.5, 6500 * time.Microsecond}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", out + "  Non-2xx or 3xx responses: 7\n", strings.Replace(out, "99%", "98%", 1)} {
		if _, err := parseWrk(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestParsePeer(t *testing.T) {
	name, url, port, err := parsePeer("other=http://127.0.0.1:8081/q:80/plain/{origin}@webp")
	if err != nil || name != "other" || port != 8081 {
		t.Errorf("got %q, port %d, %v", name, port, err)
	}
	s := server{url: url}
	if got, want := s.at("http://o:1", "/a.jpg"), "http://127.0.0.1:8081/q:80/plain/http://o:1/a.jpg@webp"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, bad := range []string{"", "x", "=http://h:1/{origin}", "x=http://h:1/", "x=http://h/{origin}", "x=h:1/{origin}"} {
		if _, _, _, err := parsePeer(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestSumMetric(t *testing.T) {
	text := "# TYPE k counter\nk{a=\"x\",b=\"1\"} 3\nk{a=\"x\",b=\"2\"} 4\nk{a=\"y\"} 8\nkk 16\n"
	for labels, want := range map[string]float64{"": 15, `a="x"`: 7, `a="z"`: 0} {
		if got, err := sumMetric(text, "k", labels); err != nil || got != want {
			t.Errorf("labels %q: got %v, %v, want %v", labels, got, err, want)
		}
	}
}

func TestParseButteraugli(t *testing.T) {
	if got, err := parseButteraugli("4.25\n3-norm: 1.125\n"); err != nil || got != 1.125 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := parseButteraugli("4.25\n"); err == nil {
		t.Error("no error without a 3-norm")
	}
}

func TestFigures(t *testing.T) {
	if got := median([]float64{9, 1, 5}); got != 5 {
		t.Errorf("median of three: %v", got)
	}
	if got := median([]float64{9, 1, 5, 3}); got != 4 {
		t.Errorf("median of four: %v", got)
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of none: %v", got)
	}
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[len(hundred)-1-i] = time.Duration(i + 1)
	}
	for q, want := range map[float64]time.Duration{0.5: 50, 0.99: 99, 1: 100} {
		if got := quantile(hundred, q); got != want {
			t.Errorf("quantile %v: got %d, want %d", q, got, want)
		}
	}
	if got := ratios([]float64{2, 9}, []float64{4, 3}); !slices.Equal(got, []float64{0.5, 3}) {
		t.Errorf("ratios: %v", got)
	}
}

func TestParseCounts(t *testing.T) {
	if got, err := parseCounts("10, 20"); err != nil || !slices.Equal(got, []int{10, 20}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "0", "20,10", "x", "1,,2"} {
		if _, err := parseCounts(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestNumbered(t *testing.T) {
	photo := sample.Photo()
	one, two := numbered(photo, 1), numbered(photo, 2)
	if bytes.Equal(one, two) {
		t.Error("two numbers gave the same file")
	}
	want, err := jpeg.Decode(bytes.NewReader(photo))
	if err != nil {
		t.Fatal(err)
	}
	got, err := jpeg.Decode(bytes.NewReader(one))
	if err != nil {
		t.Fatal(err)
	}
	if got.Bounds() != want.Bounds() || got.At(100, 100) != want.At(100, 100) {
		t.Error("the number changed the picture")
	}
}

func TestNearest(t *testing.T) {
	img, err := jpeg.Decode(bytes.NewReader(sample.Photo()))
	if err != nil {
		t.Fatal(err)
	}
	small, err := nearest(img, 1)
	if err != nil {
		t.Fatal(err)
	}
	large, err := nearest(img, 100<<20)
	if err != nil {
		t.Fatal(err)
	}
	middle, err := nearest(img, (len(small)+len(large))/2)
	if err != nil {
		t.Fatal(err)
	}
	if len(middle) <= len(small) || len(middle) >= len(large) {
		t.Errorf("%d bytes, want something between %d and %d", len(middle), len(small), len(large))
	}
}
