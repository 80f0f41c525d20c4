package purge

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func TestSpellings(t *testing.T) {
	sjis, err := japanese.ShiftJIS.NewEncoder().String("/写真/表.jpg")
	if err != nil {
		t.Fatal(err)
	}
	euc, err := japanese.EUCJP.NewEncoder().String("/写真/表.jpg")
	if err != nil {
		t.Fatal(err)
	}
	escaped := func(s string) string { return strings.ReplaceAll(url.PathEscape(s), "%2F", "/") }
	for _, c := range []struct {
		prefix, path string
		want         bool
	}{
		{"/a/", "/a/b.jpg", true},
		{"/a/", "/a", false},
		{"/a", "/ab.jpg", true},
		{"/a/b.jpg", "/a/", false},
		{"/", "/whatever", true},
		{"/a b.jpg", "/a%20b.jpg", true},
		{"/a%20b.jpg", "/a b.jpg", true},
		{"/a+b.jpg", "/a%2Bb.jpg", true},
		{"/a+b.jpg", "/a%20b.jpg", false},
		{"/a%2fb/", "/a%2Fb/c.jpg", true},
		{"/a%2fb/", "/a/b/c.jpg", true},
		{"/a/b/", "/a%2Fb%2fc.jpg", true},
		{"/A.jpg", "/%41.jpg", true},
		{"/%41.jpg", "/A.jpg", true},
		{"/%41.jpg", "/%2541.jpg", true}, // a file that is called so
		{"/%4", "/%41.jpg", true},        // its raw bytes begin so
		{"/100%.jpg", "/100%25.jpg", true},
		{"/IMG/", "/img/a.jpg", true},
		{"/img/", "/IMG/a.JPG", true},
		{"/写真/", "/%E5%86%99%E7%9C%9F/a.jpg", true},
		{"/写真/", "/%e5%86%99%e7%9c%9f/a.jpg", true},
		{"/%E5%86%99%E7%9C%9F/", "/写真/a.jpg", true},
		{"/写真/", escaped(sjis), true},
		{"/写真/", sjis, true},
		{"/写真/表", escaped(euc), true},
		{"/写真/", "/%E5%86%99/a.jpg", false},
		{"/ガ.jpg", escaped(norm.NFD.String("/ガ.jpg")), true},
		{norm.NFD.String("/ガ.jpg"), escaped("/ガ.jpg"), true},
		{"/a/b.jpg", "//a//b.jpg", true},
		{"/a/b.jpg", "/a/./x/../b.jpg", true},
		{"/a/x/../b.jpg", "/a/b.jpg", true},
		{"/a/", "/a/../b.jpg", true}, // its raw bytes begin so
		{"/b.jpg", "/a/../b.jpg", true},
		{"/a/..", "/a/..b.jpg", true},
		{"/a//", "/a/b.jpg", true},
		{"/b/", "/a/b.jpg", false},
		{"/波\u301c線/", "/%94%67%81%60%90%FC/a.jpg", true}, // as a Mac types it
		{"/波\uff5e線/", "/%94%67%81%60%90%FC/a.jpg", true},
		{"/波\u301c線/", "/波\uff5e線/a.jpg", true},
		{"/\u2212マ", "/%81%7C%83%7D.jpg", true},
		{"/\u2212マ", escaped("/\xa1\xdd\xa5\xde.jpg"), true}, // EUC-JP
		{"/\u2016\u00a2\u00a3\u00ac\u2014/", "/%81%61%81%91%81%92%81%CA%81%5C/a.jpg", true},
		{"/\u2225\uffe0\uffe1\uffe2\u2015/", "/%81%61%81%91%81%92%81%CA%81%5C/a.jpg", true},
		{"/\u00a5100/", "/%5C100/%94%67.jpg", true},
		{"//写真//", escaped(sjis), true},
		{"/./写真/", escaped(sjis), true},
		{"/x/../写真/表", escaped(euc), true},
		{"/写真/", escaped("/x/..//" + sjis[1:]), true},
		{"/が/", escaped(norm.NFD.String("/が/")) + "%8E%CA%90%5E.jpg", true}, // a folder and a name of two encodings
		{norm.NFD.String("/が/"), "/%82%AA/a.jpg", true},
		{"/fé/", "/F%C3%89/a.jpg", true},
		{"/F%C3%89/", "/fé/a.jpg", true},
		{"/ΣΊΣΥΦΟΣ", "/σίσυφος.jpg", true},
		{"/Ｉｍｇ/", "/%82%68%82%8D%82%87/a.jpg", true}, // wide letters
		{"/%8E%CA%90^/", "/写真/a.jpg", true},          // typed in Shift_JIS
		{"/%8E%CA%90^/", escaped(euc), true},
		{"/a/b/", `/a\b\c.jpg`, true},
		{"/a/b/", "/a%5Cb%5Cc.jpg", true},
		{`/a\b/`, "/a/b/c.jpg", true},
		{"/表/", "/%95%5C/a.jpg", true}, // a byte of a character is no slash
		{"/\x95/", "/%95%5C/a.jpg", false},
		{"/写/", escaped(sjis), false},
		{"/fe/", "/fé/a.jpg", false},
	} {
		s := NewSet([]Purge{{Site: "shop", Prefix: c.prefix, At: noon}})
		if got := s.Hits("shop", c.path, noon); got != c.want {
			t.Errorf("%q hits %q: %v", c.prefix, c.path, got)
		}
		if s.Hits("news", c.path, noon) {
			t.Errorf("%q hits another site", c.prefix)
		}
	}
}

