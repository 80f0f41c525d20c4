package watchdog

import "testing"

func TestBehaviourPatterns(t *testing.T) {
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"*", "/", true},
		{"*", "/images/a.jpg", true},
		{"/images/*", "/images/a.jpg", true},
		{"images/*", "/images/a/b.jpg", true},
		{"/images/*", "/image/a.jpg", false},
		{"/images/*", "/images/", true},
		{"*.jpg", "/a/b.jpg", true},
		{"*.jpg", "/a/b.jpg.png", false},
		{"/a?c", "/abc", true},
		{"/a?c", "/ac", false},
		{"/a*b*c", "/axxbyyc", true},
		{"/a*b*c", "/axxbyy", false},
		{"/a*", "/a", true},
		{"/A", "/a", false},
	} {
		if got := matches(test.pattern, test.path); got != test.want {
			t.Errorf("%s of %s: %v", test.path, test.pattern, got)
		}
	}
}

func TestDefaultControlsAreTheEndpointsInUse(t *testing.T) {
	env := map[string]string{"AWS_ENDPOINT_URL_STS": "http://127.0.0.1:1"}
	got := defaultControls(func(name string) string { return env[name] })
	if len(got) != 2 || got[0] != "http://127.0.0.1:1" || got[1] != "https://cloudfront.amazonaws.com/" {
		t.Errorf("%q", got)
	}
}
