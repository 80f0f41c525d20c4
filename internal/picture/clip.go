package picture

import (
	"image"
	"image/color"
	"image/draw"
	"strconv"
)

// Clip is a decoded picture: one frame for a still one.
type Clip struct {
	Frames []Frame
	// Plays is how often it is shown, 0 for ever; it says nothing about a still picture.
	Plays int
	// Profile is an embedded colour profile, EXIF and XMP embedded metadata.
	Profile, EXIF, XMP []byte
}

// Frame is one picture of an animation, whole, and how long it says it is shown.
type Frame struct {
	Image        *image.NRGBA
	Milliseconds int
}

// Size is that of the canvas in pixels.
func (c Clip) Size() image.Point { return c.Frames[0].Image.Bounds().Size() }

// shownFor is how long a frame is shown: browsers take delays of 10 ms and less for 100 ms.
func (f Frame) shownFor() int {
	if f.Milliseconds <= 10 {
		return 100
	}
	return f.Milliseconds
}

// total is how long one round of an animation takes, in ms.
func (c Clip) total() (ms int) {
	for _, f := range c.Frames {
		ms += f.shownFor()
	}
	return ms
}

// at is the frame that shows so many ms after the start.
func (c Clip) at(ms int) *image.NRGBA {
	for _, f := range c.Frames {
		if ms < f.shownFor() {
			return f.Image
		}
		ms -= f.shownFor()
	}
	return c.Frames[len(c.Frames)-1].Image
}

// ToNRGBA copies a picture into 8 bit samples without premultiplied alpha.
func ToNRGBA(img image.Image) *image.NRGBA {
	b := img.Bounds()
	out := image.NewNRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	if _, deep := img.(*image.NRGBA64); deep {
		// draw.Draw would go through premultiplied samples and lose what is transparent.
		for y := range b.Dy() {
			for x := range b.Dx() {
				out.SetNRGBA(x, y, color.NRGBAModel.Convert(img.At(b.Min.X+x, b.Min.Y+y)).(color.NRGBA))
			}
		}
		return out
	}
	draw.Draw(out, out.Rect, img, b.Min, draw.Src)
	return out
}

// Upright applies an EXIF orientation.
func Upright(img *image.NRGBA, orientation int) *image.NRGBA {
	if orientation == 1 {
		return img
	}
	w, h := img.Rect.Dx(), img.Rect.Dy()
	out := image.NewNRGBA(image.Rect(0, 0, w, h))
	if orientation >= 5 {
		out = image.NewNRGBA(image.Rect(0, 0, h, w))
	}
	for y := range h {
		for x := range w {
			var tx, ty int
			switch orientation {
			case 2:
				tx, ty = w-1-x, y
			case 3:
				tx, ty = w-1-x, h-1-y
			case 4:
				tx, ty = x, h-1-y
			case 5:
				tx, ty = y, x
			case 6:
				tx, ty = h-1-y, x
			case 7:
				tx, ty = h-1-y, w-1-x
			case 8:
				tx, ty = y, w-1-x
			default:
				panic("orientation " + strconv.Itoa(orientation))
			}
			copy(out.Pix[out.PixOffset(tx, ty):][:4], img.Pix[img.PixOffset(x, y):][:4])
		}
	}
	return out
}
