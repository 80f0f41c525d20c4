package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color/palette"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
	"slices"
	"sync"
	"time"

	"karui/internal/sample"
)

// changing is a picture of the origin that is exchanged for another one now and then,
// as a shop does under the same name. Every version has a size of its own, by which a
// variant shows what it was made of.
type changing struct {
	id, mediaType string
	// folder is the last one of its paths. What lies in agingFolder is never purged.
	folder string
	draw   func(number int) (*original, error)
	// keeps is how long caches may answer with a version after the origin has another
	// one, if nobody purges.
	keeps time.Duration

	mu       sync.Mutex
	versions []*version
	purged   []purgeMark
}

// version is one state of a changing picture.
type version struct {
	*original
	number int
	size   image.Point
	// replaced is when the origin had another one, zero for the present one.
	replaced time.Time
}

// purgeMark says what a purge has ended.
type purgeMark struct {
	// Requests that begin after at must not get a version with a number below.
	at    time.Time
	below int
	// direct is whether that holds only for those that ask karui itself, since the edge
	// has not been purged yet.
	direct bool
}

const (
	turningFolder = "turning/"
	agingFolder   = "aging/"
)

// Lifetimes that the run's configuration gives karui, and what they come to.
const (
	shortTTL = time.Second
	longTTL  = 10 * time.Second
	staleTTL = 8 * time.Second
	// underWay is how old an answer may have become between karui's look into its cache
	// and its way through the edge: the edge's timeouts, and a busy machine.
	underWay = 5 * time.Second
)

// manner is how the origin speaks of a changing picture.
type manner struct {
	extension, cacheControl string
	// keeps is the lifetime that cacheControl means.
	keeps time.Duration
	// strict forbids to answer with it once it is stale.
	strict    bool
	tag, date bool
	weak      bool
	folder    string
}

// manners are lifetimes and validators in the ways in which origins mix them. A long
// lifetime makes a purge the only way to a new picture.
var manners = []manner{
	{extension: ".jpg", cacheControl: "max-age=600", keeps: 600 * time.Second, tag: true, folder: turningFolder},
	{extension: ".png", cacheControl: "public, max-age=600", keeps: 600 * time.Second, date: true, folder: turningFolder},
	{extension: ".jpg", cacheControl: "max-age=600", keeps: 600 * time.Second, folder: turningFolder},
	{extension: ".gif", cacheControl: "max-age=600", keeps: 600 * time.Second, tag: true, date: true, folder: turningFolder},
	{extension: ".jpg", cacheControl: "max-age=2", keeps: 2 * time.Second, tag: true, weak: true, folder: turningFolder},
	{extension: ".jpg", keeps: longTTL, date: true, folder: turningFolder},
	{extension: ".jpg", cacheControl: "max-age=2", keeps: 2 * time.Second, tag: true, folder: agingFolder},
	{extension: ".png", cacheControl: "no-cache", strict: true, tag: true, weak: true, folder: agingFolder},
	{extension: ".jpg", cacheControl: "max-age=3, must-revalidate", keeps: 3 * time.Second, strict: true, date: true, folder: agingFolder},
	{extension: ".jpg", keeps: longTTL, tag: true, date: true, folder: agingFolder},
}

// newChanging makes one changing picture of each manner.
func newChanging() ([]*changing, error) {
	photo, err := jpeg.Decode(bytes.NewReader(sample.Photo()))
	if err != nil {
		return nil, fmt.Errorf("decode the sample photo: %w", err)
	}
	var out []*changing
	for i, m := range manners {
		c := &changing{id: fmt.Sprintf("changing-%d%s", i, m.extension), folder: m.folder, keeps: m.keeps + shortTTL + underWay}
		if !m.strict {
			c.keeps += staleTTL
		}
		c.draw = func(number int) (*original, error) { return drawVersion(photo, c.id, m, i, number) }
		if err := c.change(); err != nil {
			return nil, err
		}
		c.mediaType = c.versions[0].mediaType
		out = append(out, c)
	}
	return out, nil
}

