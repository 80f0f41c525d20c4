package warm

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html/charset"
)

// entry is one <url> of a sitemap.
type entry struct {
	loc    string
	images []string
}

// sitemap is what one document says.
type sitemap struct {
	// entries are the pages of a sitemap, others the sitemaps of an index.
	entries []entry
	others  []string
}

// maxDepth bounds the nesting of a sitemap's elements: a parser remembers them all.
const maxDepth = 32

// maxEntries bounds the entries of one document; the protocol allows 50,000.
const maxEntries = 200_000

// parseSitemap reads a sitemap, an index of sitemaps, or the plain text that the
// protocol allows as well. It returns what it read together with the error that
// stopped it. Entities of the document's own are never expanded.
func parseSitemap(body []byte) (sitemap, error) {
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(trimmed) == 0 {
		return sitemap{}, errors.New("it is empty")
	}
	// A document in UTF-16 begins with its mark.
	if c := trimmed[0]; c != '<' && c != 0xfe && c != 0xff {
		lines, err := parseList(trimmed)
		var s sitemap
		for _, line := range lines {
			s.entries = append(s.entries, entry{loc: line})
		}
		return s, err
	}
	p := sitemapParser{}
	d := xml.NewDecoder(bytes.NewReader(trimmed))
	d.CharsetReader = charset.NewReaderLabel
	if trimmed[0] != '<' {
		utf8, err := charset.NewReader(bytes.NewReader(trimmed), "text/xml")
		if err != nil {
			return sitemap{}, err
		}
		d = xml.NewDecoder(utf8)
		// What the declaration says was true before the bytes were rewritten.
		d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	}
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && !p.any:
			return p.out, errors.New("it is no sitemap: its first element is neither urlset nor sitemapindex")
		case errors.Is(err, io.EOF):
			return p.out, nil
		case err != nil:
			return p.out, fmt.Errorf("read XML: %w", err)
		}
		if err := p.take(token); err != nil {
			return p.out, err
		}
	}
}

// sitemapParser collects what the tokens of a document say.
type sitemapParser struct {
	out   sitemap
	any   bool
	path  []string // names of the open elements
	entry entry
	text  strings.Builder
	taken int
}

func (p *sitemapParser) take(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		if len(p.path) == 0 {
			if t.Name.Local != "urlset" && t.Name.Local != "sitemapindex" {
				return fmt.Errorf("it is no sitemap: its first element is %q", cut(t.Name.Local, 40))
			}
			p.any = true
		}
		if len(p.path) >= maxDepth {
			return fmt.Errorf("its elements are nested more than %d deep", maxDepth)
		}
		name := t.Name.Local
		if strings.Contains(t.Name.Space, "image") {
			name = "image:" + name
		} else if t.Name.Space != "" && !strings.Contains(t.Name.Space, "sitemap") {
			name = "other:" + name // videos, news, other languages
		}
		p.path = append(p.path, name)
		p.text.Reset()
		if name == "url" {
			p.entry = entry{}
		}
	case xml.CharData:
		if p.text.Len()+len(t) <= maxAddress {
			p.text.Write(t)
		}
	case xml.EndElement:
		return p.end()
	}
	return nil
}

// end closes the innermost element.
func (p *sitemapParser) end() error {
	text := strings.TrimSpace(p.text.String())
	p.text.Reset()
	within := strings.Join(p.path, "/")
	p.path = p.path[:len(p.path)-1]
	switch within {
	case "urlset/url/loc":
		p.entry.loc = text
		return p.count()
	case "urlset/url/image:image/image:loc":
		p.entry.images = append(p.entry.images, text)
		return p.count()
	case "urlset/url":
		if p.entry.loc != "" || len(p.entry.images) > 0 {
			p.out.entries = append(p.out.entries, p.entry)
		}
	case "sitemapindex/sitemap/loc":
		p.out.others = append(p.out.others, text)
		return p.count()
	}
	return nil
}

func (p *sitemapParser) count() error {
	if p.taken++; p.taken > maxEntries {
		return fmt.Errorf("it has more than %d addresses", maxEntries)
	}
	return nil
}

// cut bounds text for a message.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
