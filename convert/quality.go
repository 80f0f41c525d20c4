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
	dial            []dialPoint
}

// dialPoint says which number of the encoder looks like a level of the dial. Between points it is interpolated.
type dialPoint struct{ dial, number int }

const ms = time.Millisecond

// encoders is the one table that maps the dial to encoders. To begin with WebP is the measure itself, and 80 on the
// dial looks like AVIF 60 and HEIC 48.
var encoders = [...]encoder{
	{
		format: header.WebP, name: "WebP", made: true, animates: true,
		// 14 bits less one: the VP8 frame header.
		maxSide: 16383, maxPixels: 16383 * 16383,
		bytesPerPixel: 5, alpha: 14,
		effort:   2,
		lossy:    []time.Duration{39 * ms, 31 * ms, 47 * ms, 96 * ms, 92 * ms, 95 * ms, 177 * ms},
		lossless: []time.Duration{337 * ms, 480 * ms, 620 * ms, 740 * ms, 856 * ms, 950 * ms, 1048 * ms},
		dial:     []dialPoint{{1, 1}, {100, 100}},
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
		dial: []dialPoint{{1, 1}, {80, 60}, {100, 90}},
	},
	{
		format: header.HEIC, name: "HEIC", made: true,
		// Level 6.2 of HEVC: MaxLumaPs, and sqrt(8 x MaxLumaPs) for a side.
		maxSide: 16888, maxPixels: 35_651_584,
		bytesPerPixel: 17, alpha: 3,
		lossy: []time.Duration{1350 * ms},
		dial:  []dialPoint{{1, 1}, {80, 48}, {100, 80}},
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

// EncoderQuality returns the number that the encoder of f takes for a level of the dial, 1..100. It never falls as
// the level rises; levels outside are taken as the nearest inside, and unknown formats take the level itself.
func EncoderQuality(f header.Format, dial int) int {
	dial = min(max(dial, 1), 100)
	e, ok := encoderOf(f)
	if !ok {
		return dial
	}
	for i := 1; i < len(e.dial); i++ {
		low, high := e.dial[i-1], e.dial[i]
		if dial <= high.dial {
			share := float64(dial-low.dial) / float64(high.dial-low.dial)
			return low.number + int(math.Round(share*float64(high.number-low.number)))
		}
	}
	return e.dial[len(e.dial)-1].number
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
func (e encoder) cost(info header.Info, effort int, lossless bool) time.Duration {
	table := e.lossy
	if lossless {
		table = e.lossless
	}
	if len(table) == 0 {
		return math.MaxInt64
	}
	perMP := decodeCost(info) + table[min(max(effort, 0), len(table)-1)]
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
