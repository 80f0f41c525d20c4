package invalidation

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func texts(paths []Path) []string {
	var out []string
	for _, p := range paths {
		t := p.Text
		if p.Wider {
			t += " (wider)"
		}
		out = append(out, t)
	}
	return out
}

func TestPaths(t *testing.T) {
	long := "/" + strings.Repeat("a", 5000)
	for _, c := range []struct {
		prefix string
		exact  bool
		want   []string
	}{
		{"/", false, []string{"/*"}},
		{"/images/", false, []string{"/images/*"}},
		{"/a.jpg", false, []string{"/a.jpg*"}},
		{"/a.jpg", true, []string{"/a.jpg"}},
		{"/a.jpg?v=1&w=%22", true, []string{"/a.jpg?v=1&w=%22"}},
		{"/caf%C3%A9", false, []string{"/caf%C3%A9*", "/caf%c3%a9*"}},
		{"/caf%c3%A9", true, []string{"/caf%C3%A9", "/caf%c3%a9"}},
		{"/caf\u00e9", false, []string{"/caf%C3%A9*", "/caf%c3%a9*"}},
		{"/a%20b/%28", false, []string{"/a%20b/%28*"}},
		{"/a b", false, []string{"/a%20b*"}},
		{"/test[1].jpg", true, []string{"/test%5B1%5D.jpg", "/test%5b1%5d.jpg"}},
		{"/100%", false, []string{"/100%25*"}},
		{"/a%2", false, []string{"/a%252*"}},
		{"/%2Fa", false, []string{"/%2Fa*", "/%2fa*"}},
		{"/it's,(ok);+&=:@!$", true, []string{"/it's,(ok);+&=:@!$"}},
		{"/~staff/a.jpg", false, []string{"/* (wider)"}},
		{"/x/%7Estaff", true, []string{"/x/* (wider)"}},
		{"/x/a%2Ab", false, []string{"/x/a* (wider)"}},
		{"/x/a*b", true, []string{"/x/a* (wider)"}},
		{long, false, []string{long[:3999] + "* (wider)"}},
	} {
		if got := texts(Paths(c.prefix, c.exact)); !slices.Equal(got, c.want) {
			t.Errorf("%s exact %v: %v, want %v", c.prefix, c.exact, got, c.want)
		}
	}
}

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		prefixes []string
		exact    bool
		want     string
	}{
		{[]string{"/b/", "/a/", "/a/x.jpg", "/a", "/b/c"}, false, "/b/* /a*"},
		{[]string{"/a.jpg", "/a.jpg", "/b.jpg"}, true, "/a.jpg /b.jpg"},
		{[]string{"/a", "/~u/x", "/~u/y"}, true, "/*"},
		{[]string{"/x/a", "/x/~u", "/y/a", "/x/z?v=1", "/x"}, true, "/x/* /y/a /x"},
		{[]string{"/", "/a"}, false, "/*"},
		{[]string{"/a!", "/a", "/a/b"}, false, "/a*"},
	} {
		var got []string
		for _, p := range Plan(c.prefixes, c.exact) {
			got = append(got, p.Text)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v exact %v: %v, want %s", c.prefixes, c.exact, got, c.want)
		}
	}
}

// covers is what CloudFront documents, written anew: a path with a star covers what
// begins with the rest of it, one without only itself.
func covers(paths []Path, target string) bool {
	return slices.ContainsFunc(paths, func(p Path) bool {
		if stem, ok := strings.CutSuffix(p.Text, "*"); ok {
			return strings.HasPrefix(target, stem)
		}
		return target == p.Text
	})
}

// valid is what CloudFront documents about the form of a path.
func valid(p string) bool {
	body := strings.TrimSuffix(p, "*")
	if !strings.HasPrefix(p, "/") || len(p) > MaxPath || strings.Contains(strings.ToLower(body), "%7e") || strings.ContainsAny(body, "*~ \"<>#{}|\\^[]`") {
		return false
	}
	for i := range len(body) {
		if body[i] <= ' ' || body[i] >= 0x7f {
			return false
		}
	}
	return true
}

// Whatever begins with a prefix, in the form that browsers send and in the other
// writing of escapes, is covered by what is planned for it and all the others.
func TestPlansCoverWhatTheyAreFor(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"a", "b", "/", "/img", ".jpg", "%41", "%2F", "%C3%A9", "%e3%81%82", "~", "%7E", "%7e", "*", "%2A", "%", "%G", "[1]", " ", "|", "'", "(", "?", "\u5199",
	})
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.Map(rapid.SliceOfN(piece, 0, 6), func(s []string) string { return strings.Join(s, "") })
		prefixes := rapid.SliceOfN(rapid.Map(part, func(s string) string { return "/" + s }), 1, 6).Draw(t, "prefixes")
		exact := rapid.Bool().Draw(t, "exact")
		plan := Plan(prefixes, exact)
		for _, p := range plan {
			if !valid(p.Text) {
				t.Fatalf("%s is no path that CloudFront takes, for %q", p.Text, prefixes)
			}
		}
		for i, p := range plan {
			for j, other := range plan {
				if i != j && (p.Text == other.Text || Wildcard(p.Text) && strings.HasPrefix(other.Text, strings.TrimSuffix(p.Text, "*"))) {
					t.Fatalf("%s covers %s as well", p.Text, other.Text)
				}
			}
		}
		rest := ""
		if !exact {
			rest = part.Draw(t, "rest")
		}
		for _, prefix := range prefixes {
			// As CloudFront knows the object: what is unsafe is encoded.
			upper, cut := encode(strings.NewReplacer("~", "", "*", "", "%7E", "", "%7e", "", "%2A", "", "%2a", "").Replace(prefix), true)
			if cut {
				t.Fatalf("%q was cut", prefix)
			}
			if strings.ContainsAny(prefix, "~*") || strings.Contains(strings.ToUpper(prefix), "%7E") || strings.Contains(strings.ToUpper(prefix), "%2A") || strings.ContainsAny(prefix, "?") && !exact {
				continue // covered by what is before it, which TestPaths shows
			}
			for _, target := range []string{upper + rest, lowerEscapes(upper) + rest} {
				if !covers(plan, target) {
					t.Fatalf("%q does not cover %s (prefix %q): %v", prefixes, target, prefix, texts(plan))
				}
			}
		}
	})
}

func TestBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := make([]string, rapid.IntRange(0, 7000).Draw(t, "paths"))
		every := rapid.IntRange(1, 500).Draw(t, "every")
		for i := range paths {
			paths[i] = "/" + url.PathEscape(strings.Repeat("x", i%7))
			if i%every == 0 {
				paths[i] += "*"
			}
		}
		var all []string
		batches := Batches(paths)
		for i, b := range batches {
			if len(b) == 0 || !UseOf(b).Fits() {
				t.Fatalf("batch %d uses %+v", i, UseOf(b))
			}
			if i > 0 && UseOf(batches[i-1]).Plus(UseOf(b[:1])).Fits() {
				t.Fatalf("batch %d would have found room in the one before", i)
			}
			all = append(all, b...)
		}
		if !slices.Equal(all, paths) {
			t.Fatal("paths were lost or changed places")
		}
	})
	big := make([]string, 600)
	for i := range big {
		big[i] = "/" + strings.Repeat("x", 3990)
	}
	if batches := Batches(big); len(batches) != 3 || len(batches[0])*3991 > maxBatchBytes {
		t.Errorf("%d batches", len(batches))
	}
}
