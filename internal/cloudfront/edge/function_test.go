package edge

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"karui/deploy"
	"karui/internal/cloudfront"
	"karui/proxy/rules"
)

var fourValues = []string{"image/avif,image/webp", "image/avif", "image/webp", "*/*"}

// reduced runs the shipped function on Accept lines.
func reduced(t *testing.T, lines ...string) string {
	t.Helper()
	headers := map[string]any{"host": map[string]any{"value": "www.example.com"}}
	if len(lines) > 0 {
		many(headers, "accept", lines)
	}
	out, err := RunFunction(cloudfront.Function{Code: deploy.NormaliseAccept},
		map[string]any{"method": "GET", "uri": "/a.jpg", "querystring": map[string]any{}, "headers": headers, "cookies": map[string]any{}}, time.Minute)
	if err != nil {
		t.Fatalf("%q: %v", lines, err)
	}
	values, err := valuesOf(out["headers"].(map[string]any)["accept"])
	if err != nil || len(values) != 1 {
		t.Fatalf("%q: %v %v", lines, values, err)
	}
	return values[0]
}

func TestAcceptIsReducedToFourValues(t *testing.T) {
	const both, avif, webp, neither = "image/avif,image/webp", "image/avif", "image/webp", "*/*"
	for _, c := range []struct {
		want  string
		lines []string
	}{
		{both, []string{"image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"}},
		{both, []string{"image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"}},
		{both, []string{"image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"}},
		{webp, []string{"image/webp,*/*"}},
		{avif, []string{"image/avif"}},
		{neither, []string{"*/*"}},
		{neither, []string{"image/*"}},
		{neither, []string{"image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5"}},
		{neither, nil},
		{neither, []string{""}},
		{neither, []string{"image/webp;q=0"}},
		{neither, []string{"image/webp;q=0.000"}},
		{neither, []string{"image/webp ; q=0, */*"}},
		{neither, []string{"image/webp;Q=0"}},
		{neither, []string{"image/webp, image/webp;q=0"}},
		{neither, []string{"image/webp;q=", "image/avif;q"}},
		{neither, []string{"image/webp;q=1.1"}},
		{neither, []string{"image/webp;q=-1"}},
		{neither, []string{"image/webp;q=1e0"}},
		{neither, []string{"image/webp;q=0x1"}},
		{neither, []string{"image/webp;q=Infinity"}},
		{neither, []string{"image/webp;q=."}},
		{neither, []string{"image/webp;q=0.1.1"}},
		{neither, []string{"image/webpx, ximage/webp, image/web p, image /webp"}},
		{neither, []string{`x="image/webp,image/avif"`}},
		{neither, []string{`image/png;x=",image/webp`}},
		{webp, []string{"IMAGE/WebP"}},
		{webp, []string{"  image/webp  "}},
		{webp, []string{"\timage/webp\t;\tq=0.1"}},
		{webp, []string{",,, image/webp ,,"}},
		{webp, []string{"image/webp;q=1.000"}},
		{webp, []string{"image/webp;q=.5"}},
		{webp, []string{"image/webp;level=1;q=0.5"}},
		{webp, []string{`image/webp;x="q=0;";q=0.5`}},
		{webp, []string{"text/html", "image/webp"}},
		{both, []string{"image/webp", "image/avif"}},
		{neither, []string{"image/webp", "image/webp;q=0"}},
		{neither, []string{strings.Repeat("a/b,", 1500) + "image/webp"}},
		{neither, []string{strings.Repeat(" ", 20000)}},
		{neither, []string{"__proto__, constructor, toString, hasOwnProperty"}},
	} {
		if got := reduced(t, c.lines...); got != c.want {
			t.Errorf("%.80q: %q, want %q", c.lines, got, c.want)
		}
	}
}

