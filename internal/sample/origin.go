// Package sample draws a few images and serves them as the origin of a site that
// does not exist, so that karui can be tried without one.
//
// The images are the same, byte for byte, in every process built with the same
// version of Go, and look like what real sites have: a photograph, a logo with
// transparency, a screenshot and an animation. They are drawn on first use, which
// takes less than a second, and kept.
package sample

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"sync"
	"time"
)

// Paths of the images.
const (
	PhotoPath      = "/photo.jpg"
	LogoPath       = "/logo.png"
	ScreenshotPath = "/screenshot.png"
	AnimationPath  = "/animation.gif"
)

// File is one file of the origin.
type File struct {
	Path        string
	ContentType string
	Title       string
	Body        []byte
	etag        string
}

// Origin is an http.Handler with the images, and a page that shows them at "/".
type Origin struct {
	files func() []File
	page  func() []byte
}

// New makes an origin; nothing is drawn yet.
func New() *Origin {
	o := &Origin{files: sync.OnceValue(drawAll)}
	o.page = sync.OnceValue(func() []byte { return index(o.files()) })
	return o
}

// Files gives all images.
func (o *Origin) Files() []File { return o.files() }

func drawAll() []File {
	drawings := []struct {
		path, contentType, title string
		draw                     func() []byte
	}{
		{PhotoPath, "image/jpeg", "A photograph", Photo},
		{LogoPath, "image/png", "A logo with transparency", Logo},
		{ScreenshotPath, "image/png", "A screenshot", Screenshot},
		{AnimationPath, "image/gif", "An animation", Animation},
	}
	files := make([]File, len(drawings))
	var all sync.WaitGroup
	for i, d := range drawings {
		all.Go(func() {
			body := d.draw()
			sum := sha256.Sum256(body)
			files[i] = File{
				Path: d.path, ContentType: d.contentType, Title: d.title, Body: body,
				etag: `"` + hex.EncodeToString(sum[:8]) + `"`,
			}
		})
	}
	all.Wait()
	return files
}

// modified is what the origin says about all its files.
func modified() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// ServeHTTP answers GET and HEAD with validators, lengths and ranges.
func (o *Origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == "/" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		http.ServeContent(w, r, "", modified(), bytes.NewReader(o.page()))
		return
	}
	for _, f := range o.files() {
		if f.Path == r.URL.Path {
			w.Header().Set("Content-Type", f.ContentType)
			w.Header().Set("ETag", f.etag)
			http.ServeContent(w, r, "", modified(), bytes.NewReader(f.Body))
			return
		}
	}
	http.NotFound(w, r)
}

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>karui: sample origin</title>
<meta name="viewport" content="width=device-width">
<style>body{font:1rem/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem;background:#e8eef2}img{max-width:100%}</style>
<h1>Sample origin</h1>
<p>The addresses end in .jpg, .png and .gif; what arrives may be lighter.</p>
{{range .}}<h2>{{.Title}}</h2>
<p><a href="{{.Path}}">{{.Path}}</a>, {{.Size}} as the origin has it</p>
<img src="{{.Path}}" alt="{{.Title}}">
{{end}}</html>
`

func index(files []File) []byte {
	type entry struct{ Title, Path, Size string }
	entries := make([]entry, len(files))
	for i, f := range files {
		entries[i] = entry{f.Title, f.Path, fmt.Sprintf("%d kB", (len(f.Body)+500)/1000)}
	}
	var b bytes.Buffer
	if err := template.Must(template.New("page").Parse(page)).Execute(&b, entries); err != nil {
		panic("sample: the page: " + err.Error()) // the template and its data are both fixed
	}
	return b.Bytes()
}
