package rules

import (
	"net/http"
	"testing"
)

func TestShareable(t *testing.T) {
	tests := []struct {
		name   string
		header http.Header
		keyed  []string
		want   bool
	}{
		{"plain", headers("Content-Type: image/jpeg"), nil, true},
		{"cookie", headers("Set-Cookie: a=b"), nil, false},
		{"private", headers("Cache-Control: private, max-age=60"), nil, false},
		{"no-store", headers("Cache-Control: max-age=60", "Cache-Control: no-store"), nil, false},
		{"no-cache is kept", headers("Cache-Control: no-cache"), nil, true},
		{"vary accept", headers("Vary: Accept, accept-encoding"), nil, true},
		{"vary star", headers("Vary: *"), nil, false},
		{"vary star among others", headers("Vary: Accept", "Vary: *"), nil, false},
		{"vary user agent", headers("Vary: Accept-Encoding, User-Agent"), nil, false},
		{"vary origin, not keyed", headers("Vary: Origin"), nil, false},
		{"vary origin, keyed", headers("Vary: Origin"), []string{"origin"}, true},
		{"vary by a keyed header", headers("Vary: Referer"), []string{"origin", "referer"}, true},
		{"vary nothing", headers("Vary: "), nil, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, why := Shareable(test.header, test.keyed)
			if got != test.want || got != (why == "") {
				t.Errorf("Shareable = %v (%q), want %v", got, why, test.want)
			}
		})
	}
}

func TestTransformable(t *testing.T) {
	tests := []struct {
		header http.Header
		want   bool
	}{
		{headers(), true},
		{headers("Content-Encoding: identity"), true},
		{headers("Content-Encoding: gzip"), false},
		{headers("Content-Encoding: identity, br"), false},
		{headers("Cache-Control: public, No-Transform"), false},
	}
	for _, test := range tests {
		if got := Transformable(test.header); got != test.want {
			t.Errorf("Transformable(%v) = %v, want %v", test.header, got, test.want)
		}
	}
}

func TestVaryAccept(t *testing.T) {
	tests := []struct {
		lines []string
		want  string
	}{
		{nil, "Accept"},
		{[]string{"accept"}, "Accept"},
		{[]string{"Origin, Accept-Encoding", "ORIGIN"}, "Accept, Origin, Accept-Encoding"},
		{[]string{"Origin, *"}, "*"},
	}
	for _, test := range tests {
		if got := VaryAccept(test.lines); got != test.want {
			t.Errorf("VaryAccept(%q) = %q, want %q", test.lines, got, test.want)
		}
	}
	if !VariesBy(headers("Vary: Accept, ORIGIN"), "origin") || VariesBy(headers("Vary: X-Origin"), "origin") {
		t.Error("VariesBy does not compare whole names in any case")
	}
}