// FuzzAcceptMeansTheSame compares with how karui itself reads the header: what is
// left of it never names a format that the viewer did not, and names all that it
// did unless it is absurdly long.
func FuzzAcceptMeansTheSame(f *testing.F) {
	for _, s := range []string{
		"image/avif,image/webp,*/*;q=0.8", "image/webp;q=0", `image/webp;x="a,b";q=1`, "image/webp;q=00000000000000000.5", "image/webp;q=0.5.5",
		"IMAGE/WEBP;Q=1", "image/webp\n", "image/webp;q=١", `image/webp;x="\",image/avif;q=0`, "image/webp;q = 1", "image/webp;;q=0", "image/webp;=;q=0",
		"image/webp;q=0.00000000000000000000000001", "image/webp ;q=1 ;q=0", "\u212a,image/webp",
	} {
		f.Add(s, "")
		f.Add(s, "image/avif")
	}
	types := []string{"image/avif", "image/webp"}
	f.Fuzz(func(t *testing.T, one, two string) {
		lines := []string{one}
		if two != "" {
			lines = append(lines, two)
		}
		got := reduced(t, lines...)
		if !slices.Contains(fourValues, got) {
			t.Fatalf("%q: %q", lines, got)
		}
		want := rules.Accepted(lines, types)
		// Lines are joined before they are read there, so an open quote goes on.
		if joined := rules.Accepted([]string{strings.Join(lines, ",")}, types); !slices.Equal(want, joined) {
			want = joined
		}
		left := rules.Accepted([]string{got}, types)
		if len(one)+len(two) < 4000 && !slices.Equal(left, want) {
			t.Errorf("%q became %q, which names %v instead of %v", lines, got, left, want)
		}
		for _, name := range left {
			if !slices.Contains(want, name) {
				t.Errorf("%q became %q, yet the viewer takes %v", lines, got, want)
			}
		}
	})
}

// Both runtimes of CloudFront take ECMAScript 5.1; the engine here takes more.
func TestTheFunctionIsWrittenForTheOldestRuntime(t *testing.T) {
	code := regexp.MustCompile(`(?m)//.*$`).ReplaceAllString(deploy.NormaliseAccept, "")
	if found := regexp.MustCompile("\\b(let|const|class|async|await|import|export|of)\\b|=>|`|\\.\\.\\.|\\?\\?|\\?\\.").FindString(code); found != "" {
		t.Errorf("the function uses %q", found)
	}
	if len(deploy.NormaliseAccept) > 10<<10 {
		t.Errorf("the function has %d bytes", len(deploy.NormaliseAccept))
	}
}

func association(arn string) string {
	return `<FunctionAssociations><Quantity>1</Quantity><Items><FunctionAssociation><FunctionARN>` + arn +
		`</FunctionARN><EventType>viewer-request</EventType></FunctionAssociation></Items></FunctionAssociations>`
}

// inFunction puts a function before the images.
func inFunction(t *testing.T, code string, f func(l *lab)) {
	t.Helper()
	inLab(t, document{}, func(l *lab) {
		arn, err := l.control.PutFunction("f", code)
		l.must(err)
		l.put(document{extra: association(arn)})
		f(l)
	})
}

func TestTheNormalisingFunctionRaisesTheHitRate(t *testing.T) {
	inFunction(t, deploy.NormaliseAccept, func(l *lab) {
		l.karui.handle(func(w http.ResponseWriter, r *http.Request) {
			tell(w, 200, r.Header.Get("Accept"), "Cache-Control: max-age=60")
		})
		l.want("/img/a", "image/avif,image/webp", Miss, "Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8")
		l.want("/img/a", "image/avif,image/webp", Hit, "Accept: image/webp,image/avif")
		l.want("/img/a", "image/webp", Miss, "Accept: image/webp,*/*;q=0.5")
		l.want("/img/a", "image/webp", Hit, "Accept: text/html", "Accept: image/webp")
		l.want("/img/a", "*/*", Miss)
		l.want("/img/a", "*/*", Hit, "Accept: image/png")
		if v := l.event(); v.Accept != "*/*" {
			t.Errorf("event %+v", v)
		}
	})
}

func TestAFunctionChangesTheRequestButNotTheBehaviour(t *testing.T) {
	inFunction(t, `function handler(event) {
		var r = event.request;
		r.uri = '/page';
		r.querystring.b = {value: '2'};
		r.headers['x-new'] = {value: event.context.eventType + event.viewer.ip.length};
		delete r.headers.accept;
		return r;
	}`, func(l *lab) {
		l.want("/img/a?a=1", "karui", Miss, "Accept: image/webp")
		r := l.karui.last(t)
		if r.RequestURI != "/page?a=1&b=2" || r.Header["Accept"] != nil {
			t.Errorf("%s %v", r.RequestURI, r.Header)
		}
		if v := l.event(); v.Pattern != "/img/*" || v.Target != "/img/a?a=1" {
			t.Errorf("event %+v", v)
		}
	})
}

