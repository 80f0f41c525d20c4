package convert

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"karui/convert/header"
)

// corpusFolders are all of them.
var corpusFolders = []string{"photos", "graphics", "animated", "hard", "broken", "bombs"}

// long reports whether tests may take minutes instead of seconds.
func long() bool { return os.Getenv("KARUI_LONG") != "" }

// Every file of the corpus goes through the pool: it is kept for a reason, or becomes a variant that another decoder
// shows as the same picture the right way up, and that is smaller. The slow formats are made of every so many a file
// only, chosen by its name, unless KARUI_LONG is set; that takes some minutes.
func TestCorpus(t *testing.T) {
	for _, c := range []struct {
		name    string
		formats []header.Format
		oneOf   int   // how many files
		most    int64 // pixels
	}{
		{"webp", []header.Format{header.WebP}, 1, 1 << 40},
		{"avif", []header.Format{header.AVIF}, 5, 2_000_000},
		{"heic", []header.Format{header.HEIC}, 11, 600_000},
		{"avif,heic,webp", []header.Format{header.AVIF, header.HEIC, header.WebP}, 19, 600_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPool(t, nil)
			for _, folder := range corpusFolders {
				t.Run(folder, func(t *testing.T) {
					var paths []string
					for _, path := range corpus(t, folder, true) {
						info, _ := header.Parse(read(t, path))
						if long() || c.oneOf == 1 || namedFor(path, c.oneOf) && info.Pixels() <= c.most {
							paths = append(paths, path)
						}
					}
					throughPool(t, p, paths, Options{Formats: c.formats, Quality: 80, Keep: []string{KeepCopyright}})
				})
			}
			s := p.Stats()
			for _, cause := range []Cause{CauseCrash, CauseGarbage, CauseIdle, CauseMemory, CauseTimeout} {
				if s.Ended[cause] > 0 {
					t.Errorf("%d workers ended by %s", s.Ended[cause], cause)
				}
			}
		})
	}
}

// namedFor picks one of n files, always the same ones.
func namedFor(path string, n int) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(filepath.Base(path)))
	return h.Sum32()%uint32(n) == 0
}

func throughPool(t *testing.T, p *Pool, paths []string, opt Options) {
	t.Helper()
	var mu sync.Mutex
	codes := make(map[Code]int)
	var wg sync.WaitGroup
	turns := make(chan struct{}, 3)
	for _, path := range paths {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			source := read(t, path)
			r, err := p.Convert(t.Context(), source, opt)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				return
			}
			mu.Lock()
			codes[r.Decision.Code]++
			mu.Unlock()
			why := wrong(t, source, r)
			if why == "" {
				why = wrongOutcomes(opt, r)
			}
			if why != "" {
				t.Errorf("%s: %+v: %s", filepath.Base(path), r.Decision, why)
			}
		})
	}
	wg.Wait()
	t.Logf("%d files: %v", len(paths), codes)
}

// wrongOutcomes says what is wrong with the list of outcomes.
func wrongOutcomes(opt Options, r Result) string {
	if len(r.Outcomes) != len(opt.Formats) {
		return fmt.Sprintf("%d outcomes for %d formats", len(r.Outcomes), len(opt.Formats))
	}
	made := false
	for i, o := range r.Outcomes {
		switch code := o.Decision.Code; {
		case o.Format != opt.Formats[i]:
			return fmt.Sprintf("outcome %d is of %s", i, o.Format)
		case o.Decision.Reason == "":
			return fmt.Sprintf("no reason for %s", o.Format)
		case made != (code == NotTried):
			return fmt.Sprintf("%s: %s, behind a variant: %v", o.Format, code, made)
		case (code == Converted) != (r.Body != nil && r.Format == o.Format):
			return fmt.Sprintf("%s: %s, and the result is %s", o.Format, code, r.Format)
		case code == Converted:
			made = true
		case !made && !o.Decision.Settled:
			return fmt.Sprintf("%s is not settled: %s", o.Format, code)
		}
	}
	return ""
}

// lookAt is how many pixels of each frame are compared.
const lookAt = 20_000

