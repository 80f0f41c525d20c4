package convert

import (
	"errors"
	"fmt"

	"github.com/davidbyttow/govips/v2/vips"

	"karui/convert/header"
)

// losslessQuality is how hard a lossless encoder tries (0..100), not how good it looks. On the PNGs of a corpus of
// logos, screenshots and photos, 50 costs half to two thirds of the CPU time of 75 for 0 to 3 % more bytes.
const losslessQuality = 50

// encode makes a variant without any metadata but what is to be kept.
func encode(img *vips.ImageRef, j job, lossless bool, why string) (made, error) {
	icc, err := settleColor(img, j.Info)
	if err != nil {
		var no refusal
		if errors.As(err, &no) {
			return made{}, no
		}
		return made{}, refuseWith(DecodeFailed, "colours: %s", tidy(err))
	}
	var exif []byte
	if j.Plan.KeepCopyright {
		exif = copyrightEXIF(j.Artist, j.Copyright)
	}
	m := made{frames: 1, lossless: lossless, why: why}
	if j.Plan.Target == header.WebP {
		m.body, err = encodeWebP(img, j.Plan, lossless, icc, exif)
	} else {
		m.body, err = encodeHEIF(img, j.Plan, icc, exif)
	}
	return m, err
}

func encodeWebP(img *vips.ImageRef, plan Plan, lossless bool, icc, exif []byte) ([]byte, error) {
	p := vips.NewWebpExportParams()
	p.ReductionEffort = plan.Effort
	p.Lossless = lossless
	p.Quality = plan.Quality
	if lossless {
		p.Quality = losslessQuality
	}
	body, _, err := img.ExportWebp(p)
	if err != nil {
		return nil, err
	}
	f, err := parseWebP(body)
	if err != nil {
		return nil, err
	}
	f.icc, f.exif = icc, exif
	return f.bytes(), nil
}

// encodeHEIF makes an AVIF or HEIC of 8 bits. Libvips halves the resolution for colours below quality 90 of the
// encoder, as with JPEG, and leaves it whole from there on.
func encodeHEIF(img *vips.ImageRef, plan Plan, icc, exif []byte) ([]byte, error) {
	var body []byte
	var err error
	switch plan.Target {
	case header.AVIF:
		// Without a depth, libvips would be left to choose one, and govips would not pass on the effort.
		body, _, err = img.ExportAvif(&vips.AvifExportParams{
			StripMetadata: true, Quality: plan.Quality, Bitdepth: 8, Effort: plan.Effort,
		})
	case header.HEIC:
		// The effort has no effect, but must be there for the depth to be passed on.
		body, _, err = img.ExportHeif(&vips.HeifExportParams{Quality: plan.Quality, Bitdepth: 8, Effort: 1})
	default:
		err = fmt.Errorf("no encoder for %s", plan.Target)
	}
	if err != nil {
		return nil, err
	}
	f, err := parseHEIF(body, plan.Target)
	if errors.Is(err, errNoItems) {
		return nil, nothingMade(plan.Target, img.Width(), img.Height())
	}
	if err != nil {
		return nil, refuseWith(Mismatch, "%s", err)
	}
	f.icc, f.exif = icc, exif
	return f.bytes(), nil
}

// nothingMade is the refusal of an encoder that gave no error and no picture.
func nothingMade(f header.Format, width, height int) error {
	return refuseWith(EncodeFailed, "the encoder for %s on this machine makes nothing of %d x %d px, as happens with very thin pictures", f, width, height)
}

// failed says why a picture could not be encoded. The pixels are decoded while they are encoded, so that either can
// have failed; where the encoder is in doubt they are decoded once more, without it.
func (e *engine) failed(j job, source []byte, err error) error {
	var no refusal
	if errors.As(err, &no) {
		return no
	}
	if j.Plan.Target == header.WebP {
		return damaged(j.Info, err)
	}
	before := e.warnings.Load()
	img, again := load(source, j.Plan.Source, func(*vips.ImportParams) {})
	if again == nil {
		_, again = img.Average()
		img.Close()
	}
	if again != nil || e.warnings.Load() != before {
		return damaged(j.Info, err)
	}
	return refuseWith(EncodeFailed, "%s", tidy(err))
}
