package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/draw"

	"golang.org/x/image/webp"
)

type chunk struct {
	id   string
	data []byte
}

func chunks(b []byte) ([]chunk, error) {
	var found []chunk
	for len(b) > 0 {
		if len(b) < 8 {
			return nil, fmt.Errorf("%d stray bytes", len(b))
		}
		n := binary.LittleEndian.Uint32(b[4:])
		if uint64(n) > uint64(len(b)-8) {
			return nil, fmt.Errorf("chunk %q of %d bytes in %d", b[:4], n, len(b)-8)
		}
		found = append(found, chunk{string(b[:4]), b[8 : 8+n]})
		b = b[min(len(b), 8+int(n)+int(n)%2):]
	}
	return found, nil
}

// DecodeWebP decodes a WebP file, animations included, with golang.org/x/image
// and not with libwebp, which made it.
func DecodeWebP(b []byte) (Clip, error) {
	if len(b) < 12 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WEBP" {
		return Clip{}, errors.New("not a WebP file")
	}
	if size := binary.LittleEndian.Uint32(b[4:]); int(size) != len(b)-8 {
		return Clip{}, fmt.Errorf("RIFF size %d in a file of %d bytes", size, len(b))
	}
	list, err := chunks(b[12:])
	if err != nil {
		return Clip{}, err
	}
	var c Clip
	var canvas *image.NRGBA
	for _, ch := range list {
		switch ch.id {
		case "ICCP":
			c.Profile = ch.data
		case "EXIF":
			c.EXIF = ch.data
		case "XMP ":
			c.XMP = ch.data
		case "VP8X":
			canvas = image.NewNRGBA(image.Rect(0, 0, 1+int(uint24(ch.data[4:])), 1+int(uint24(ch.data[7:]))))
		case "ANIM":
			c.Plays = int(binary.LittleEndian.Uint16(ch.data[4:]))
		case "ANMF":
			if err := c.addFrame(canvas, ch.data); err != nil {
				return Clip{}, fmt.Errorf("frame %d: %w", len(c.Frames), err)
			}
		}
	}
	if len(c.Frames) > 0 {
		return c, nil
	}
	img, err := webp.Decode(bytes.NewReader(b))
	if err != nil {
		return Clip{}, err
	}
	c.Frames = []Frame{{Image: plain(img)}}
	return c, nil
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

// addFrame decodes one ANMF chunk and puts it onto the canvas.
func (c *Clip) addFrame(canvas *image.NRGBA, data []byte) error {
	if canvas == nil || len(data) < 16 {
		return errors.New("no canvas or no header")
	}
	x, y := 2*int(uint24(data)), 2*int(uint24(data[3:]))
	w, h := 1+int(uint24(data[6:])), 1+int(uint24(data[9:]))
	ms, flags := int(uint24(data[12:])), data[15]
	list, err := chunks(data[16:])
	if err != nil {
		return err
	}
	// A frame's chunks make a file of their own once a header stands before them.
	var inner []byte
	for _, ch := range list {
		if ch.id == "ALPH" {
			head := make([]byte, 10)
			head[0] = 0x10
			head[4], head[5], head[6] = byte(w-1), byte((w-1)>>8), byte((w-1)>>16)
			head[7], head[8], head[9] = byte(h-1), byte((h-1)>>8), byte((h-1)>>16)
			inner = append(appendChunk(nil, "VP8X", head), inner...)
		}
		inner = appendChunk(inner, ch.id, ch.data)
	}
	file := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(inner)+4))
	file = append(append(file, "WEBP"...), inner...)
	decoded, err := webp.Decode(bytes.NewReader(file))
	if err != nil {
		return err
	}
	img := plain(decoded)
	at := image.Rect(x, y, x+w, y+h)
	if !at.In(canvas.Bounds()) || img.Bounds().Size() != at.Size() {
		return fmt.Errorf("frame %v of %v on a canvas of %v", at, img.Bounds(), canvas.Bounds())
	}
	op := draw.Over
	if flags&2 != 0 {
		op = draw.Src
	}
	draw.Draw(canvas, at, img, image.Point{}, op)
	shown := image.NewNRGBA(canvas.Bounds())
	copy(shown.Pix, canvas.Pix)
	c.Frames = append(c.Frames, Frame{Image: shown, Milliseconds: ms})
	if flags&1 != 0 {
		draw.Draw(canvas, at, image.Transparent, image.Point{}, draw.Src)
	}
	return nil
}

func appendChunk(b []byte, id string, data []byte) []byte {
	b = append(b, id...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	b = append(b, data...)
	if len(data)%2 == 1 {
		b = append(b, 0)
	}
	return b
}

// plain turns what a decoder gives into 8 bit RGBA. WebP's YCbCr is of limited
// range, which image/color does not know.
func plain(img image.Image) *image.NRGBA {
	bounds := img.Bounds()
	out := image.NewNRGBA(image.Rect(0, 0, bounds.Dx(), bounds.Dy()))
	switch src := img.(type) {
	case *image.YCbCr:
		limited(out, src, nil)
	case *image.NYCbCrA:
		limited(out, &src.YCbCr, src)
	default:
		draw.Draw(out, out.Bounds(), img, bounds.Min, draw.Src)
	}
	return out
}

func limited(out *image.NRGBA, src *image.YCbCr, alpha *image.NYCbCrA) {
	clamp := func(v int) uint8 { return uint8(min(255, max(0, v>>16))) }
	w, left := out.Rect.Dx(), src.Rect.Min.X
	for y := range out.Rect.Dy() {
		luma := src.Y[src.YOffset(left, y+src.Rect.Min.Y):]
		chroma := src.COffset(left, y+src.Rect.Min.Y)
		row := out.Pix[y*out.Stride : y*out.Stride+4*w]
		for x := range w {
			c := chroma + x/2 // WebP's chroma has half the width
			l, u, v := 76309*(int(luma[x])-16)+32768, int(src.Cb[c])-128, int(src.Cr[c])-128
			p := row[4*x : 4*x+4]
			p[0], p[1], p[2], p[3] = clamp(l+104597*v), clamp(l-25675*u-53279*v), clamp(l+132201*u), 255
		}
		if alpha != nil {
			at := alpha.A[alpha.AOffset(left, y+src.Rect.Min.Y):]
			for x := range w {
				row[4*x+3] = at[x]
			}
		}
	}
}
