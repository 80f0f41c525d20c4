package convert

import (
	"fmt"
	"math"

	"github.com/davidbyttow/govips/v2/vips"

	"karui/convert/header"
)

// look decodes a picture for [Pool.Look]. Bytes of the result is the size of the pixels.
func (e *engine) look(j job, source []byte) (result, []byte) {
	before := e.warnings.Load()
	pix, w, h, shrunk, err := e.shown(j, source)
	if err != nil || e.warnings.Load() != before {
		forget()
	}
	if err != nil {
		return result{ID: j.ID, Code: DecodeFailed, Reason: tidy(err)}, nil
	}
	return result{ID: j.ID, Code: Converted, Width: w, Height: h, Frames: 1, Shrunk: shrunk, Bytes: int64(len(pix))}, pix
}

func (e *engine) shown(j job, source []byte) (pix []byte, w, h int, shrunk bool, err error) {
	img, err := open(j, source)
	if err != nil {
		return nil, 0, 0, false, err
	}
	defer img.Close()
	if err := plainRGB(img, j.Info, j.Look.Format); err != nil {
		return nil, 0, 0, false, err
	}
	// First of all, so that pictures with and without go the same way to the last bit.
	if !img.HasAlpha() {
		if err := img.AddAlpha(); err != nil {
			return nil, 0, 0, false, err
		}
	}
	if n := float64(img.Width()) * float64(img.Height()); n > float64(j.Look.MaxPixels) {
		if err := shrink(img, j.Look.MaxPixels); err != nil {
			return nil, 0, 0, false, err
		}
		shrunk = true
	}
	if img.Bands() != 4 || img.BandFormat() != vips.BandFormatUchar {
		return nil, 0, 0, false, fmt.Errorf("%d bands of the kind %d where 4 bytes are expected", img.Bands(), img.BandFormat())
	}
	w, h = img.Width(), img.Height()
	if w*h > j.Look.MaxPixels {
		return nil, 0, 0, false, fmt.Errorf("%d x %d px, and at most %d may be shown", w, h, j.Look.MaxPixels)
	}
	pix, err = img.ToBytes()
	return pix, w, h, shrunk, err
}

// open gives the first frame of an original, the right way up, or of a variant.
func open(j job, source []byte) (*vips.ImageRef, error) {
	switch f := j.Look.Format; f {
	case header.JPEG:
		whole, err := prepareJPEG(source, j.Info.Orientation, needsProfile(j.Info))
		if err != nil {
			return nil, err
		}
		return load(whole, f, func(p *vips.ImportParams) { p.AutoRotate.Set(true) })
	case header.PNG:
		return loadPNG(preparePNG(source, j.Info.Orientation, needsProfile(j.Info)), j.Info.Orientation != 1)
	default:
		return load(source, f, func(*vips.ImportParams) {})
	}
}

// plainRGB makes pixels sRGB of 8 bits, with or without alpha. A variant keeps the profile that its pixels need, and
// has none otherwise.
func plainRGB(img *vips.ImageRef, info header.Info, format header.Format) error {
	profile := img.HasICCProfile()
	if format.Convertible() {
		icc, err := settleColor(img, info)
		if err != nil {
			return err
		}
		profile = icc != nil
	}
	if profile {
		if err := img.TransformICCProfileWithFallback("srgb", "srgb"); err != nil {
			return err
		}
	}
	if img.Interpretation() != vips.InterpretationSRGB || img.BandFormat() != vips.BandFormatUchar {
		return img.ToColorSpace(vips.InterpretationSRGB)
	}
	return nil
}

// shrink makes a picture smaller, to at most so many pixels. What is transparent does not colour its surroundings.
func shrink(img *vips.ImageRef, most int) error {
	if err := img.PremultiplyAlpha(); err != nil {
		return err
	}
	w, h := img.Width(), img.Height()
	scale := math.Sqrt(float64(most) / (float64(w) * float64(h)))
	nw, nh := max(1, int(float64(w)*scale)), max(1, int(float64(h)*scale))
	if nw == 1 || nh == 1 { // a thread: its length alone must fit
		nw, nh = min(nw, most), min(nh, most)
	}
	if err := img.ResizeWithVScale(float64(nw)/float64(w), float64(nh)/float64(h), vips.KernelCubic); err != nil {
		return err
	}
	return img.UnpremultiplyAlpha()
}
