package convert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// The container of WebP (RFC 9649): RIFF chunks with even lengths.
//
// The encoder's output is taken apart and put together again here, since what goes into the file besides pixels is
// ours to say: no metadata but the profile and the copyright, and an animation's own delays and loops, which libvips
// changes (it writes 100 ms for every delay of up to 10 ms).

// riffChunk is one chunk; data has no padding byte.
type riffChunk struct {
	id   string
	data []byte
}

// webpFile is a WebP as far as it matters here.
type webpFile struct {
	width, height int
	alpha         bool
	lossless      bool // every frame is
	loop          uint16
	background    uint32
	// still holds the one picture: [ALPH] VP8 or VP8L.
	still  []riffChunk
	frames []webpFrame
	// icc and exif are the contents of these chunks; XMP and unknown chunks are dropped.
	icc, exif []byte
}

// webpFrame is one ANMF chunk.
type webpFrame struct {
	head [webpFrameHead]byte // as in the file: place, size, duration, flags
	body []byte
}

const (
	webpFrameHead = 16
	// webpDelayMost is the longest duration of a frame, in milliseconds: 24 bits.
	webpDelayMost = 1<<24 - 1

	flagAnimation = 0x02
	flagEXIF      = 0x08
	flagAlpha     = 0x10
	flagICC       = 0x20
)

var errWebP = errors.New("not a whole WebP")

func (f webpFrame) delay() int {
	return int(f.head[12]) | int(f.head[13])<<8 | int(f.head[14])<<16
}

func (f *webpFrame) setDelay(ms int) {
	ms = min(max(ms, 0), webpDelayMost)
	f.head[12], f.head[13], f.head[14] = byte(ms), byte(ms>>8), byte(ms>>16)
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// splitChunks takes apart a run of chunks.
func splitChunks(b []byte) ([]riffChunk, error) {
	var chunks []riffChunk
	for len(b) > 0 {
		if len(b) < 8 {
			return nil, fmt.Errorf("%w: %d bytes where a chunk should begin", errWebP, len(b))
		}
		n := int64(binary.LittleEndian.Uint32(b[4:]))
		if n > int64(len(b)-8) {
			return nil, fmt.Errorf("%w: chunk %q of %d bytes, and %d are there", errWebP, b[:4], n, len(b)-8)
		}
		chunks = append(chunks, riffChunk{string(b[:4]), b[8 : 8+n]})
		b = b[min(8+n+n&1, int64(len(b))):]
	}
	return chunks, nil
}

// parseWebP takes a whole file apart, and checks that sizes, flags and frames agree. It does not decode.
func parseWebP(b []byte) (webpFile, error) {
	if len(b) < 12 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WEBP" {
		return webpFile{}, fmt.Errorf("%w: no RIFF header", errWebP)
	}
	if n := int64(binary.LittleEndian.Uint32(b[4:])) + 8; n != int64(len(b)) {
		return webpFile{}, fmt.Errorf("%w: %d bytes, and the header says %d", errWebP, len(b), n)
	}
	chunks, err := splitChunks(b[12:])
	if err != nil {
		return webpFile{}, err
	}
	var f webpFile
	f.lossless = true
	extended, animated := false, false
	for i, c := range chunks {
		switch c.id {
		case "VP8X":
			if i != 0 || len(c.data) < 10 {
				return webpFile{}, fmt.Errorf("%w: VP8X out of place or of %d bytes", errWebP, len(c.data))
			}
			extended = true
			f.alpha, animated = c.data[0]&flagAlpha != 0, c.data[0]&flagAnimation != 0
			f.width, f.height = uint24(c.data[4:])+1, uint24(c.data[7:])+1
		case "ICCP":
			f.icc = c.data
		case "EXIF":
			f.exif = c.data
		case "ANIM":
			if len(c.data) < 6 {
				return webpFile{}, fmt.Errorf("%w: ANIM of %d bytes", errWebP, len(c.data))
			}
			f.background, f.loop = binary.LittleEndian.Uint32(c.data), binary.LittleEndian.Uint16(c.data[4:])
		case "ANMF":
			if err := f.addFrame(c.data); err != nil {
				return webpFile{}, err
			}
		case "ALPH", "VP8 ", "VP8L":
			f.still = append(f.still, c)
		}
	}
	return f, f.check(extended, animated)
}

func (f *webpFile) addFrame(data []byte) error {
	if len(data) < webpFrameHead {
		return fmt.Errorf("%w: ANMF of %d bytes", errWebP, len(data))
	}
	var fr webpFrame
	copy(fr.head[:], data)
	fr.body = data[webpFrameHead:]
	chunks, err := splitChunks(fr.body)
	if err != nil {
		return err
	}
	p, err := readPicture(chunks)
	if err != nil {
		return err
	}
	x, y := 2*uint24(data), 2*uint24(data[3:])
	w, h := uint24(data[6:])+1, uint24(data[9:])+1
	if p.width != w || p.height != h || x+w > f.width || y+h > f.height {
		return fmt.Errorf("%w: frame %d is %d x %d px at %d,%d, its picture %d x %d, the canvas %d x %d",
			errWebP, len(f.frames)+1, w, h, x, y, p.width, p.height, f.width, f.height)
	}
	f.lossless = f.lossless && p.lossless
	f.frames = append(f.frames, fr)
	return nil
}

