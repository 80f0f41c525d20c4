package acceptance

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// imageMagick is the second opinion on files that Go's decoders refuse, and the
// one on colour profiles. It is named by its path because the name is a common one.
const imageMagick = "/usr/bin/convert"

// rendering is how an original has to look.
type rendering struct {
	clip
	// keep says why no variant may be made, empty if one may.
	keep string
	// loose multiplies the difference that is tolerated.
	loose float64
	// guess says that the colours are a matter of opinion: only light and dark must be in their places.
	guess bool
}

// render shows an original the right way up. An error means that no decoder at
// hand can read it.
func render(b []byte) (rendering, error) {
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xd8, 0xff}):
		return renderJPEG(b)
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return renderPNG(b)
	case bytes.HasPrefix(b, []byte("GIF8")):
		return renderGIF(b)
	}
	return rendering{keep: "not a format to convert"}, nil
}

// still is a rendering of one frame.
func still(img *image.NRGBA) rendering {
	return rendering{clip: clip{frames: []frame{{img: img}}}, loose: 1}
}

func renderJPEG(b []byte) (rendering, error) {
	orientation, profile, components := jpegFacts(b)
	keep := ""
	for _, sign := range []string{"hdrgm:Version", "HDRGainMap", "urn:iso:std:iso:ts:21496:-1"} {
		if bytes.Contains(b, []byte(sign)) {
			keep = "a gain map"
		}
	}
	if components == 4 || len(profile) > 0 && !bytes.Contains(profile, []byte("sRGB")) {
		r, err := magick("jpeg", b, len(profile) > 0)
		if errors.Is(err, errProfile) {
			r, err = magick("jpeg", b, false) // a broken profile is no profile
		}
		r.keep, r.profile = keep, profile
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
		r, err := magick("jpeg", b, false)
		if errors.Is(err, errCut) {
			keep = "cut off"
		}
		r.keep = keep
		return r, err
	}
	r := still(upright(toNRGBA(img), orientation))
	r.keep = keep
	return r, nil
}

// jpegFacts reads a JPEG's EXIF orientation, colour profile and number of components.
func jpegFacts(b []byte) (orientation int, profile []byte, components int) {
	orientation = 1
	for at := 2; at+4 <= len(b) && b[at] == 0xff; {
		marker, n := b[at+1], int(binary.BigEndian.Uint16(b[at+2:]))
		if marker == 0xff {
			at++
			continue
		}
		if marker == 0xda || at+2+n > len(b) || n < 2 {
			break
		}
		data := b[at+4 : at+2+n]
		switch {
		case marker == 0xe1 && bytes.HasPrefix(data, []byte("Exif\x00\x00")):
			if tags := exifTags(data[6:]); tags[0x0112] >= 1 && tags[0x0112] <= 8 {
				orientation = int(tags[0x0112])
			}
		case marker == 0xe2 && bytes.HasPrefix(data, []byte("ICC_PROFILE\x00")) && len(data) > 14:
			profile = append(profile, data[14:]...)
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc && len(data) > 5:
			components = int(data[5])
		}
		at += 2 + n
	}
	return orientation, profile, components
}

// exifTags reads the tags of the first folder and of the EXIF folder below it,
// with the value where it is a short number.
func exifTags(b []byte) map[uint16]uint32 {
	tags := map[uint16]uint32{}
	if len(b) < 8 {
		return tags
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	next := []uint32{order.Uint32(b[4:])}
	for range 2 {
		if len(next) == 0 || uint64(next[0])+2 > uint64(len(b)) {
			return tags
		}
		at := int(next[0])
		next = next[1:]
		for n := int(order.Uint16(b[at:])); n > 0; n-- {
			e := at + 2 + 12*(n-1)
			if e+12 > len(b) {
				continue
			}
			tag, value := order.Uint16(b[e:]), order.Uint32(b[e+8:])
			if order.Uint16(b[e+2:]) == 3 {
				value = uint32(order.Uint16(b[e+8:]))
			}
			tags[tag] = value
			if tag == 0x8769 {
				next = append(next, value)
			}
		}
	}
	return tags
}

func renderPNG(b []byte) (rendering, error) {
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
			if tag := exifTags(data)[0x0112]; tag >= 1 && tag <= 8 {
				orientation = int(tag)
			}
		}
		at += 12 + int(n)
		whole = at
	}
	if keep != "" {
		return rendering{keep: keep}, nil
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		// A file may lack no more than its end.
		img, err = png.Decode(bytes.NewReader(append(bytes.Clone(b[:whole]), 0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82)))
	}
	if err != nil {
		return magick("png", b, false)
	}
	pixels := toNRGBA(img)
	if len(profile) > 0 && !bytes.Contains(profile, []byte("sRGB")) {
		pixels, err = managed(pixels, profile)
		if err != nil {
			return rendering{}, err
		}
	} else if gamma > 0 && !srgb && len(profile) == 0 && math.Abs(gamma-1/2.2) > 0.02 {
		corrected(pixels, gamma)
	}
	r := still(upright(pixels, orientation))
	r.profile = profile
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

