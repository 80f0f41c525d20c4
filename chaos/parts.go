package main

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
)

// parts cuts a JPEG into n smaller ones.
func parts(photo []byte, n int) [][]byte {
	img, err := jpeg.Decode(bytes.NewReader(photo))
	if err != nil {
		return nil // it was drawn by this program
	}
	whole, ok := img.(interface {
		SubImage(r image.Rectangle) image.Image
	})
	if !ok {
		return nil
	}
	bounds := img.Bounds()
	const columns = 4
	w, h := bounds.Dx()/columns, bounds.Dy()/((n+columns-1)/columns)
	var out [][]byte
	for i := range n {
		at := bounds.Min.Add(image.Pt(i%columns*w, i/columns*h))
		var b bytes.Buffer
		if err := jpeg.Encode(&b, whole.SubImage(image.Rectangle{at, at.Add(image.Pt(w, h))}), &jpeg.Options{Quality: 90}); err != nil {
			return nil
		}
		out = append(out, b.Bytes())
	}
	return out
}

// markerCOM begins a comment in a JPEG.
const markerCOM = 0xfe

// personal is a JPEG that only one visitor may ever get: it carries the number
// that the origin gave the visitor.
func personal(card []byte, visitor uint64) []byte {
	out := make([]byte, 0, len(card)+14)
	out = append(out, card[:2]...)
	out = append(out, 0xff, markerCOM, 0, 10)
	out = binary.BigEndian.AppendUint64(out, visitor)
	return append(out, card[2:]...)
}

// visitorOf reads what personal wrote; ok is false for any other file.
func visitorOf(card, body []byte) (visitor uint64, ok bool) {
	if len(body) != len(card)+12 || body[2] != 0xff || body[3] != markerCOM {
		return 0, false
	}
	visitor = binary.BigEndian.Uint64(body[6:])
	return visitor, bytes.Equal(body, personal(card, visitor))
}
