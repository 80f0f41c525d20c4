package convert

import (
	"fmt"

	"karui/convert/header"
	"karui/internal/units"
)

// refuse says why an original is kept whatever the target: the list of design decisions that the header alone
// settles. Complete says that the header was read as a whole; before that, what is not known yet refuses nothing.
func refuse(info header.Info, complete bool, size int64, opt Options, cfg Config) (Decision, bool) {
	switch {
	case info.Format == header.Unknown && !complete:
		return Decision{}, false
	case !info.Format.Convertible():
		return notConvertible(info.Format), true
	case len(opt.Formats) == 0:
		return Decide(NotAccepted, "the viewer takes no lighter format"), true
	case size > int64(cfg.MaxBytes):
		return Decide(TooLarge, fmt.Sprintf("%d bytes, and at most %s (%d bytes) are converted",
			size, cfg.MaxBytes, int64(cfg.MaxBytes))), true
	}
	switch info.Format {
	case header.PNG:
		if d, keep := refusePNG(info); keep {
			return d, true
		}
	case header.JPEG:
		if d, keep := refuseJPEG(info); keep {
			return d, true
		}
	}
	if complete && info.Frames == 0 {
		return Decide(Empty, "no frames"), true
	}
	if complete && info.Pixels() == 0 {
		return Decide(Empty, fmt.Sprintf("%d x %d px", info.Width, info.Height)), true
	}
	if info.Format == header.GIF && info.Frames > maxGIFFrames {
		return Decide(TooManyFrames, fmt.Sprintf("over %d frames, of which the decoder drops the rest", maxGIFFrames)), true
	}
	if info.Pixels() > int64(cfg.MaxPixels) {
		return Decide(TooManyPixels, pixelsReason(info, cfg.MaxPixels)), true
	}
	return Decision{}, false
}

func notConvertible(f header.Format) Decision {
	if f == header.Unknown {
		return Decide(NotConvertible, "not a JPEG, PNG or GIF, nor another image known here")
	}
	return Decide(NotConvertible, fmt.Sprintf("%s is passed through: only JPEG, PNG and GIF are converted", f))
}

func refusePNG(info header.Info) (Decision, bool) {
	switch {
	case info.Animated:
		return Decide(AnimatedPNG, fmt.Sprintf("an animated PNG (frames: %d), of which the decoder sees the still picture only", info.Frames)), true
	case info.OddColor != "":
		return Decide(OddColor, fmt.Sprintf("the chunk %s gives the colours a meaning that would be lost", info.OddColor)), true
	}
	return Decision{}, false
}

func refuseJPEG(info header.Info) (Decision, bool) {
	if info.GainMap {
		return Decide(GainMap, "an HDR gain map, which would be lost"), true
	}
	p := info.Process()
	if p == header.ProcessNone {
		return Decision{}, false
	}
	kind := ""
	switch {
	case p == header.Lossless, p == header.ArithmeticLossless, p == header.Hierarchical:
		kind = fmt.Sprintf("a JPEG of the kind %q", p)
	case info.BitDepth != 8:
		kind = fmt.Sprintf("a JPEG with %d bits per sample", info.BitDepth)
	case info.Components != 1 && info.Components != 3 && info.Components != 4:
		kind = fmt.Sprintf("a JPEG with %d components", info.Components)
	case info.Height == 0 || info.LateHeight:
		kind = fmt.Sprintf("a JPEG of %d px by a height that stands behind the pixels", info.Width)
	default:
		return Decision{}, false
	}
	return Decide(UnsupportedJPEG, kind+", which the decoder does not read"), true
}

// maxGIFFrames is where libvips 8.14.1 (libnsgif) stops reading without saying so.
const maxGIFFrames = 4096

// refuseWholeGIF keeps GIFs of which libvips makes another picture than browsers do, without reporting an error: that
// was seen with files of each kind. It wants the header of a whole file.
func refuseWholeGIF(info header.Info) (Decision, bool) {
	w, h, x, y := info.Width, info.Height, info.ExtentWidth, info.ExtentHeight
	switch {
	case info.Junk:
		return Decide(Broken, fmt.Sprintf("something that is no block follows frame %d", info.Frames)), true
	case info.FramesWhole < info.Frames:
		return Decide(Truncated, fmt.Sprintf("cut off inside frame %d", info.Frames)), true
	case info.EmptyFrames > 0:
		return Decide(Empty, fmt.Sprintf("%d of %d frames have no pixels", info.EmptyFrames, info.Frames)), true
	case x > w || y > h:
		return Decide(OddCanvas, fmt.Sprintf("frames reach to %d x %d px, beyond the canvas of %d x %d px", x, y, w, h)), true
	case (x < w || y < h) && ignoresCanvas(w, h):
		return Decide(OddCanvas, fmt.Sprintf("frames fill %d x %d px of a canvas of %d x %d px, which the decoder ignores", x, y, w, h)), true
	case info.Uncovered:
		return Decide(OddCanvas, "parts of the canvas are not painted, which browsers show as transparent and the decoder does not"), true
	}
	return Decision{}, false
}

// ignoresCanvas lists the sizes that libnsgif takes for the screen of the machine that made the file, and replaces by
// what the frames fill.
func ignoresCanvas(w, h int) bool {
	switch [2]int{w, h} {
	case [2]int{640, 480}, [2]int{640, 512}, [2]int{800, 600}, [2]int{1024, 768}, [2]int{1280, 1024}, [2]int{1600, 1200}:
		return true
	}
	return w > 2048 || h > 2048
}

func pixelsReason(info header.Info, most units.Pixels) string {
	w, h := max(info.Width, info.ExtentWidth), max(info.Height, info.ExtentHeight)
	frames := ""
	if info.Frames > 1 {
		frames = fmt.Sprintf("%d frames of ", info.Frames)
	}
	return fmt.Sprintf("%s%d x %d px are %s, and at most %s are converted",
		frames, w, h, megapixels(info.Pixels()), megapixels(int64(most)))
}

// megapixels rounds for people.
func megapixels(n int64) string { return fmt.Sprintf("%.4g MP", float64(n)/1e6) }