func renderGIF(b []byte) (rendering, error) {
	g, err := gif.DecodeAll(bytes.NewReader(b))
	if err != nil {
		g, err = gif.DecodeAll(bytes.NewReader(append(bytes.Clone(b), 0x3b)))
	}
	if err != nil {
		if strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "not enough") {
			return rendering{keep: "cut off"}, nil
		}
		r, err := magick("gif", b, false)
		r.loose = 4
		return r, err
	}
	r := rendering{loose: 1}
	switch {
	case g.LoopCount == 0:
		r.plays = 0
	case g.LoopCount < 0:
		r.plays = 1
	default:
		r.plays = g.LoopCount + 1
	}
	canvas := image.NewNRGBA(image.Rect(0, 0, g.Config.Width, g.Config.Height))
	for i, p := range g.Image {
		before := image.NewNRGBA(canvas.Rect)
		copy(before.Pix, canvas.Pix)
		draw.Draw(canvas, p.Rect, p, p.Rect.Min, draw.Over)
		shown := image.NewNRGBA(canvas.Rect)
		copy(shown.Pix, canvas.Pix)
		r.frames = append(r.frames, frame{img: shown, ms: 10 * g.Delay[i]})
		switch g.Disposal[i] {
		case gif.DisposalBackground:
			draw.Draw(canvas, p.Rect, image.Transparent, image.Point{}, draw.Src)
		case gif.DisposalPrevious:
			canvas = before
		}
	}
	return r, nil
}

// srgbProfile is a file with the profile of sRGB, taken out of a picture of the corpus; "" without one.
var srgbProfile = sync.OnceValue(func() string {
	b, err := os.ReadFile(filepath.Join(corpus, "photos", "ImageMagick__mountains.jpg"))
	if err != nil {
		return ""
	}
	_, profile, _ := jpegFacts(b)
	name := filepath.Join(filepath.Dir(built), "srgb.icc")
	if len(profile) == 0 || os.WriteFile(name, profile, 0o600) != nil {
		return ""
	}
	return name
})

// errCut says that a decoder met the end of the file too early.
var errCut = errors.New("the file is cut off")

// errProfile says that an embedded colour profile makes no sense.
var errProfile = errors.New("the colour profile is broken")

// magick renders one frame with ImageMagick, the right way up and in sRGB.
func magick(format string, b []byte, profiled bool) (rendering, error) {
	args := []string{format + ":-[0]", "-auto-orient"}
	if profiled {
		srgb := srgbProfile()
		if srgb == "" {
			return rendering{}, errors.New("no sRGB profile at hand")
		}
		args = append(args, "-profile", srgb)
	}
	cmd := exec.Command(imageMagick, append(args, "-colorspace", "sRGB", "-depth", "8", "-write", "png32:-", "null:")...)
	cmd.Stdin = bytes.NewReader(b)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	for _, sign := range []string{"remature end", "Unexpected end", "UnexpectedEndOfFile", "insufficient image data", "CorruptImage"} {
		if strings.Contains(complaint.String(), sign) {
			return rendering{}, fmt.Errorf("%w: %s", errCut, complaint.String())
		}
	}
	if strings.Contains(complaint.String(), "ColorProfileMismatch") {
		return rendering{}, errProfile
	}
	if err != nil {
		return rendering{}, fmt.Errorf("ImageMagick: %w: %s", err, complaint.String())
	}
	img, err := png.Decode(&out)
	if err != nil {
		return rendering{}, fmt.Errorf("ImageMagick: %w: %s", err, complaint.String())
	}
	r := still(toNRGBA(img))
	r.loose = 2
	return r, nil
}

// managed shows pixels of a profile in sRGB.
func managed(img *image.NRGBA, profile []byte) (*image.NRGBA, error) {
	var plain bytes.Buffer
	if err := png.Encode(&plain, img); err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	packed.WriteString("iCCP....p\x00\x00")
	z := zlib.NewWriter(&packed)
	if _, err := z.Write(profile); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	body := packed.Bytes()
	body = append([]byte("iCCP"), body[8:]...)
	file := bytes.Clone(plain.Bytes()[:33]) // signature and IHDR
	file = binary.BigEndian.AppendUint32(file, uint32(len(body)-4))
	file = append(file, body...)
	file = binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(body))
	r, err := magick("png", append(file, plain.Bytes()[33:]...), true)
	if err != nil {
		return nil, err
	}
	return r.frames[0].img, nil
}

func toNRGBA(img image.Image) *image.NRGBA {
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

// upright applies an EXIF orientation.
func upright(img *image.NRGBA, orientation int) *image.NRGBA {
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
