package warm

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"strings"
)

// SourceKind says how a source is read.
type SourceKind string

// The kinds of sources.
const (
	Sitemap SourceKind = "sitemap"
	Page    SourceKind = "page"
	List    SourceKind = "list"
)

// Source is where images are named: a URL of HTTP, a file, or - for the standard
// input.
type Source struct {
	Kind SourceKind
	Name string
}

// String names the source, for the state file and messages.
func (s Source) String() string { return string(s.Kind) + " " + s.Name }

// url tells whether the source is fetched, and from where.
func (s Source) url() (address, bool) {
	if lower := strings.ToLower(cut(s.Name, 8)); !strings.HasPrefix(lower, "http://") && !strings.HasPrefix(lower, "https://") {
		return address{}, false
	}
	return resolve(address{}, s.Name)
}

// sink takes what a walk finds. Its methods may wait.
type sink interface {
	// image takes the target of an image that a sitemap or a list names.
	image(target string)
	// page takes the targets of all images of a page.
	page(url string, targets []string)
	// known gives the images of a page that an earlier run read not long ago.
	known(url string) (targets []string, ok bool)
	// notes count what is not asked for.
	note(foreign, leftOut int)
	// documents counts what was read.
	documents(sitemaps, pages int)
	// failed takes a document that could not be read.
	failed(name string, err error)
	// dead takes a page that a sitemap names and that does not exist.
	dead(name string, err error)
	// full tells whether no further images are taken.
	full() bool
}

// walk finds the images of a site. It is good for one run.
type walk struct {
	fetch  *fetcher
	scope  *Scope
	limits Limits
	// pages is whether the pages that a sitemap names are read.
	pages bool
	stdin io.Reader
	// wait waits for the turn of one request.
	wait func(context.Context) error
	sink sink

	sitemaps, read int
	bytes          int64
	addresses      int
	// seen are the sitemaps and pages, by what names them in memory of a fixed size. Only
	// what is within the limits comes into it.
	seen map[uint64]bool
	seed maphash.Seed
}

// first tells whether an address was not seen before.
func (w *walk) first(from address) bool { return !w.seen[maphash.Comparable(w.seed, from)] }

// saw remembers an address.
func (w *walk) saw(from address) { w.seen[maphash.Comparable(w.seed, from)] = true }