// versionSize is that of a version, the same for no two of the first 10,000.
func versionSize(number int) image.Point { return image.Pt(100+number%100, 80+number/100%100) }

// drawVersion is a part of the photo that no other version shows. Each seventh is a
// file whose end is missing, of which there must be no variant.
func drawVersion(photo image.Image, id string, m manner, file, number int) (*original, error) {
	size, whole := versionSize(number), photo.Bounds()
	at := whole.Min.Add(image.Pt((file*53+number*37)%(whole.Dx()-size.X), (file*29+number*61)%(whole.Dy()-size.Y)))
	rect := image.Rectangle{Max: size}
	var img draw.Image = image.NewRGBA(rect)
	if m.extension == ".gif" {
		img = image.NewPaletted(rect, palette.Plan9)
	}
	draw.Draw(img, rect, photo, at, draw.Src)
	var b bytes.Buffer
	var err error
	mediaType := "image/jpeg"
	switch m.extension {
	case ".png":
		mediaType, err = "image/png", png.Encode(&b, img)
	case ".gif":
		mediaType, err = "image/gif", gif.Encode(&b, img, nil)
	default:
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: 90})
	}
	if err != nil {
		return nil, fmt.Errorf("draw version %d of %s: %w", number, id, err)
	}
	body := b.Bytes()
	if number%7 == 6 {
		body = body[:len(body)*7/10]
	}
	o := &original{name: fmt.Sprintf("drawn/version %d", number), id: id, body: body, mediaType: mediaType, header: http.Header{"Content-Type": {mediaType}}}
	if m.cacheControl != "" {
		o.header.Set("Cache-Control", m.cacheControl)
	}
	if m.tag {
		tag := fmt.Sprintf(`"version-%d"`, number)
		if m.weak {
			tag = "W/" + tag
		}
		o.header.Set("ETag", tag)
	}
	if m.date {
		o.modified = time.Date(2025, 3, 1, 12, number, 0, 0, time.UTC)
	}
	return o, nil
}

// change gives the origin another version, which holds when it returns.
func (c *changing) change() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := len(c.versions)
	o, err := c.draw(number)
	if err != nil {
		return err
	}
	if number > 0 {
		c.versions[number-1].replaced = time.Now()
	}
	c.versions = append(c.versions, &version{original: o, number: number, size: versionSize(number)})
	return nil
}

// present is what the origin has now.
func (c *changing) present() *version {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.versions[len(c.versions)-1]
}

// all are the versions so far, the newest first.
func (c *changing) all() []*version {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.versions)
	slices.Reverse(out)
	return out
}

// since is how long the origin has had the present version.
func (c *changing) since(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.versions); n > 1 {
		return now.Sub(c.versions[n-2].replaced)
	}
	return time.Hour
}

// purging is called before a purge is asked for, and done when karui has purged
// (direct), and when the purge is complete.
func (c *changing) purging() (done func(at time.Time, direct bool)) {
	below := c.present().number
	return func(at time.Time, direct bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.purged = append(c.purged, purgeMark{at, below, direct})
	}
}

// tooOld says why a request that began at a time must not get a version, "" if it may.
// Direct ones ask karui itself. aged is whether that is for its age alone, without a
// purge.
func (c *changing) tooOld(v *version, began time.Time, direct bool) (why string, aged bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.purged {
		if v.number < p.below && began.After(p.at) && (direct || !p.direct) {
			return fmt.Sprintf("version %d, asked for %v after a purge of all below %d was complete", v.number, began.Sub(p.at).Round(time.Millisecond), p.below), false
		}
	}
	if age := began.Sub(v.replaced); !v.replaced.IsZero() && age > c.keeps {
		return fmt.Sprintf("version %d, asked for %v after the origin had another one; caches may keep it for %v", v.number, age.Round(time.Millisecond), c.keeps), true
	}
	return "", false
}

// path is a path of the picture in one of the two folders of the site.
func (c *changing) path(site string) string { return site + c.folder + c.id }
