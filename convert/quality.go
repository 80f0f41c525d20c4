package convert

import (
	"math"
	"time"

	"karui/convert/header"
)

// encoder is what is known about one target format. Costs are CPU time per million pixels, measured (one
// 1.04 MP photo, libvips 8.14.1 on Debian 12), less 10 ms for decoding the JPEG there; in between measured efforts interpolated.
type encoder struct {
	format header.Format
	name   string // as people write it
	made   bool   // this version can encode it; whether this machine can is seen in a worker
	// animates: several frames with delays.
	animates bool
	// maxSide is the longest side and maxPixels the largest picture that the format, or those who show it, take.
	maxSide   int
	maxPixels int64
	effort    int
	// bytesPerPixel is the memory that a worker takes for each pixel, fullColor what it takes more where colours have
	// the full resolution, alpha where there is an alpha plane. Measured on pictures of 6 to 48 MP.
	bytesPerPixel, fullColor, alpha int64
	// lossy and lossless are the cost by effort; the last entry stands for all higher efforts. No lossless entry: the
	// format is only made lossy.
	lossy, lossless []time.Duration
	// percent says by the number of the encoder what share of lossy it takes; none: always all. Measured on five photos.
	percent []point
	// dial says which number of the encoder looks like a level of the dial.
	dial []point
}

// point is one of a line, which is straight between them and level beyond them.
type point struct{ at, value int }

func interpolate(line []point, at int) int {
	if at <= line[0].at {
		return line[0].value
	}
	for i := 1; i < len(line); i++ {
		low, high := line[i-1], line[i]
		if at <= high.at {
			share := float64(at-low.at) / float64(high.at-low.at)
			return low.value + int(math.Round(share*float64(high.value-low.value)))
		}
	}
	return line[len(line)-1].value
}

const ms = time.Millisecond

// encoders is the one table that maps the dial to encoders, with WebP as the measure itself.
//
// The points of AVIF and HEIC from 10 to 95 are measured: ten photos of the corpus (the Kodak pictures 1, 3 and 8, and
// seven photos of cameras and agencies made smaller by half or more, so that what JPEG had done to them was gone), cut
// to at most 768 x 576 px, encoded by libvips 8.14.1 with libwebp 1.2.4 (method 2), aom 3.6.0 (effort 1) and x265 3.5,
// decoded by dwebp, avifdec and heif-convert, compared with butteraugli_main 0.7 (3-norm). For each photo the number was
// looked for that reaches the distance which WebP has at that level; the table has the medians. At 80 the photos lay
// between 61 and 69 for AVIF and between 41 and 50 for HEIC; ssimulacra_main gives the same medians within 2. There AVIF
// takes 0.79 and HEIC 0.74 times the bytes of WebP.
//
// Level 1 is continued from there. At 100, where WebP has an end of its own, AVIF has what was measured, and HEIC the
// best that one photo needed (74 in the median): quality 100 also promises colours.
//
// HEIC stays below 90, where libvips would no longer halve the resolution for colours: few devices show such files.
var encoders = [...]encoder{
	{
		format: header.WebP, name: "WebP", made: true, animates: true,
		// 14 bits less one: the VP8 frame header.
		maxSide: 16383, maxPixels: 16383 * 16383,
		bytesPerPixel: 5, alpha: 14,
		effort:   2,
		lossy:    []time.Duration{39 * ms, 31 * ms, 47 * ms, 96 * ms, 92 * ms, 95 * ms, 177 * ms},
		lossless: []time.Duration{337 * ms, 480 * ms, 620 * ms, 740 * ms, 856 * ms, 950 * ms, 1048 * ms},
		dial:     []point{{1, 1}, {100, 100}},
	},
	{
		format: header.AVIF, name: "AVIF", made: true,
		// What libavif, and the browsers with it, decode unless told otherwise.
		maxSide: 32768, maxPixels: 16384 * 16384,
		bytesPerPixel: 22, fullColor: 12, alpha: 3,
		effort: 1,
		lossy: []time.Duration{
			183 * ms, 183 * ms, 413 * ms, 740 * ms, 2115 * ms, 4000 * ms, 6150 * ms, 10 * time.Second, 15 * time.Second, 20 * time.Second,
		},
		percent: []point{{1, 60}, {49, 80}, {60, 100}, {81, 120}, {92, 170}},
		dial:    []point{{1, 25}, {10, 30}, {30, 41}, {50, 49}, {70, 56}, {80, 63}, {90, 81}, {95, 89}, {100, 92}},
	},
	{
		format: header.HEIC, name: "HEIC", made: true,
		// Level 6.2 of HEVC: MaxLumaPs, and sqrt(8 x MaxLumaPs) for a side.
		maxSide: 16888, maxPixels: 35_651_584,
		bytesPerPixel: 17, alpha: 3,
		lossy:   []time.Duration{1350 * ms},
		percent: []point{{1, 40}, {31, 50}, {46, 75}, {60, 100}, {80, 130}},
		dial:    []point{{1, 20}, {10, 24}, {30, 31}, {50, 36}, {70, 41}, {80, 46}, {90, 55}, {95, 63}, {100, 80}},
	},
}

