package audit

import (
	"bytes"
	"image"
	"image/jpeg"
	"sync"

	"golang.org/x/image/draw"

	"karui/convert"
)

// picturesMost is how many images of a report have pictures. More would leave too
// little room for each.
const picturesMost = 300

// pair is the pictures of one image as they stand in the report.
type pair struct {
	before, after picture
	// preview says that both are smaller copies.
	preview bool
}

type picture struct {
	mediaType string
	body      []byte
}

// shown is one side of a pair: a file, and how it looks.
type shown struct {
	body   []byte
	format string
	view   convert.View
}

// album shares the room for pictures out: each image gets an equal share of what the
// ones before it have left, so that small pictures leave room for large ones.
type album struct {
	mu   sync.Mutex
	room int64
	left map[int]bool // the images that get pictures and had none yet
}

func newAlbum(room int64, images []int) *album {
	a := &album{room: room, left: map[int]bool{}}
	for _, i := range images {
		a.left[i] = true
	}
	return a
}

// pass gives up the share of an image that needs none.
func (a *album) pass(i int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.left, i)
}

// share is what an image may take; it is taken until give returns the rest.
func (a *album) share(i int) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.left[i] {
		return 0
	}
	share := a.room / int64(len(a.left))
	delete(a.left, i)
	a.room -= share
	return share
}

func (a *album) give(rest int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.room += rest
}

// previewSides are the sides in pixels that previews may have, the best first.
var previewSides = []int{1280, 960, 640, 400, 240}

// take makes the pair of an image: the files themselves where they have room and every
// browser shows them, else previews of both.
func (a *album) take(i int, before, after shown) pair {
	share := a.share(i)
	if share == 0 {
		return pair{}
	}
	p := fit(share, before, after)
	a.give(share - int64(len(p.before.body)+len(p.after.body)))
	return p
}

// fit chooses pictures that take at most room bytes together.
func fit(room int64, before, after shown) pair {
	if int64(len(before.body)+len(after.body)) <= room && browsersShow(before.format) && browsersShow(after.format) {
		return pair{picture{"image/" + before.format, before.body}, picture{"image/" + after.format, after.body}, false}
	}
	longest, last := max(before.view.Width, before.view.Height), 0
	for _, side := range previewSides {
		if side = min(side, longest); side == last {
			continue
		}
		last = side
		b, a := preview(before.view, side), preview(after.view, side)
		if b != nil && a != nil && int64(len(b)+len(a)) <= room {
			return pair{picture{"image/jpeg", b}, picture{"image/jpeg", a}, true}
		}
	}
	return pair{}
}

// preview makes a small JPEG. What is transparent is white in it. It is nil for what
// JPEG cannot hold.
func preview(v convert.View, side int) []byte {
	w, h := v.Width, v.Height
	if longest := max(w, h); longest > side {
		w, h = max(1, w*side/longest), max(1, h*side/longest)
	}
	from := &image.NRGBA{Pix: v.Pix, Stride: 4 * v.Width, Rect: image.Rect(0, 0, v.Width, v.Height)}
	to := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(to, to.Rect, image.White, image.Point{}, draw.Src)
	draw.CatmullRom.Scale(to, to.Rect, from, from.Rect, draw.Over, nil)
	var out bytes.Buffer
	if err := jpeg.Encode(&out, to, &jpeg.Options{Quality: 90}); err != nil {
		return nil
	}
	return out.Bytes()
}
