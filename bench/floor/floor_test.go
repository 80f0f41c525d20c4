package floor

import (
	"bytes"
	"testing"

	"golang.org/x/image/webp"

	"karui/internal/sample"
)

func TestConvert(t *testing.T) {
	photo := sample.Photo()
	fast, err := Convert(photo, 80, 0)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := Convert(photo, 80, 4)
	if err != nil {
		t.Fatal(err)
	}
	if len(slow) >= len(fast) {
		t.Errorf("method 4 gave %d bytes, method 0 %d", len(slow), len(fast))
	}
	c, err := webp.DecodeConfig(bytes.NewReader(slow))
	if err != nil {
		t.Fatal(err)
	}
	if c.Width != 1200 || c.Height != 868 {
		t.Errorf("%d x %d px, want 1200 x 868", c.Width, c.Height)
	}
	if _, err := Convert(photo[:100], 80, 4); err == nil {
		t.Error("no error for a header that is cut off")
	}
	if _, err := Convert(nil, 80, 4); err == nil {
		t.Error("no error for no bytes")
	}
}