func TestMargin(t *testing.T) {
	s := NewSet([]Purge{{"shop", "/a/", noon}, {"shop", "/a/b/", noon.Add(-time.Hour)}, {"shop", "/a/c", noon.Add(time.Hour)}})
	for _, c := range []struct {
		path  string
		began time.Time
		want  bool
	}{
		{"/a/x", noon.Add(Margin - 1), true},
		{"/a/x", noon.Add(Margin), false},
		{"/a/b/x", noon.Add(Margin - 1), true}, // by the later one that it lies within
		{"/a/c", noon.Add(time.Hour), true},
		{"/a/b", noon.Add(Margin), false},
		{"/b", noon.Add(-time.Hour), false},
	} {
		if got := s.Hits("shop", c.path, c.began); got != c.want {
			t.Errorf("%s at %v: %v", c.path, c.began.Sub(noon), got)
		}
	}
	if by, hit := s.Find("shop", "/a/b/x", noon); !hit || by.Prefix != "/a/" {
		t.Errorf("found %+v", by)
	}
}

func TestNoPurges(t *testing.T) {
	if s := NewSet(nil); s != nil || s.Hits("shop", "/a", noon) || s.Covers(Purge{"shop", "/a", noon}) {
		t.Error("no purges hit something")
	}
}

// TestAgainstPlainComparison: whatever begins with the raw bytes of a prefix is hit,
// and of plain small words nothing else.
func TestAgainstPlainComparison(t *testing.T) {
	word := rapid.StringMatching(`(/[ab]{1,2}){1,4}/?`)
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Purge {
			return Purge{
				Site: rapid.SampledFrom([]string{"s", "t"}).Draw(t, "site"), Prefix: word.Draw(t, "prefix"),
				At: noon.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "at")) * time.Minute),
			}
		}), 1, 12).Draw(t, "purges")
		s := NewSet(list)
		path, began := word.Draw(t, "path"), noon.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "began"))*time.Minute)
		want := false
		for _, p := range list {
			want = want || p.Site == "s" && strings.HasPrefix(path, p.Prefix) && began.Before(p.At.Add(Margin))
		}
		by, got := s.Find("s", path, began)
		if got != want {
			t.Fatalf("%q: %v, want %v", path, got, want)
		}
		if got && !(strings.HasPrefix(path, by.Prefix) && began.Before(by.At.Add(Margin))) {
			t.Fatalf("%q: by %+v", path, by)
		}
		for _, most := range []int{1, 3, 8} {
			limited := Limit(list, most)
			if len(limited) > max(most, 2) {
				t.Fatalf("%d purges after Limit to %d", len(limited), most)
			}
			coarse := NewSet(limited)
			if want && !coarse.Hits("s", path, began) {
				t.Fatalf("Limit to %d makes %q live again: %+v", most, path, limited)
			}
			for _, p := range list {
				if !coarse.Covers(p) {
					t.Fatalf("%+v is not covered after Limit to %d: %+v", p, most, limited)
				}
			}
		}
	})
}

// FuzzRawPrefix: no spelling keeps a path from being hit by what it begins with, and
// what is hit by a purge is hit by one that covers it.
func FuzzRawPrefix(f *testing.F) {
	for _, s := range []string{
		"/a/b.jpg", "/%E5%86%99%E7%9C%9F.png", "/a%2", "/%", "/a/../b", "/a//.", "/\x8e\xca.jpg", "/e\u0301", "/A%41%zz/..%2f",
		"/か\u3099.jpg", "/表\\.gif",
	} {
		f.Add(s, 3, "/a")
	}
	f.Fuzz(func(t *testing.T, path string, cut int, wider string) {
		path, wider = "/"+path, "/"+wider
		prefix := path[:1+max(cut, 0)%len(path)]
		if !NewSet([]Purge{{"s", prefix, noon}}).Hits("s", path, noon) {
			t.Errorf("%q does not hit %q", prefix, path)
		}
		narrow, wide := Purge{"s", prefix, noon}, NewSet([]Purge{{"s", wider, noon}})
		if wide.Covers(narrow) && !wide.Hits("s", path, noon) {
			t.Errorf("%q covers %q, and does not hit %q", wider, prefix, path)
		}
	})
}