// run goes through the sources. It returns only the error of ctx: what cannot be read
// is told to the sink.
func (w *walk) run(ctx context.Context, sources []Source) error {
	w.seen, w.seed = map[uint64]bool{}, maphash.MakeSeed()
	for _, s := range sources {
		if err := w.source(ctx, s); err != nil && ctx.Err() == nil {
			w.sink.failed(s.Name, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// source reads what the caller named.
func (w *walk) source(ctx context.Context, s Source) error {
	from, fetched := s.url()
	most := w.limits.Sitemap
	if s.Kind == Page {
		most = w.limits.Page
	}
	var d document
	var err error
	switch {
	case fetched && s.Kind == Sitemap:
		return w.sitemap(ctx, from, 0)
	case fetched && s.Kind == Page:
		return w.page(ctx, from, true)
	case fetched:
		d, err = w.load(ctx, from, most)
	case s.Name == "-":
		d.body, err = readBounded(w.stdin, most)
	default:
		d.body, err = readFile(s.Name, most)
	}
	if err != nil {
		return err
	}
	if !fetched {
		// What lies in a file is read as if it lay at the site's root.
		d.from = w.scope.root()
	}
	switch s.Kind {
	case Sitemap:
		return w.readSitemap(ctx, d, 0)
	case Page:
		_, err := w.readPage(d)
		return err
	default:
		lines, err := parseList(d.body)
		w.addresses += len(lines)
		for _, line := range lines {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			w.one(d.from, line)
		}
		return err
	}
}

// load fetches one document at its turn.
func (w *walk) load(ctx context.Context, from address, most int64) (document, error) {
	switch {
	case w.bytes >= w.limits.Bytes:
		return document{}, fmt.Errorf("it was not read: all documents together have over %d bytes", w.limits.Bytes)
	case w.addresses >= w.limits.Addresses:
		return document{}, fmt.Errorf("it was not read: all documents together name over %d addresses", w.limits.Addresses)
	}
	if err := w.wait(ctx); err != nil {
		return document{}, err
	}
	d, err := w.fetch.get(ctx, from, most)
	w.bytes += int64(len(d.body))
	return d, err
}

// errForeign is about a document that would have to be fetched from elsewhere.
var errForeign = errors.New("it is on none of the site's hosts: name it on the command line, or add its host with --host")

func (w *walk) sitemap(ctx context.Context, from address, depth int) error {
	switch {
	case !w.scope.mayFetch(from):
		return errForeign
	case !w.first(from):
		return nil
	case depth > w.limits.Depth:
		return fmt.Errorf("it is more than %d sitemaps deep", w.limits.Depth)
	case w.sitemaps >= w.limits.Sitemaps:
		return fmt.Errorf("it is one of more than %d sitemaps", w.limits.Sitemaps)
	}
	w.saw(from)
	w.sitemaps++
	d, err := w.load(ctx, from, w.limits.Sitemap)
	if err != nil {
		return err
	}
	return w.readSitemap(ctx, d, depth)
}

// readSitemap takes the images of a sitemap, of its pages, and of the sitemaps that
// it names.
func (w *walk) readSitemap(ctx context.Context, d document, depth int) error {
	s, failure := parseSitemap(d.body)
	if failure == nil || len(s.entries)+len(s.others) > 0 {
		w.sink.documents(1, 0)
	}
	d.body = nil // it may be long until the sitemaps below it are read
	w.addresses += len(s.others)
	for _, e := range s.entries {
		w.addresses += 1 + len(e.images)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.entry(ctx, d.from, e)
	}
	s.entries = nil
	for _, name := range s.others {
		a, ok := resolve(d.from, name)
		if !ok {
			w.sink.failed(cut(name, 200), errors.New("it is no address of a sitemap"))
			continue
		}
		if err := w.sitemap(ctx, a, depth+1); err != nil && ctx.Err() == nil {
			w.sink.failed(a.String(), err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return failure
}

// entry takes one <url>: the images that it names, or those of its page.
func (w *walk) entry(ctx context.Context, base address, e entry) {
	for _, name := range e.images {
		w.one(base, name)
	}
	if e.loc == "" {
		return
	}
	a, ok := resolve(base, e.loc)
	if !ok {
		w.sink.note(0, 1)
		return
	}
	if _, kind := w.scope.image(a); kind == ownImage && !w.scope.Extensionless {
		w.one(base, e.loc)
		return
	}
	if len(e.images) > 0 || !w.pages || w.sink.full() {
		return
	}
	switch err := w.page(ctx, a, false); {
	case ctx.Err() != nil:
	case errors.Is(err, errForeign):
		w.sink.note(1, 0)
	case gone(err):
		w.sink.dead(a.String(), err)
	case err != nil:
		w.sink.failed(a.String(), err)
	}
}

// page takes the images of the page at an address. What an earlier run read is not read
// again, but for the pages that the caller named.
func (w *walk) page(ctx context.Context, from address, named bool) error {
	if !w.scope.mayFetch(from) {
		return errForeign
	}
	if !w.first(from) {
		return nil
	}
	url := from.String()
	if targets, ok := w.sink.known(url); ok && !named {
		w.saw(from)
		w.sink.page(url, targets)
		return nil
	}
	if w.read >= w.limits.Pages {
		return fmt.Errorf("it is one of more than %d pages", w.limits.Pages)
	}
	w.saw(from)
	w.read++
	d, err := w.load(ctx, from, w.limits.Page)
	if err != nil {
		return err
	}
	targets, err := w.readPage(d)
	if err == nil {
		w.sink.page(url, targets)
	}
	return err
}

// readPage takes the images of a page. Those of a page that was read to its end are
// returned, too.
func (w *walk) readPage(d document) ([]string, error) {
	if !isHTML(d) {
		w.sink.documents(0, 1)
		return nil, nil
	}
	p, failure := parsePage(d.body, d.contentType)
	w.addresses += len(p.images)
	w.sink.documents(0, 1)
	base := d.from
	if p.base != "" {
		if a, ok := resolve(d.from, p.base); ok {
			base = a
		}
	}
	var targets []string
	for _, name := range p.images {
		if target, ok := w.one(base, name); ok {
			targets = append(targets, target)
		}
	}
	return targets, failure
}

// isHTML tells whether a document that a sitemap calls a page is one: it may as well
// be a PDF.
func isHTML(d document) bool {
	t := strings.ToLower(d.contentType)
	return t == "" || strings.Contains(t, "html")
}

// one takes one reference to an image.
func (w *walk) one(base address, reference string) (target string, ok bool) {
	a, ok := resolve(base, reference)
	if !ok {
		if !strings.HasPrefix(strings.ToLower(cut(reference, 5)), "data:") {
			w.sink.note(0, 1)
		}
		return "", false
	}
	target, kind := w.scope.image(a)
	switch kind {
	case ownImage:
		w.sink.image(target)
		return target, true
	case foreign:
		w.sink.note(1, 0)
	default:
		w.sink.note(0, 1)
	}
	return "", false
}

// Readable tells early whether a source that is a file can be opened.
func (s Source) Readable() error {
	if _, fetched := s.url(); fetched || s.Name == "-" {
		return nil
	}
	info, err := os.Stat(s.Name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a folder: name a file", s.Name)
	}
	return nil
}