func (f *webpFile) check(extended, animated bool) error {
	if animated {
		if len(f.frames) == 0 || len(f.still) > 0 {
			return fmt.Errorf("%w: an animation of %d frames and %d chunks outside of them", errWebP, len(f.frames), len(f.still))
		}
		return nil
	}
	if len(f.frames) > 0 {
		return fmt.Errorf("%w: %d frames in what is no animation", errWebP, len(f.frames))
	}
	p, err := readPicture(f.still)
	if err != nil {
		return err
	}
	if !extended {
		f.width, f.height, f.alpha = p.width, p.height, p.alpha
	}
	f.lossless = p.lossless
	if p.width != f.width || p.height != f.height {
		return fmt.Errorf("%w: the picture is %d x %d px, the canvas %d x %d", errWebP, p.width, p.height, f.width, f.height)
	}
	return nil
}

type webpPicture struct {
	width, height   int
	alpha, lossless bool
}

// readPicture reads the header of a VP8 or VP8L bit stream.
func readPicture(chunks []riffChunk) (webpPicture, error) {
	var p webpPicture
	seen := false
	for _, c := range chunks {
		switch {
		case c.id == "ALPH":
			p.alpha = true
		case c.id == "VP8 " && !seen:
			// A key frame's tag, its start code, two sizes of 14 bits.
			if len(c.data) < 10 || c.data[0]&1 != 0 || string(c.data[3:6]) != "\x9d\x01\x2a" {
				return p, fmt.Errorf("%w: no VP8 key frame", errWebP)
			}
			if part := uint24(c.data) >> 5; part > len(c.data)-10 {
				return p, fmt.Errorf("%w: first partition of %d bytes in a VP8 chunk of %d", errWebP, part, len(c.data))
			}
			seen = true
			p.width = int(binary.LittleEndian.Uint16(c.data[6:])) & 0x3fff
			p.height = int(binary.LittleEndian.Uint16(c.data[8:])) & 0x3fff
		case c.id == "VP8L" && !seen:
			if len(c.data) < 5 || c.data[0] != 0x2f {
				return p, fmt.Errorf("%w: no VP8L signature", errWebP)
			}
			seen, p.lossless = true, true
			bits := binary.LittleEndian.Uint32(c.data[1:])
			p.width, p.height = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
			p.alpha = p.alpha || bits>>28&1 != 0
		}
	}
	if !seen {
		return p, fmt.Errorf("%w: no picture", errWebP)
	}
	return p, nil
}

// duration is what one round of an animation takes.
func (f webpFile) duration() time.Duration {
	var total time.Duration
	for _, fr := range f.frames {
		total += time.Duration(fr.delay()) * time.Millisecond
	}
	return total
}

// bytes puts the file together, in the simple form where that says everything.
func (f webpFile) bytes() []byte {
	body := make([]byte, 0, f.size())
	appendChunk := func(id string, parts ...[]byte) {
		n := 0
		for _, p := range parts {
			n += len(p)
		}
		body = append(body, id...)
		body = binary.LittleEndian.AppendUint32(body, uint32(n))
		for _, p := range parts {
			body = append(body, p...)
		}
		if n&1 != 0 {
			body = append(body, 0)
		}
	}
	simple := len(f.still) == 1 && len(f.icc) == 0 && len(f.exif) == 0
	body = append(body, "RIFF\x00\x00\x00\x00WEBP"...)
	if !simple {
		appendChunk("VP8X", f.extended())
	}
	if len(f.icc) > 0 {
		appendChunk("ICCP", f.icc)
	}
	if len(f.frames) > 0 {
		anim := binary.LittleEndian.AppendUint32(nil, f.background)
		appendChunk("ANIM", binary.LittleEndian.AppendUint16(anim, f.loop))
	}
	for _, c := range f.still {
		appendChunk(c.id, c.data)
	}
	for _, fr := range f.frames {
		appendChunk("ANMF", fr.head[:], fr.body)
	}
	if len(f.exif) > 0 {
		appendChunk("EXIF", f.exif)
	}
	binary.LittleEndian.PutUint32(body[4:], uint32(len(body)-8))
	return body
}

// extended is the content of VP8X.
func (f webpFile) extended() []byte {
	x := make([]byte, 10)
	if f.alpha {
		x[0] |= flagAlpha
	}
	if len(f.frames) > 0 {
		x[0] |= flagAnimation
	}
	if len(f.icc) > 0 {
		x[0] |= flagICC
	}
	if len(f.exif) > 0 {
		x[0] |= flagEXIF
	}
	for i := range 3 {
		x[4+i] = byte((f.width - 1) >> (8 * i))
		x[7+i] = byte((f.height - 1) >> (8 * i))
	}
	return x
}

// size is at least the length of bytes.
func (f webpFile) size() int {
	n := 64 + len(f.icc) + len(f.exif)
	for _, c := range f.still {
		n += 9 + len(c.data)
	}
	for _, fr := range f.frames {
		n += 9 + webpFrameHead + len(fr.body)
	}
	return n
}
