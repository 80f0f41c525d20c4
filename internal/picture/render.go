package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"image"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"strings"
)

// Rendering is how an original has to look.
type Rendering struct {
	Clip
	// Keep says why no variant may be made, empty if one may.
	Keep string
	// loose multiplies the difference that is tolerated.
	loose float64
	// guess says that the colours are a matter of opinion: only light and dark must be in their places.
	guess bool
}

// Render shows an original the right way up. An error means that no decoder at
// hand can read it.
func (j *Judge) Render(b []byte) (Rendering, error) {
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xd8, 0xff}):
		return j.renderJPEG(b)
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return j.renderPNG(b)
	case bytes.HasPrefix(b, []byte("GIF8")):
		return j.renderGIF(b)
	}
	return Rendering{Keep: "not a format to convert"}, nil
}

// still is a Rendering of one frame.
func still(img *image.NRGBA) Rendering {
	return Rendering{Clip: Clip{Frames: []Frame{{Image: img}}}, loose: 1}
}

func (j *Judge) renderJPEG(b []byte) (Rendering, error) {
	orientation, profile, components := jpegFacts(b)
	keep := ""
	for _, sign := range []string{"hdrgm:Version", "HDRGainMap", "urn:iso:std:iso:ts:21496:-1"} {
		if bytes.Contains(b, []byte(sign)) {
			keep = "a gain map"
		}
	}
	if components == 4 || len(profile) > 0 && !bytes.Contains(profile, []byte("sRGB")) {
		r, err := j.magick("jpeg", b, len(profile) > 0)
		if errors.Is(err, errProfile) {
			r, err = j.magick("jpeg", b, false) // a broken profile is no profile
		}
		r.Keep, r.Profile = keep, profile
		r.guess = components == 4 && len(profile) == 0 // without a profile every viewer guesses
		return r, err
	}
	img, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		// A file may lack no more than its end marker.
		img, err = jpeg.Decode(bytes.NewReader(append(bytes.Clone(b), 0xff, 0xd9)))
	}
	if err != nil && len(b) > 2 && b[len(b)-2] == 0xff {
		// Or have another marker in its place, which decoders meet when all is decoded.
		img, err = jpeg.Decode(bytes.NewReader(append(bytes.Clone(b[:len(b)-1]), 0xd9)))
	}
	if err != nil {
		r, err := j.magick("jpeg", b, false)
		if errors.Is(err, errCut) {
			keep = "cut off"
		}
		r.Keep = keep
		return r, err
	}
	r := still(Upright(ToNRGBA(img), orientation))
	r.Keep = keep
	return r, nil
}

func (j *Judge) renderPNG(b []byte) (Rendering, error) {
	keep, gamma, orientation := "", 0.0, 1
	var profile []byte
	srgb, late, whole := false, false, 8
	for at := 8; at+8 <= len(b); {
		n := binary.BigEndian.Uint32(b[at:])
		if uint64(at)+12+uint64(n) > uint64(len(b)) {
			break
		}
		data := b[at+8 : at+8+int(n)]
		switch string(b[at+4 : at+8]) {
		case "IDAT":
			late = true
		case "acTL":
			if !late { // a later one means nothing
				keep = "an animated PNG"
			}
		case "cICP":
			keep = "a coded colour space"
		case "sRGB":
			srgb = true
		case "gAMA":
			if len(data) == 4 {
				gamma = float64(binary.BigEndian.Uint32(data)) / 100000
			}
		case "iCCP":
			if _, packed, found := bytes.Cut(data, []byte{0}); found && len(packed) > 1 {
				if z, err := zlib.NewReader(bytes.NewReader(packed[1:])); err == nil {
					profile, _ = io.ReadAll(io.LimitReader(z, 1<<20))
				}
			}
		case "eXIf":
			if tag := EXIFTags(data)[0x0112]; tag >= 1 && tag <= 8 {
				orientation = int(tag)
			}
		}
		at += 12 + int(n)
		whole = at
	}
	if keep != "" {
		return Rendering{Keep: keep}, nil
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		// A file may lack no more than its end.
		img, err = png.Decode(bytes.NewReader(append(bytes.Clone(b[:whole]), 0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82)))
	}
	if err != nil {
		return j.magick("png", b, false)
	}
	pixels := ToNRGBA(img)
	if len(profile) > 0 && !bytes.Contains(profile, []byte("sRGB")) {
		pixels, err = j.managed(pixels, profile)
		if err != nil {
			return Rendering{}, err
		}
	} else if gamma > 0 && !srgb && len(profile) == 0 && math.Abs(gamma-1/2.2) > 0.02 {
		corrected(pixels, gamma)
	}
	r := still(Upright(pixels, orientation))
	r.Profile = profile
	return r, nil
}

// corrected turns samples of that file gamma into sRGB ones, as browsers do.
func corrected(img *image.NRGBA, gamma float64) {
	var table [256]uint8
	for i := range table {
		table[i] = uint8(math.Round(255 * math.Pow(float64(i)/255, 1/(gamma*2.2))))
	}
	for i := 0; i < len(img.Pix); i += 4 {
		for j := range 3 {
			img.Pix[i+j] = table[img.Pix[i+j]]
		}
	}
}

func (j *Judge) renderGIF(b []byte) (Rendering, error) {
	g, err := gif.DecodeAll(bytes.NewReader(b))
	if err != nil {
		g, err = gif.DecodeAll(bytes.NewReader(append(bytes.Clone(b), 0x3b)))
	}
	if err != nil {
		if strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "not enough") {
			return Rendering{Keep: "cut off"}, nil
		}
		r, err := j.magick("gif", b, false)
		r.loose = 4
		return r, err
	}
	r := Rendering{loose: 1}
	switch {
	case g.LoopCount == 0:
		r.Plays = 0
	case g.LoopCount < 0:
		r.Plays = 1
	default:
		r.Plays = g.LoopCount + 1
	}
	canvas := image.NewNRGBA(image.Rect(0, 0, g.Config.Width, g.Config.Height))
	for i, p := range g.Image {
		before := image.NewNRGBA(canvas.Rect)
		copy(before.Pix, canvas.Pix)
		draw.Draw(canvas, p.Rect, p, p.Rect.Min, draw.Over)
		shown := image.NewNRGBA(canvas.Rect)
		copy(shown.Pix, canvas.Pix)
		r.Frames = append(r.Frames, Frame{Image: shown, Milliseconds: 10 * g.Delay[i]})
		switch g.Disposal[i] {
		case gif.DisposalBackground:
			draw.Draw(canvas, p.Rect, image.Transparent, image.Point{}, draw.Src)
		case gif.DisposalPrevious:
			canvas = before
		}
	}
	return r, nil
}