func TestAFunctionThatLeavesARequestAloneLeavesItsBytesAlone(t *testing.T) {
	inFunction(t, `function handler(event) { return event.request; }`, func(l *lab) {
		target := "/img/%83%65/%2F%61.jpg?b=1&a=%20&b=2&&c"
		r := l.request(http.MethodGet, "/")
		r.URL.Opaque = target
		r.Header.Set("Accept", "caf\xe9")
		l.do(r)
		if got := l.karui.last(t); got.RequestURI != target || got.Header.Get("Accept") != "caf\xe9" {
			t.Errorf("%s %q", got.RequestURI, got.Header)
		}
	})
}

func TestAFunctionCanAnswer(t *testing.T) {
	inFunction(t, `function handler(event) {
		return {statusCode: 302, statusDescription: 'Found', headers: {location: {value: '/there'}}};
	}`, func(l *lab) {
		if s := l.get("/img/a"); s.status != 302 || s.header.Get("Location") != "/there" || s.cache() != FunctionResponded {
			t.Errorf("%d %v", s.status, s.header)
		}
		l.asked(0, 0)
	})
}

func TestAFunctionThatFailsGives503AndOneThatBreaksTheRules502(t *testing.T) {
	for code, status := range map[string]int{
		"function handler(event) { throw new Error('x'); }":  503,
		"function handler(event) { return undefined; }":      503,
		"function handler(event) { return handler(event); }": 503,
		"this is no code":  503,
		"var handler = 1;": 503,
		"function handler(event) { undeclared = 1; return event.request; }":                                 503,
		"function handler(event) { event.request.method = 'PUT'; return event.request; }":                   502,
		"function handler(event) { event.request.uri = 'x'; return event.request; }":                        502,
		"function handler(event) { event.request.uri = '/a b'; return event.request; }":                     502,
		"function handler(event) { event.request.headers.host = {value: 'x'}; return event.request; }":      502,
		"function handler(event) { delete event.request.headers.host; return event.request; }":              502,
		"function handler(event) { event.request.headers.connection = {value: 'x'}; return event.request}":  502,
		"function handler(event) { event.request.headers['X-Up'] = {value: 'x'}; return event.request}":     502,
		"function handler(event) { event.request.headers.x = 'text'; return event.request}":                 502,
		"function handler(event) { event.request.headers.x = {value: 'a\\r\\nb: c'}; return event.request}": 502,
		"function handler(event) { event.request.querystring.x = {value: 'a b'}; return event.request}":     502,
		"function handler(event) { return {statusCode: 'x'}; }":                                             502,
		"function handler(event) { return {statusCode: 99}; }":                                              502,
	} {
		inFunction(t, code, func(l *lab) {
			if s := l.get("/img/a"); s.status != status {
				t.Errorf("%s: %d, want %d (%+v)", code, s.status, status, l.event().Tries)
			}
			l.asked(0, 0)
		})
	}
}

func TestAFunctionThatNeverEndsIsStopped(t *testing.T) {
	_, err := RunFunction(cloudfront.Function{Code: "function handler(event) { for (;;) {} }"}, map[string]any{}, 20*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("%v", err)
	}
}

func TestRunsOfAFunctionShareNothing(t *testing.T) {
	f := newFunctions(time.Minute)
	for range 2 {
		out, err := f.run("var n = 0; function handler(event) { n++; Object.prototype.x = (Object.prototype.x || 0) + 1; return {n: n, x: {}.x}; }", map[string]any{})
		if err != nil || out["n"] != int64(1) || out["x"] != int64(1) {
			t.Errorf("%v %v", out, err)
		}
	}
}

func TestCookiesAsFunctionsSeeThem(t *testing.T) {
	inFunction(t, `function handler(event) {
		var c = event.request.cookies;
		event.request.headers.accept = {value: c.a.value + c.b.value + (event.request.headers.cookie === undefined)};
		c.d = {value: '4'};
		delete c.a;
		return event.request;
	}`, func(l *lab) {
		l.policy(cloudfront.CachePolicy{DefaultTTL: 60e9, MaxTTL: 60e9, Headers: []string{"Accept"}, CookieAll: true})
		l.get("/img/a", "Cookie: a=1; b=2")
		if r := l.karui.last(t); r.Header.Get("Accept") != "12true" || r.Header.Get("Cookie") != "b=2; d=4" {
			t.Errorf("%v", r.Header)
		}
	})
}

func BenchmarkNormaliseAccept(b *testing.B) {
	f := newFunctions(time.Minute)
	request := map[string]any{"headers": map[string]any{"accept": map[string]any{"value": "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"}}}
	for b.Loop() {
		if _, err := f.run(deploy.NormaliseAccept, map[string]any{"request": request}); err != nil {
			b.Fatal(err)
		}
	}
}
