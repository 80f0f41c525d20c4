package rules

import (
	"slices"
	"strings"
	"testing"
)

func TestAccepted(t *testing.T) {
	site := []string{"image/avif", "image/webp"}
	tests := []struct {
		name  string
		lines []string
		want  []string
	}{
		{"no header", nil, nil},
		{"empty", []string{""}, nil},
		{"chrome", []string{"image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"}, []string{"image/avif", "image/webp"}},
		{"safari 13", []string{"image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5"}, nil},
		{"anything", []string{"*/*"}, nil},
		{"any image", []string{"image/*"}, nil},
		{"the site's order wins", []string{"image/webp, image/avif;q=0.1"}, []string{"image/avif", "image/webp"}},
		{"refused", []string{"image/webp;q=0"}, nil},
		{"refused in many digits", []string{"image/webp;q=0.000, */*"}, nil},
		{"refused once is refused", []string{"image/webp, image/webp;q=0"}, nil},
		{"tiny quality", []string{"image/webp;q=0.001"}, []string{"image/webp"}},
		{"odd spacing and case", []string{" text/html ,\t IMAGE/WebP ; Q = 0.5 "}, []string{"image/webp"}},
		{"several lines", []string{"text/html", "image/webp"}, []string{"image/webp"}},
		{"empty members", []string{",, ,image/webp,,"}, []string{"image/webp"}},
		{"other parameters", []string{`image/webp;v="a,b;q=0";q=0.4`}, []string{"image/webp"}},
		{"quality without value", []string{"image/webp;q"}, nil},
		{"quality that is a word", []string{"image/webp;q=high"}, nil},
		{"quality over one", []string{"image/webp;q=2"}, nil},
		{"quality in hexadecimal", []string{"image/webp;q=0x1"}, nil},
		{"infinite quality", []string{"image/webp;q=inf"}, nil},
		{"negative quality", []string{"image/webp;q=-1"}, nil},
		{"only a beginning", []string{"image/web"}, nil},
		{"only an end", []string{"ximage/webp"}, nil},
		{"inside quotes", []string{`text/html;x="image/webp, image/webp"`}, nil},
		{"open quote", []string{`text/html;x=", image/webp`}, nil},
		{"beyond the bound", []string{strings.Repeat("text/html,", 2000) + "image/webp"}, nil},
		{"cut at the bound", []string{strings.Repeat("x", maxList-6) + ",image/webp;q=0"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Accepted(test.lines, site); !slices.Equal(got, test.want) {
				t.Errorf("Accepted(%q) = %q, want %q", test.lines, got, test.want)
			}
		})
	}
}

func FuzzAccepted(f *testing.F) {
	for _, s := range []string{"image/webp", `image/webp;q="0.5"`, `a;"b\"`, ";;=,", "image/webp;q=", "\"\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got := Accepted([]string{line}, []string{"image/webp"})
		if len(got) > 0 && !strings.Contains(strings.ToLower(line), "image/webp") {
			t.Errorf("Accepted(%q) names WebP, the line does not", line)
		}
		// More of what a client says about other types must change nothing.
		more := Accepted([]string{line, "text/html"}, []string{"image/webp"})
		if !slices.Equal(got, more) {
			t.Errorf("Accepted(%q) = %q, with another line %q", line, got, more)
		}
	})
}
