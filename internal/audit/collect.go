package audit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"karui/convert/header"
	"karui/internal/batch"
	"karui/internal/warm"
)

// Item is one image of an audit.
type Item struct {
	// Name is what people know it by: an address or a path.
	Name string
	// Path leads to its bytes.
	Path string
	// Err says why there are none.
	Err error
}

// Found is what there is to audit.
type Found struct {
	Items []Item
	// LeftOut are files of folders that are not named like images, TooMany images of
	// pages that were not fetched for their number.
	LeftOut, TooMany int
	// Pages says that images are those of pages.
	Pages bool
}

// localBase stands for the folder of an HTML file: no host bears this name (RFC 6761).
const localBase = "https://folder.invalid/"

// collector gathers what the words of a command line name.
type collector struct {
	fetch  *fetcher
	limits Limits
	dir    string
	tell   func(done, all int)

	found  Found
	known  map[string]bool
	wanted []want
}

// want is an image of a page that is still to be had.
type want struct {
	item int // its place among the items
	// address is where it is; one below localBase lies in folder.
	address, folder string
}

// Collect finds the images that the words name: pages by their address or file, images
// by their address, folders and files. Images of pages are written into dir, which the
// caller takes away. Tell is told how far it has come.
//
// The error is that of ctx, or about a page that cannot be read; images that cannot be
// had are among the items, each with its error.
func Collect(ctx context.Context, words []string, limits Limits, dir string, tell func(done, all int)) (Found, error) {
	c := &collector{fetch: newFetcher(limits), limits: limits, dir: dir, tell: tell, known: map[string]bool{}}
	defer c.fetch.close()
	whole, cancel := context.WithTimeoutCause(ctx, limits.All, fmt.Errorf("not within %s, the limit for all images together", limits.All))
	defer cancel()
	var paths []string
	for _, word := range words {
		var err error
		switch {
		case IsAddress(word):
			err = c.page(whole, word)
		case isPageFile(word):
			err = c.pageFile(word)
		default:
			paths = append(paths, word)
		}
		if err != nil {
			if ctx.Err() != nil {
				return Found{}, ctx.Err()
			}
			return Found{}, fmt.Errorf("read page %s: %w", word, err)
		}
	}
	inputs, leftOut := batch.Inputs(paths)
	c.found.LeftOut = leftOut
	for _, in := range inputs {
		c.found.Items = append(c.found.Items, Item{Name: in.Path, Path: in.Path})
	}
	c.all(whole)
	return c.found, ctx.Err()
}

// IsAddress tells whether a word of the command line is an address of HTTP.
func IsAddress(word string) bool {
	lower := strings.ToLower(word[:min(len(word), 8)])
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}

// isPageFile tells whether a file is an HTML page: by its name, or by what it holds
// where it has no name of an image.
func isPageFile(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".html", ".htm", ".xhtml":
		return true
	case ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".svg":
		return false // a page under such a name is what an audit should show
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	prefix := make([]byte, 512)
	n, _ := file.Read(prefix) // a file without any is no page
	return strings.HasPrefix(http.DetectContentType(prefix[:n]), "text/html")
}

// page takes the images of the page at an address, or the image that is there.
func (c *collector) page(ctx context.Context, address string) error {
	got, err := c.fetch.get(ctx, address, "text/html,application/xhtml+xml,"+Accept, max(c.limits.Page, c.limits.Bytes))
	if err != nil {
		return err
	}
	if f := header.Sniff(got.body); f != header.Unknown || strings.HasPrefix(got.contentType, "image/") {
		at := c.add(address)
		c.found.Items[at].Path, c.found.Items[at].Err = c.store(at, got.body)
		return nil
	}
	if int64(len(got.body)) > c.limits.Page {
		return tooLarge{c.limits.Page}
	}
	return c.images(got.body, got.contentType, got.from, "")
}

// pageFile takes the images of a page that is a file: what it names relative to itself
// lies below its folder.
func (c *collector) pageFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	body, err := readAll(file, c.limits.Page)
	if err != nil {
		return err
	}
	return c.images(body, "", localBase, filepath.Dir(path))
}

// images notes the images of a page to be fetched.
func (c *collector) images(body []byte, contentType, from, folder string) error {
	names, err := warm.PageImages(body, contentType, from)
	if err != nil && len(names) == 0 {
		return err
	}
	c.found.Pages = true
	for _, address := range names {
		name := address
		if folder != "" {
			if path, local := strings.CutPrefix(address, localBase); local {
				name = filepath.Join(folder, filepath.FromSlash(unescaped(path)))
			}
		}
		switch {
		case c.known[name]:
		case len(c.wanted) >= c.limits.Images:
			c.known[name] = true
			c.found.TooMany++
		default:
			c.wanted = append(c.wanted, want{c.add(name), address, folder})
		}
	}
	return nil
}

// unescaped is the path of an address as a file's.
func unescaped(path string) string {
	path, _, _ = strings.Cut(path, "?")
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

func (c *collector) add(name string) int {
	c.known[name] = true
	c.found.Items = append(c.found.Items, Item{Name: name})
	return len(c.found.Items) - 1
}

var errTotal = errors.New("the images of the pages are larger than the limit for all together")

// all fetches what is wanted, several at a time.
func (c *collector) all(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(max(c.limits.Parallel, 1))
	var total atomic.Int64
	var telling sync.Mutex
	done := 0
	for _, w := range c.wanted {
		group.Go(func() error {
			item := &c.found.Items[w.item]
			if total.Load() >= c.limits.Total {
				item.Err = errTotal
			} else {
				body, err := c.one(ctx, w)
				if err == nil && total.Add(int64(len(body))) > c.limits.Total {
					err = errTotal
				}
				if err == nil {
					item.Path, err = c.store(w.item, body)
				}
				item.Err = err
			}
			telling.Lock()
			defer telling.Unlock()
			done++
			c.tell(done, len(c.wanted))
			return nil
		})
	}
	_ = group.Wait() // nothing fails as a whole
}

// one gets the bytes of an image.
func (c *collector) one(ctx context.Context, w want) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	path, local := strings.CutPrefix(w.address, localBase)
	if w.folder == "" || !local {
		got, err := c.fetch.get(ctx, w.address, Accept, c.limits.Bytes)
		return got.body, err
	}
	// A page must not put other files of this machine into a report.
	root, err := os.OpenRoot(w.folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	name := filepath.FromSlash(unescaped(path))
	info, err := root.Stat(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer file.Close()
	return readAll(file, c.limits.Bytes)
}

// store puts the bytes of an image where the conversion finds them.
func (c *collector) store(item int, body []byte) (string, error) {
	path := filepath.Join(c.dir, strconv.Itoa(item))
	return path, os.WriteFile(path, body, 0o600)
}

// withoutPath drops the path from an error that is shown beside it.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}
