package edge

import (
	"regexp"
	"strings"
	"testing"

	"karui/internal/cloudfront"
)

func TestBehavioursAreTriedInOrderByCaseSensitivePatterns(t *testing.T) {
	var config cloudfront.Config
	for _, p := range []string{"images/*.jpg", "/images/*", "*.gif", "/a??.png", "*.doc*", "/ex?ct", "*"} {
		config.Behaviors = append(config.Behaviors, cloudfront.Behavior{Pattern: p})
	}
	for path, want := range map[string]string{
		"/images/a.jpg": "images/*.jpg", "/images/sub/a.jpg": "images/*.jpg", "/images/a.JPG": "/images/*", "/images/a.gif": "/images/*",
		"/images/": "/images/*", "/images": "*", "/x/y.gif": "*.gif", "/.gif": "*.gif", "/y.GIF": "*", "/ant.png": "/a??.png",
		"/an.png": "*", "/antx.png": "*", "/a.doc": "*.doc*", "/a.docx": "*.doc*", "/exact": "/ex?ct", "/ex/ct": "/ex?ct", "/exct": "*",
		"/IMAGES/a.jpg": "*", "/images/%61.jpg": "images/*.jpg", "/%69mages/a.jpg": "images/*.jpg", "/x/../images/a.jpg": "images/*.jpg",
		"/images/../x.html": "*", "/images/./a.jpg": "images/*.jpg", "/images%2Fa.jpg": "*", "/..": "*", "//images/a.jpg": "*",
	} {
		if got := behaviorFor(&config, path).Pattern; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestTheQueryPlaysNoPartInPatterns(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.want("/page?x=/img/a.jpg", "origin", Miss)
		l.want("/img/a?x=.html", "karui", Miss)
	})
}

func FuzzMatches(f *testing.F) {
	f.Add("/a*b?c", "/axxbyc")
	f.Add("***", "")
	f.Add("*a*a*a*a*b", strings.Repeat("a", 60))
	f.Fuzz(func(t *testing.T, pattern, s string) {
		expression := regexp.QuoteMeta(pattern)
		expression = strings.ReplaceAll(strings.ReplaceAll(expression, `\*`, `(?s:.*)`), `\?`, `(?s:.)`)
		r, err := regexp.Compile(`\A` + expression + `\z`)
		if err != nil || len(pattern) > 100 || strings.ToValidUTF8(pattern+s, "") != pattern+s || len(s) != len([]rune(s)) {
			t.Skip() // the expression counts characters, the pattern bytes
		}
		if matches(pattern, s) != r.MatchString(s) {
			t.Errorf("%q against %q: %v", pattern, s, !r.MatchString(s))
		}
	})
}

func FuzzNormalPath(f *testing.F) {
	f.Add("/a/%2e%2e/../b/./c%2Fd//e")
	f.Fuzz(func(t *testing.T, path string) {
		path = "/" + path
		once := normalPath(path)
		if !strings.HasPrefix(once, "/") {
			t.Errorf("%q became %q", path, once)
		}
		if strings.Contains(once+"/", "/../") || strings.Contains(once+"/", "/./") {
			t.Errorf("%q became %q", path, once)
		}
	})
}

func TestInvalidatedUnsafePaths(t *testing.T) {
	for _, c := range []struct {
		pattern, target string
		want            bool
	}{
		{"/caf%C3%A9*", "/caf%C3%A9.jpg", true},
		{"/caf%C3%A9*", "/caf\u00e9.jpg", true},
		{"/caf%c3%a9*", "/caf%C3%A9.jpg", false},
		{"/caf%C3%A9*", "/caf%c3%a9.jpg", false},
		{"/test%5B1%5D.jpg", "/test[1].jpg", true},
		{"/a%2Fb", "/a/b", false},
		{"/a.jpg?v=%221%22", `/a.jpg?v="1"`, true},
	} {
		if got := invalidated(c.pattern, c.target); got != c.want {
			t.Errorf("%s covers %s: %v", c.pattern, c.target, got)
		}
	}
}
