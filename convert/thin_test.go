package convert

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"strings"
	"testing"

	"karui/convert/header"
)

// Of some very thin pictures x265 makes nothing, without an error. Whether it does
// is its own affair; what is said about it is for people.
func TestThinPicturesAsHEIC(t *testing.T) {
	p := newPool(t, nil)
	if err := p.CheckEncoders(t.Context(), []header.Format{header.HEIC}); err != nil {
		t.Skip(err)
	}
	for _, size := range [][2]int{{16383, 16}, {5000, 16}, {16, 16000}} {
		img := image.NewGray(image.Rect(0, 0, size[0], size[1]))
		for i := range img.Pix {
			img.Pix[i] = uint8(i * i >> 4)
		}
		var b bytes.Buffer
		if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 90}); err != nil {
			t.Fatal(err)
		}
		r := convertOne(t, p, b.Bytes(), Options{Formats: []header.Format{header.HEIC}, Quality: 60})
		switch r.Decision.Code {
		case Converted, NotSmaller:
		case EncodeFailed:
			if want := fmt.Sprintf("makes nothing of %d x %d px", size[0], size[1]); !strings.Contains(r.Decision.Reason, want) {
				t.Errorf("%v: %s", size, r.Decision.Reason)
			}
		default:
			t.Errorf("%v: %+v", size, r.Decision)
		}
	}
}

func TestAFileWithoutPicturesIsToldApart(t *testing.T) {
	item := []byte{0, 0, 0, 0, 0, 0}
	if err := (&heifReader{}).primaryItem(item); !errors.Is(err, errNoItems) || !errors.Is(err, errHEIF) {
		t.Errorf("%v", err)
	}
	if err := (&heifReader{}).primaryItem([]byte{0, 0, 0, 0, 0, 7}); errors.Is(err, errNoItems) || !errors.Is(err, errHEIF) {
		t.Errorf("%v", err)
	}
	var no refusal
	if err := nothingMade(header.HEIC, 5000, 16); !errors.As(err, &no) || no.code != EncodeFailed || !strings.Contains(no.reason, "5000 x 16 px") {
		t.Errorf("%v", err)
	}
}