// wrong says what is wrong with a result, "" when nothing is.
func wrong(t testing.TB, source []byte, r Result) string {
	if r.Decision.Reason == "" {
		return "no reason"
	}
	if r.Decision.Code != Converted {
		if r.Body != nil {
			return "kept, with a body"
		}
		return ""
	}
	if r.Format != r.Plan.Target || !worthwhile(len(r.Body), len(source)) {
		return fmt.Sprintf("%s of %d bytes for %d", r.Format, len(r.Body), len(source))
	}
	if raceDetector && r.Info.Pixels() > 200_000 {
		return "" // the pool has looked at its container
	}
	shown, exif, err := decodeVariant(t, r.Format, r.Body)
	if err != nil {
		return err.Error()
	}
	w, h := r.Info.Upright()
	if b := shown[0].img.Rect; b.Dx() != w || b.Dy() != h {
		return fmt.Sprintf("%v where %d x %d px are due", b, w, h)
	}
	if exif != nil {
		tags, more, err := readTIFFTags(exif)
		if err != nil || more || len(tags) > 2 {
			return fmt.Sprintf("EXIF: %v, %v", tags, err)
		}
	}
	original, err := decodeOriginal(r.Info, source)
	if err != nil {
		if usual(err) || !r.Info.Whole {
			return ""
		}
		return "Go's decoder: " + err.Error()
	}
	if got, want := total(shown), total(original); len(shown) > 1 && got != want {
		return fmt.Sprintf("%d ms where %d are due", got, want)
	}
	// Quality 80, of a source of a lower one often less: the same picture, not the same pixels.
	limit := 6.0
	if r.Lossless {
		limit = 0.05
	}
	switch {
	case r.Info.Color == header.CMYK, r.Info.Color == header.YCCK, // Go does without a profile
		r.Info.Profile == header.ProfileGray, r.Info.Profile == header.ProfileWide && !r.Info.ProfileMatrix:
		limit = 25
	case r.Info.BitDepth == 16, r.Info.Alpha && r.Lossless: // rounding, and alpha over a ground
		limit = max(limit, 1)
	}
	if d := worst(original, shown, lookAt); d > limit {
		return fmt.Sprintf("mean difference of colours %.2f, at most %.2f", d, limit)
	}
	return ""
}