func TestClean(t *testing.T) {
	long := "/img/" + strings.Repeat("a", 2000)
	kana := "/img/" + strings.Repeat("%E3%81%8B", 200)
	for text, want := range map[string]string{
		"/img/": "/img/", "/a.jpg?v=2": "/a.jpg", "/?": "/", "/a%3Fb": "/a%3Fb", long: long[:MaxPrefix],
		kana: "/img/", "/img/か" + long[4:]: "/img/か/", "/" + kana[5:]: "/",
	} {
		if got := Clean(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A cache keeps paths without their query, so a purge that names one hits the path.
func TestPurgeWithAQuery(t *testing.T) {
	set := NewSet([]Purge{{"s", "/a.jpg?v=2", noon}})
	if !set.Hits("s", "/a.jpg", noon) || set.Hits("s", "/b.jpg", noon) {
		t.Error("/a.jpg?v=2 does not hit /a.jpg, or more than that")
	}
}

// What is too long hits the same path in whatever spelling browsers send it.
func TestLongPrefixInOtherSpellings(t *testing.T) {
	plain := "/img/" + strings.Repeat("写真が", 60) + "/a.jpg"
	var escaped strings.Builder
	for _, b := range []byte(plain) {
		if b < 0x80 {
			escaped.WriteByte(b)
		} else {
			fmt.Fprintf(&escaped, "%%%02X", b)
		}
	}
	for extra := range 12 { // wherever the cut falls
		lead := "/" + strings.Repeat("x", extra)
		set := NewSet([]Purge{{"s", lead + escaped.String(), noon}})
		for _, path := range []string{lead + plain, lead + escaped.String(), lead + strings.ToLower(escaped.String()), lead + norm.NFD.String(plain)} {
			if !set.Hits("s", path, noon) {
				t.Errorf("%d: a prefix of %d bytes does not hit %.60q", extra, len(lead)+escaped.Len(), path)
			}
		}
	}
}

func TestLimitKeepsWhatIsFew(t *testing.T) {
	var list []Purge
	for i := range 900 {
		list = append(list, Purge{"big", fmt.Sprintf("/deep/%d/%d.jpg", i%30, i), noon.Add(time.Duration(i) * time.Second)})
	}
	list = append(list, Purge{"small", "/x/y/z.jpg", noon})
	got := Limit(list, 100)
	if len(got) != 31 {
		t.Errorf("%d purges, want 30 folders and the small site's own", len(got))
	}
	if got[len(got)-1] != list[900] {
		t.Errorf("the small site's purge became %+v", got[len(got)-1])
	}
	for _, p := range got[:30] {
		if p.At.Before(noon.Add(870 * time.Second)) {
			t.Errorf("%+v is not the latest of its folder", p)
		}
	}
	many := make([]Purge, 50)
	for i := range many {
		many[i] = Purge{fmt.Sprint(i), "/a/b", noon}
	}
	if got := Limit(many, 10); len(got) != 50 || got[0].Prefix != "/" {
		t.Errorf("%d purges of 50 sites, the first of %q", len(got), got[0].Prefix)
	}
}

func BenchmarkHits(b *testing.B) {
	for _, n := range []int{0, 1, 100, 10_000} {
		list := make([]Purge, n)
		for i := range list {
			list[i] = Purge{"shop", fmt.Sprintf("/images/%03d/%05d", i%500, i*7), noon}
		}
		s := NewSet(list)
		paths := make([]string, 1024)
		for i := range paths {
			paths[i] = fmt.Sprintf("/images/%03d/%05d-large.jpg", rand.IntN(600), rand.IntN(100_000))
		}
		b.Run(fmt.Sprintf("purges=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				s.Hits("shop", paths[i%len(paths)], noon)
			}
		})
	}
}

func BenchmarkNewSet(b *testing.B) {
	list := make([]Purge, 10_000)
	for i := range list {
		list[i] = Purge{"shop", fmt.Sprintf("/images/%03d/%05d", i%500, i*7), noon}
	}
	for range b.N {
		NewSet(list)
	}
}
