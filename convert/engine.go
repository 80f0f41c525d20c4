package convert

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/davidbyttow/govips/v2/vips"

	"karui/convert/header"
)

// engine converts one image after the other with libvips. It lives in worker processes only.
type engine struct {
	// warnings counts what libvips and the libraries below it complained about.
	warnings atomic.Int64
	// missing says of formats why this machine cannot write them, as far as that was tried.
	missing map[header.Format]string
}

// startEngine starts libvips, which must happen once in a process.
func startEngine() (*engine, error) {
	e := &engine{missing: map[header.Format]string{}}
	// libvips tells nobody how many warnings a JPEG gave, except for a line in its log.
	vips.LoggingSettings(func(string, vips.LogLevel, string) { e.warnings.Add(1) }, vips.LogLevelWarning)
	// One thread: several workers beat several threads. All zeros else: no operation is remembered.
	if err := vips.Startup(&vips.Config{ConcurrencyLevel: 1}); err != nil {
		return nil, fmt.Errorf("start libvips: %w", err)
	}
	return e, nil
}

// refusal is the outcome of a conversion that made no variant.
type refusal struct {
	code   Code
	reason string
}

func (r refusal) Error() string { return fmt.Sprintf("%s: %s", r.code, r.reason) }

func refuseWith(code Code, format string, args ...any) error {
	return refusal{code, fmt.Sprintf(format, args...)}
}

// made is a variant as it leaves the engine.
type made struct {
	body     []byte
	frames   int // decoded
	lossless bool
	why      string // lossy or lossless, and for what reason
}

// convert does one job. It may change source and append to it.
func (e *engine) convert(j job, source []byte) (result, []byte) {
	if j.Look != nil {
		return e.look(j, source)
	}
	size := len(source)
	before := e.warnings.Load()
	m, err := e.make(j, source)
	if err != nil || e.warnings.Load() != before {
		forget()
	}
	r := result{ID: j.ID, Frames: m.frames}
	if err != nil {
		var no refusal
		if !errors.As(err, &no) {
			no = refusal{EncodeFailed, tidy(err)}
		}
		r.Code, r.Reason = no.code, no.reason
		return r, nil
	}
	r.Bytes, r.Lossless = int64(len(m.body)), m.lossless
	got, err := inspect(j.Plan.Target, m.body)
	if err != nil {
		r.Code, r.Reason = Mismatch, err.Error()
		return r, nil
	}
	r.Width, r.Height = got.width, got.height
	if why := got.differs(j.Info, r); why != "" {
		r.Code, r.Reason = Mismatch, why
		return r, nil
	}
	if !worthwhile(len(m.body), size) {
		r.Code = NotSmaller
		r.Reason = fmt.Sprintf("%s, %d bytes where the original has %d", m.why, len(m.body), size)
		return r, nil
	}
	r.Code = Converted
	r.Reason = fmt.Sprintf("%s, %d bytes where the original has %d", m.why, len(m.body), size)
	return r, m.body
}

// forget empties the error buffer of libvips, which else mixes what this job left in it into the words of later ones.
// govips empties it when an operation fails.
func forget() {
	img, err := load([]byte("\xff\xd8\xff\xd9 no picture"), header.JPEG, func(*vips.ImportParams) {})
	if err == nil {
		img.Close()
	}
}

// worthwhile reports whether a variant is smaller than its original by at least 2 %.
func worthwhile(variant, original int) bool { return int64(variant)*100 <= int64(original)*98 }

func (e *engine) make(j job, source []byte) (made, error) {
	if j.Plan.Target == header.JPEG {
		return e.makePing(source)
	}
	switch j.Plan.Target {
	case header.WebP:
	case header.AVIF, header.HEIC:
		if e.missing[j.Plan.Target] != "" {
			return made{}, refuseWith(NoEncoder, "this machine cannot write %s: %s", j.Plan.Target, e.missing[j.Plan.Target])
		}
	default:
		return made{}, refuseWith(EncodeFailed, "%s is not made here", j.Plan.Target)
	}
	switch j.Plan.Source {
	case header.JPEG:
		return e.fromJPEG(j, source)
	case header.PNG:
		return e.fromPNG(j, source)
	case header.GIF:
		return e.fromGIF(j, source)
	}
	return made{}, refuseWith(NotConvertible, "%s is not read here", j.Plan.Source)
}