// usual reports whether an error of Go's decoders is about what they are known not to read.
func usual(err error) bool {
	for _, text := range []string{
		"unsupported JPEG feature", "unsupported subsampling", "invalid checksum", "unknown block type", "luma/chroma",
		"Huffman", "missing SOI", "too much data", "not enough", "chunk out of order", "unsupported luma",
		"invalid JPEG format", "not enough image data", "invalid format",
		"pixel size in decode out of range", "too much image data",
	} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

func TestBombsAreDecidedFromTheHeader(t *testing.T) {
	p := newPool(t, nil, WithCommand("/nowhere/karui")) // there is nobody to decode anything
	for _, path := range corpus(t, "bombs", true) {
		r := convertOne(t, p, read(t, path), webpOptions(80))
		switch filepath.Base(path) {
		case "png_ztxt_200MB.png": // its header is harmless
			if r.Plan.Keep {
				t.Errorf("%s: %+v", path, r.Decision)
			}
		default:
			if !r.Plan.Keep || !r.Decision.Settled {
				t.Errorf("%s: %+v", path, r.Decision)
			}
		}
	}
}

// The 200 MB of text inside this PNG of 1 px are not unpacked.
func TestTextBomb(t *testing.T) {
	p := newPool(t, func(c *Config) { c.WorkerMemory = 128 << 20 })
	r := convertOne(t, p, read(t, filepath.Join(corpusDir, "bombs", "png_ztxt_200MB.png")), webpOptions(80))
	if r.Decision.Code != Converted || r.CPU > 500e6 {
		t.Errorf("%+v after %s", r.Decision, r.CPU)
	}
}

// All eight orientations of one picture come out as the same picture, in every format, with nothing left in the file
// that would have it turned.
func TestOrientations(t *testing.T) {
	p := newPool(t, nil)
	for _, c := range []struct {
		family  string
		formats []header.Format
	}{
		{"images__Landscape_%d.jpg", []header.Format{header.WebP, header.AVIF}},
		{"images__Portrait_%d.jpg", []header.Format{header.WebP, header.AVIF}},
		{"imaging__orientation_%d.jpg", []header.Format{header.WebP, header.AVIF, header.HEIC}},
	} {
		for _, format := range c.formats {
			t.Run(format.String()+"/"+c.family[:6], func(t *testing.T) { orientations(t, p, c.family, format) })
		}
	}
}

func orientations(t *testing.T, p *Pool, family string, format header.Format) {
	var upright []moment
	for o := 1; o <= 8; o++ {
		name := fmt.Sprintf(family, o)
		source := read(t, filepath.Join(corpusDir, "hard", name))
		r := convertOne(t, p, source, Options{Formats: []header.Format{format}, Quality: 90, Keep: []string{KeepCopyright}})
		if r.Info.Orientation != o {
			t.Errorf("%s: orientation %d", name, r.Info.Orientation)
		}
		if r.Decision.Code != Converted {
			t.Errorf("%s: %+v", name, r.Decision)
			continue
		}
		// A decoder of AVIF or HEIC that is told to turn the picture would have done so here.
		shown, exif, err := decodeVariant(t, format, r.Body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if exif != nil {
			t.Errorf("%s: carries EXIF", name)
		}
		if upright == nil {
			upright = shown
		}
		if d := worst(upright, shown, lookAt); d > 5 {
			t.Errorf("%s differs from the upright one by %.2f", name, d)
		}
	}
}

// Of what stands in a photo besides pixels, only the copyright reaches viewers, and only when it is to be kept.
func TestMetadataInEveryFormat(t *testing.T) {
	p := newPool(t, nil)
	for _, path := range []string{"photos/govips__copyright.jpeg", "photos/mde__Nokia_3110c_Mobile_Phone_.jpg"} {
		source := from(path)(t)
		for _, format := range []header.Format{header.WebP, header.AVIF, header.HEIC} {
			for _, keep := range [][]string{nil, {KeepCopyright}} {
				r := convertOne(t, p, source, Options{Formats: []header.Format{format}, Quality: 30, Keep: keep})
				if r.Decision.Code != Converted {
					t.Errorf("%s as %s: %+v", path, format, r.Decision)
					continue
				}
				_, exif, err := decodeVariant(t, format, r.Body)
				if err != nil {
					t.Fatal(err)
				}
				tags := map[uint16]string{}
				if exif != nil {
					var more bool
					if tags, more, err = readTIFFTags(exif); err != nil || more {
						t.Errorf("%s as %s: more than one directory, %v", path, format, err)
					}
				}
				want := map[uint16]string{}
				if keep != nil && r.Info.Copyright != "" {
					want[tagCopyright] = r.Info.Copyright
				}
				if keep != nil && r.Info.Artist != "" {
					want[tagArtist] = r.Info.Artist
				}
				if !maps.Equal(tags, want) {
					t.Errorf("%s as %s: %v, want %v", path, format, tags, want)
				}
				for _, private := range []string{"http://ns.adobe.com", "Photoshop", "Nokia", "rdf:", "JFIF", "ICC_PROFILE", "uuid"} {
					if bytes.Contains(r.Body, []byte(private)) {
						t.Errorf("%s as %s: %q is in there", path, format, private)
					}
				}
			}
		}
	}
}

func TestAnimations(t *testing.T) {
	p := newPool(t, nil)
	seen := 0
	for _, path := range corpus(t, "animated", false) {
		source := read(t, path)
		r := convertOne(t, p, source, webpOptions(80))
		if r.Info.Format != header.GIF || !r.Info.Animated || r.Decision.Code != Converted {
			continue
		}
		seen++
		_, f, err := decodeWebP(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.frames) == 0 {
			t.Logf("%s: all %d frames are equal", path, r.Info.Frames)
			continue
		}
		if f.duration() != r.Info.Duration {
			t.Errorf("%s: %s where %s are due", path, f.duration(), r.Info.Duration)
		}
		if f.loop != webpLoop(r.Info.Loop) {
			t.Errorf("%s: loop %d for %d", path, f.loop, r.Info.Loop)
		}
	}
	if seen < 20 {
		t.Errorf("only %d animations", seen)
	}
}
