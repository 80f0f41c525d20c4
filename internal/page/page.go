// Package page is what the pages for operators have in common: the style sheet, the
// script that keeps a page fresh, the drawing of charts, and words for numbers.
//
// Guaranteed: a page loads nothing from elsewhere and runs nothing inline (see
// Policy); it works without the script, by being read again; whatever is shown goes
// through html/template, and charts hold nothing but numbers, names of classes and
// escaped text; what is not known is drawn as a gap and never as 0.
//
// Not guaranteed: who may see a page. That is for its server to decide.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

//go:embed assets/base.css
var baseStyle string

//go:embed assets/icon.svg
var icon string

// BaseStyle is what the style sheet of every page of karui begins with, also of those
// that look otherwise: the colours, light and dark, and those of good, warn and bad.
func BaseStyle() string { return baseStyle }

// Icon is karui's, an SVG.
func Icon() string { return icon }

// Policy is the Content-Security-Policy of all pages: nothing from elsewhere,
// nothing inline.
const Policy = "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Secure sets the headers that every answer of a page bears.
func Secure(h http.Header) {
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// Set is a page: its templates, and which of them are its parts that change.
type Set struct {
	base      string
	templates *template.Template
	fragments []string
	assets    map[string]asset
}

type asset struct {
	kind, tag string
	body      []byte
}

// kinds are the assets with their types.
func kinds() map[string]string {
	return map[string]string{
		"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	}
}

// New reads the templates that match the pattern. Base is the page's path, such as
// /status; the assets are below it. Fragments are the templates that Live sends, and
// stand in the page in elements whose data-fragment is their name. Beside the
// templates there are "chart", which takes a Chart, and the function asset, which
// gives the address of style.css, live.js or icon.svg.
func New(base string, files fs.FS, pattern string, fragments ...string) (*Set, error) {
	s := &Set{base: strings.TrimSuffix(base, "/"), fragments: fragments, assets: map[string]asset{}}
	for name, kind := range kinds() {
		body, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if name == "style.css" {
			body = append([]byte(baseStyle), body...)
		}
		s.assets[name] = asset{kind: kind, tag: short(body), body: body}
	}
	t := template.New("").Funcs(template.FuncMap{"asset": s.address})
	t, err := t.ParseFS(assets, "assets/*.html")
	if err == nil {
		t, err = t.ParseFS(files, pattern)
	}
	if err != nil {
		return nil, fmt.Errorf("read the page's templates: %w", err)
	}
	s.templates = t
	return s, nil
}

func short(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// address names an asset in the form that it has in this version of the program.
func (s *Set) address(name string) (string, error) {
	a, ok := s.assets[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %q", name)
	}
	return path.Join(s.base, name) + "?v=" + a.tag, nil
}

// Assets registers the style sheet, the script and the icon. They are the same for
// everybody and hold nothing of what the page shows.
func (s *Set) Assets(mux *http.ServeMux) {
	for name, a := range s.assets {
		mux.HandleFunc("GET "+path.Join(s.base, name), func(w http.ResponseWriter, r *http.Request) {
			Secure(w.Header())
			w.Header().Set("Content-Type", a.kind)
			if r.URL.Query().Get("v") == a.tag {
				w.Header().Set("Cache-Control", "private, max-age=86400")
			}
			_, _ = w.Write(a.body) // a browser that left needs no style
		})
	}
}

// Whole answers with a template.
func (s *Set) Whole(w http.ResponseWriter, status int, name string, view any) error {
	var b bytes.Buffer
	if err := s.templates.ExecuteTemplate(&b, name, view); err != nil {
		http.Error(w, "the page cannot be written", http.StatusInternalServerError)
		return fmt.Errorf("write the page: %w", err)
	}
	Secure(w.Header())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a browser that left needs no page
	return nil
}

// fragment is a part of the page, and a word that is another for other content.
type fragment struct {
	Tag  string `json:"tag"`
	HTML string `json:"html"`
}

// Live answers with the fragments, less those that the browser has: their tags stand
// in the parameter `have`, separated by commas. Those named in without are not on
// this visitor's page.
func (s *Set) Live(w http.ResponseWriter, r *http.Request, view any, without ...string) error {
	have := map[string]bool{}
	for tag := range strings.SplitSeq(r.URL.Query().Get("have"), ",") {
		have[tag] = true
	}
	fresh := map[string]fragment{}
	for _, name := range s.fragments {
		if slices.Contains(without, name) {
			continue
		}
		var b bytes.Buffer
		if err := s.templates.ExecuteTemplate(&b, name, view); err != nil {
			http.Error(w, "the page cannot be written", http.StatusInternalServerError)
			return fmt.Errorf("write a part of the page: %w", err)
		}
		if tag := short(b.Bytes()); !have[tag] {
			fresh[name] = fragment{Tag: tag, HTML: b.String()}
		}
	}
	body, err := json.Marshal(map[string]any{"version": s.assets["live.js"].tag + s.assets["style.css"].tag, "fragments": fresh})
	if err != nil {
		return fmt.Errorf("write a part of the page: %w", err)
	}
	Secure(w.Header())
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a browser that left needs no parts
	return nil
}