func (e *engine) fromJPEG(j job, source []byte) (made, error) {
	whole, err := prepareJPEG(source, j.Info.Orientation, needsProfile(j.Info))
	if err == nil {
		err = checkScan(whole)
	}
	if err != nil {
		return made{}, refusal{codeOfDefect(err), err.Error()}
	}
	before := e.warnings.Load()
	img, err := load(whole, header.JPEG, func(p *vips.ImportParams) { p.AutoRotate.Set(true) })
	if err != nil {
		return made{}, refuseWith(DecodeFailed, "%s", tidy(err))
	}
	m, err := encode(img, j, false, "lossy: a JPEG")
	img.Close()
	if err != nil {
		return made{}, e.failed(j, whole, err)
	}
	// The loader stops at a warning only when it reads on afterwards; one about the last rows is told at the end.
	if n := e.warnings.Load() - before; n > 0 {
		return made{}, damaged(j.Info, fmt.Errorf("%d warnings by the decoder", n))
	}
	return m, nil
}

func (e *engine) fromPNG(j job, source []byte) (made, error) {
	source = preparePNG(source, j.Info.Orientation, needsProfile(j.Info))
	lossless, why := j.Plan.PNG == PNGLossless, "as the site wants it"
	switch {
	case j.Plan.PNG != PNGAuto:
	case j.Plan.Dial >= 100:
		lossless, why = true, "the best quality"
	default:
		var err error
		if lossless, why, err = choosePNG(j.Info, source); err != nil {
			return made{}, err
		}
	}
	if lossless && j.Plan.Target != header.WebP {
		no := notFlat(j.Plan.Target, why)
		return made{}, refusal{no.Code, no.Reason}
	}
	if lossless && j.Plan.LosslessTooSlow && j.Plan.PNG == PNGAuto {
		return made{}, refuseWith(TooSlow, "%s, and that would take about %s of CPU time", why, roundDuration(j.Plan.LosslessCPU))
	}
	img, err := loadPNG(source, j.Info.Orientation != 1)
	if err != nil {
		return made{}, err
	}
	defer img.Close()
	m, err := encode(img, j, lossless, kindOf(lossless)+": "+why)
	if err != nil {
		return made{}, e.failed(j, source, err)
	}
	return m, nil
}

func kindOf(lossless bool) string {
	if lossless {
		return "lossless"
	}
	return "lossy"
}

// loadPNG opens a PNG. One that is turned must be read in any order, so that it is decoded into memory first.
func loadPNG(source []byte, turn bool) (*vips.ImageRef, error) {
	img, err := load(source, header.PNG, func(p *vips.ImportParams) {
		if turn {
			p.Access.Set(vips.AccessRandom)
		}
	})
	if err != nil {
		return nil, refuseWith(DecodeFailed, "%s", tidy(err))
	}
	if turn {
		if err := img.AutoRotate(); err != nil {
			img.Close()
			return nil, refuseWith(DecodeFailed, "%s", tidy(err))
		}
	}
	return img, nil
}

func (e *engine) fromGIF(j job, source []byte) (made, error) {
	facts, err := checkGIF(source)
	if err != nil {
		return made{}, refusal{codeOfDefect(err), err.Error()}
	}
	if facts.odd != "" {
		return made{}, refuseWith(OddCanvas, "%s", facts.odd)
	}
	lossless, why := chooseGIF(facts)
	best := j.Plan.Dial >= 100
	if best {
		lossless, why = true, "the best quality"
	}
	if lossless && j.Plan.Target != header.WebP {
		no := notFlat(j.Plan.Target, why)
		return made{}, refusal{no.Code, no.Reason}
	}
	m, err := e.gif(j, source, facts, lossless, why)
	if err == nil && lossless && !worthwhile(len(m.body), len(source)) && facts.noisy() && !best && j.Plan.CPU < j.Timeout/4 {
		return e.gif(j, source, facts, false, "lossless would not be smaller")
	}
	return m, err
}

// evenDelay is the delay that every frame has while the encoder works. From the place of a frame in time follows
// which frames of the original it stands for, also where the encoder has merged equal ones.
const evenDelay = 100 // milliseconds

