package convert

import (
	"fmt"
	"time"

	"karui/convert/header"
)

// variantInfo is what the container of a variant says.
type variantInfo struct {
	format        header.Format
	width, height int
	frames        int
	duration      time.Duration
	lossless      bool
}

// inspect reads the container of a variant and checks that it is whole. It decodes nothing, so that it costs next to
// nothing.
func inspect(format header.Format, body []byte) (variantInfo, error) {
	switch format {
	case header.WebP:
		f, err := parseWebP(body)
		if err != nil {
			return variantInfo{}, err
		}
		return variantInfo{
			format: format, width: f.width, height: f.height, frames: max(len(f.frames), 1),
			duration: f.duration(), lossless: f.lossless,
		}, nil
	case header.AVIF, header.HEIC:
		f, err := parseHEIF(body, format)
		if err != nil {
			return variantInfo{}, err
		}
		return variantInfo{format: format, width: f.width, height: f.height, frames: 1}, nil
	case header.JPEG: // of the ping only
		info, err := header.Parse(body)
		if err != nil {
			return variantInfo{}, err
		}
		if info.Format != format || !info.Whole {
			return variantInfo{}, fmt.Errorf("not a whole JPEG")
		}
		return variantInfo{format: format, width: info.Width, height: info.Height, frames: 1}, nil
	}
	return variantInfo{}, fmt.Errorf("no variant is made as %s", format)
}

// differs says in which way a variant is not the picture that the original's header announced, "" when it is.
func (v variantInfo) differs(info header.Info, r result) string {
	w, h := info.Upright()
	if v.width != w || v.height != h {
		return fmt.Sprintf("the result is %d x %d px, the original %d x %d", v.width, v.height, w, h)
	}
	if r.Frames != max(info.Frames, 1) {
		return fmt.Sprintf("%d frames were decoded, the original has %d", r.Frames, info.Frames)
	}
	// The encoder shows a frame that equals the one before for longer instead of storing it again.
	if v.frames > r.Frames {
		return fmt.Sprintf("the result has %d frames, the original %d", v.frames, r.Frames)
	}
	if v.frames > 1 && v.duration != info.Duration {
		return fmt.Sprintf("one round of the result takes %s, of the original %s", v.duration, info.Duration)
	}
	return ""
}