func encoderOf(f header.Format) (encoder, bool) {
	for _, e := range encoders {
		if e.format == f {
			return e, true
		}
	}
	return encoder{}, false
}

// CanMake reports whether variants of this format can be made.
func CanMake(f header.Format) bool {
	e, ok := encoderOf(f)
	return ok && e.made
}

// DefaultEffort returns the number for how hard the encoder of f tries: WebP 2, AVIF 1; HEIC takes none.
func DefaultEffort(f header.Format) int {
	e, _ := encoderOf(f)
	return e.effort
}

// effortFor returns how hard the encoder tries: only WebP's can be chosen.
func (e encoder) effortFor(opt Options) int {
	if e.format == header.WebP && opt.Effort != nil {
		return min(max(*opt.Effort, 0), 6)
	}
	return e.effort
}

// EncoderQuality returns the number that the encoder of f takes for a level of the dial, 1..100. It never falls as
// the level rises; levels outside are taken as the nearest inside, and unknown formats take the level itself.
func EncoderQuality(f header.Format, dial int) int {
	dial = min(max(dial, 1), 100)
	e, ok := encoderOf(f)
	if !ok {
		return dial
	}
	return interpolate(e.dial, dial)
}

// dialFor limits the site's quality by what the source holds: a JPEG saved at 60 is not made again at 80.
func dialFor(info header.Info, quality int) int {
	dial := min(max(quality, 1), 100)
	if info.JPEGQuality > 0 {
		dial = min(dial, info.JPEGQuality)
	}
	return dial
}

// cost estimates the CPU time of a conversion, decoding included.
func (e encoder) cost(info header.Info, effort, quality int, lossless bool) time.Duration {
	table := e.lossy
	if lossless {
		table = e.lossless
	}
	if len(table) == 0 {
		return math.MaxInt64
	}
	perMP := table[min(max(effort, 0), len(table)-1)]
	if !lossless && len(e.percent) > 0 {
		perMP = perMP * time.Duration(interpolate(e.percent, quality)) / 100
	}
	perMP += decodeCost(info)
	if info.Animated {
		perMP += perMP / 4 // the encoder tries key frames and differences
	}
	const perFrame = 300 * time.Microsecond
	total := float64(perMP)*float64(info.Pixels())/1e6 + float64(perFrame)*float64(max(info.Frames, 1))
	if total >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(total)
}

// memory estimates what a worker holds at most, in bytes, for a still picture.
func (e encoder) memory(info header.Info, quality int) int64 {
	if info.Animated {
		return 0 // the frames come one after the other
	}
	perPixel := e.bytesPerPixel
	if quality >= fullColorQuality {
		perPixel += e.fullColor
	}
	if info.Alpha {
		perPixel += e.alpha
	}
	if info.Format == header.JPEG && !info.OnePass {
		perPixel += 6 // all coefficients, of 2 bytes each
	}
	if info.Orientation > 1 {
		perPixel += 4 // the decoded picture
	}
	const process = 80 << 20
	return process + perPixel*min(info.Pixels(), 1<<40)
}

// fullColorQuality is the number of the encoder from which on libvips gives colours the full resolution.
const fullColorQuality = 90

// decodeCost is per million pixels, measured with libvips 8.14.1 on the photographs and animations of the corpus.
func decodeCost(info header.Info) time.Duration {
	switch info.Format {
	case header.PNG:
		if info.BitDepth == 16 {
			return 50 * ms
		}
		return 25 * ms
	case header.GIF:
		return 15 * ms
	}
	cost := 10 * ms
	if !info.OnePass { // each scan visits every block again
		cost += time.Duration(max(info.Scans, 1)) * ms
	}
	if info.Color == header.CMYK || info.Color == header.YCCK {
		cost += 130 * ms // through the profile to sRGB
	}
	return cost
}