func (e *engine) gif(j job, source []byte, facts gifFacts, lossless bool, why string) (made, error) {
	img, err := load(source, header.GIF, func(p *vips.ImportParams) { p.NumPages.Set(-1) })
	if err != nil {
		return made{}, refuseWith(DecodeFailed, "%s", tidy(err))
	}
	defer img.Close()
	if n := img.Pages(); n != len(facts.delays) || img.Width() != facts.width || img.PageHeight() != facts.height {
		return made{}, refuseWith(Mismatch, "%d frames of %d x %d px were decoded, the file has %d of %d x %d",
			n, img.Width(), img.PageHeight(), len(facts.delays), facts.width, facts.height)
	}
	if len(facts.delays) > 1 {
		even := make([]int, len(facts.delays))
		for i := range even {
			even[i] = evenDelay
		}
		if err := img.SetPageDelay(even); err != nil {
			return made{}, err
		}
	}
	m, err := encode(img, j, lossless, kindOf(lossless)+": "+why)
	if err != nil {
		return made{}, e.failed(j, source, err)
	}
	if m.frames = len(facts.delays); m.frames == 1 {
		return m, nil
	}
	m.body, err = retime(m.body, facts.delays, j.Info.Loop)
	return m, err
}

// retime gives an animation the delays (in hundredths of a second) and the loop count of its original.
func retime(body []byte, delays []int, loop int) ([]byte, error) {
	f, err := parseWebP(body)
	if err != nil {
		return nil, err
	}
	if len(f.frames) == 0 { // all frames are equal: the encoder made a still picture of them
		return body, nil
	}
	at := 0
	for i := range f.frames {
		n, rest := f.frames[i].delay()/evenDelay, f.frames[i].delay()%evenDelay
		if n == 0 || rest != 0 || at+n > len(delays) {
			return nil, refuseWith(Mismatch, "frame %d of the result lasts %d ms, after %d of %d frames", i+1, f.frames[i].delay(), at, len(delays))
		}
		ms := 0
		for _, d := range delays[at : at+n] {
			ms += 10 * d
		}
		if ms > webpDelayMost {
			return nil, refuseWith(Mismatch, "a frame would last %d ms, and WebP holds at most %d", ms, webpDelayMost)
		}
		f.frames[i].setDelay(ms)
		at += n
	}
	if at != len(delays) {
		return nil, refuseWith(Mismatch, "the result stands for %d of %d frames", at, len(delays))
	}
	f.loop = webpLoop(loop)
	return f.bytes(), nil
}

// webpLoop turns how often a GIF is played *again* (-1: it says nothing and is played once, 0: for ever) into how
// often a WebP is played in all (0: for ever), as browsers and gif2webp do.
func webpLoop(again int) uint16 {
	switch {
	case again < 0:
		return 1
	case again == 0:
		return 0
	}
	return uint16(min(again+1, 1<<16-1))
}

// load opens an image with the one loader for its format, so that no other of libvips' can be tricked into reading
// it. Every warning is an error, where the loader can tell.
func load(source []byte, format header.Format, set func(*vips.ImportParams)) (*vips.ImageRef, error) {
	loader := map[header.Format]vips.ImageType{
		header.JPEG: vips.ImageTypeJPEG, header.PNG: vips.ImageTypePNG, header.GIF: vips.ImageTypeGIF,
		header.WebP: vips.ImageTypeWEBP, header.AVIF: vips.ImageTypeAVIF, header.HEIC: vips.ImageTypeHEIF, // of [Pool.Look] only
	}[format]
	// govips chooses the loader by the magic bytes; it must not see others in them than we did.
	if header.Sniff(source) != format || vips.DetermineImageType(source) != loader {
		return nil, refuseWith(DecodeFailed, "not taken for a %s", format)
	}
	p := &vips.ImportParams{}
	p.FailOnError.Set(true)
	// Sequential: in the other mode a truncated file is found out at random, and its pixels leak.
	p.Access.Set(vips.AccessSequential)
	set(p)
	return vips.LoadImageFromBuffer(source, p)
}

// makePing turns the built-in picture into a JPEG.
func (e *engine) makePing(source []byte) (made, error) {
	img, err := loadPNG(source, false)
	if err != nil {
		return made{}, err
	}
	defer img.Close()
	p := vips.NewJpegExportParams()
	p.StripMetadata, p.Interlace = true, false
	body, _, err := img.ExportJpeg(p)
	return made{body: body, frames: 1, why: "ping"}, err
}

func codeOfDefect(err error) Code {
	if errors.Is(err, errCut) {
		return Truncated
	}
	return Broken
}

// damaged is the refusal for pixels that cannot be decoded to their end.
func damaged(info header.Info, err error) error {
	var no refusal
	if errors.As(err, &no) {
		return no
	}
	if !info.Whole {
		return refuseWith(Truncated, "cut off: %s", tidy(err))
	}
	return refuseWith(Broken, "damaged: %s", tidy(err))
}

// tidy makes one bounded line of an error of govips, which carries a stack trace.
func tidy(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\nStack:")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + " ..."
	}
	return text
}
