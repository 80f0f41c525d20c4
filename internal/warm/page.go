package warm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

// page is what an HTML page says, as references against base.
type page struct {
	// base is the page's own <base href>, empty for none.
	base   string
	images []string
}

// maxPageImages bounds the images of one page.
const maxPageImages = 20_000

// parsePage finds the images that a browser would load for a page, and those that
// its metadata names. It returns what it read together with the error that stopped it.
func parsePage(body []byte, contentType string) (page, error) {
	utf8, err := charset.NewReader(bytes.NewReader(body), contentType)
	if err != nil {
		return page{}, fmt.Errorf("read its character set: %w", err)
	}
	var p page
	err = p.read(utf8, true)
	return p, err
}

func (p *page) read(r io.Reader, outer bool) error {
	z := html.NewTokenizer(r)
	// Nothing bounds a single token: scripts within pages are large, and the page as a
	// whole is bounded.
	hidden := false // within a noscript, whose text is markup to whoever runs no script
	for {
		switch z.Next() {
		case html.ErrorToken:
			if err := z.Err(); !errors.Is(err, io.EOF) {
				return fmt.Errorf("read HTML: %w", err)
			}
			return nil
		case html.TextToken:
			if hidden && outer {
				if err := p.read(bytes.NewReader(bytes.Clone(z.Raw())), false); err != nil {
					return err
				}
			}
		case html.EndTagToken:
			hidden = false
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			hidden = t.Data == "noscript"
			p.tag(t)
			if len(p.images) > maxPageImages {
				return fmt.Errorf("it has more than %d images", maxPageImages)
			}
		}
	}
}

// tag takes what one tag says.
func (p *page) tag(t html.Token) {
	a := attributes{}
	for _, attr := range t.Attr {
		if _, twice := a[attr.Key]; !twice { // the first counts
			a[attr.Key] = attr.Val
		}
	}
	switch t.Data {
	case "base":
		if href, ok := a["href"]; ok && p.base == "" {
			p.base = href
		}
	case "img":
		p.add(a["src"])
		p.add(sourceSet(a["srcset"])...)
	case "source":
		p.add(sourceSet(a["srcset"])...)
	case "input":
		if strings.EqualFold(a["type"], "image") {
			p.add(a["src"])
		}
	case "video":
		p.add(a["poster"])
	case "image": // of SVG
		p.add(a["href"], a["xlink:href"])
	case "link":
		p.link(a)
	case "meta":
		if a.isImage() {
			p.add(a["content"])
		}
	}
	p.add(cssURLs(a["style"])...)
}

func (p *page) link(a attributes) {
	rel := strings.Fields(strings.ToLower(a["rel"]))
	switch {
	case slices.Contains(rel, "preload") && strings.EqualFold(a["as"], "image"):
		p.add(a["href"])
		p.add(sourceSet(a["imagesrcset"])...)
	case slices.Contains(rel, "icon"), slices.Contains(rel, "apple-touch-icon"), slices.Contains(rel, "image_src"):
		p.add(a["href"])
	}
}

// attributes are those of one tag.
type attributes map[string]string

// isImage tells whether a meta tag's content is the address of an image.
func (a attributes) isImage() bool {
	name := a["property"]
	if name == "" {
		name = a["name"]
	}
	switch strings.ToLower(name) {
	case "og:image", "og:image:url", "og:image:secure_url", "twitter:image", "twitter:image:src":
		return true
	}
	return false
}

// add takes references, but for those that hold their image in themselves.
func (p *page) add(references ...string) {
	for _, r := range references {
		if r = strings.TrimSpace(r); r != "" && len(r) <= maxAddress {
			p.images = append(p.images, r)
		}
	}
}
