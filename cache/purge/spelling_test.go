package purge

import (
	"net/url"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// TestWhateverTheSpelling: a folder typed in one way hits what lies below it, in whatever
// way each part of a path is written and the path put together, and hits nothing of
// another folder.
func TestWhateverTheSpelling(t *testing.T) {
	words := []string{"写真", "が", "表", "ソ", "波〜線", "−マイナス", "ﾊﾝ", "Ａ", "img", "Été", "café", "ΣΊΣΥΦΟΣ", "a b"}
	windows := strings.NewReplacer("〜", "\uff5e", "−", "\uff0d")
	write := func(t *rapid.T, word string, other encoding.Encoding) string {
		switch rapid.IntRange(0, 4).Draw(t, "written") {
		case 0:
			return norm.NFD.String(word)
		case 1:
			return strings.ToUpper(word)
		case 2:
			return strings.ToLower(word)
		case 3:
			if s, err := other.NewEncoder().String(windows.Replace(word)); err == nil {
				return s
			}
		}
		return word
	}
	join := func(t *rapid.T, parts []string) string {
		var b strings.Builder
		for _, s := range parts {
			b.WriteString(rapid.SampledFrom([]string{"/", "//", "/./", "/x/../"}).Draw(t, "slash") + s)
		}
		return b.String()
	}
	word := rapid.SampledFrom(words)
	rapid.Check(t, func(t *rapid.T) {
		folder := rapid.SliceOfN(word, 1, 3).Draw(t, "folder")
		other := japanese.ShiftJIS // no path has two encodings beside UTF-8
		if rapid.Bool().Draw(t, "euc") {
			other = japanese.EUCJP
		}
		var written []string
		for _, s := range append(folder, word.Draw(t, "name")) {
			written = append(written, write(t, s, other))
		}
		path := join(t, written)
		if rapid.Bool().Draw(t, "escaped") {
			path = strings.ReplaceAll(url.PathEscape(path), "%2F", "/")
		}
		prefix := join(t, folder) + "/"
		if rapid.Bool().Draw(t, "decomposed") {
			prefix = norm.NFD.String(prefix)
		}
		s := NewSet([]Purge{{Site: "shop", Prefix: prefix, At: noon}})
		if !s.Hits("shop", path, noon) {
			t.Errorf("%q does not hit %q", prefix, path)
		}
		if s.Hits("shop", "/other"+path, noon) {
			t.Errorf("%q hits another folder: %q", prefix, "/other"+path)
		}
	})
}
