package picture

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"sync"
)

// Judge compares variants with their originals. Its methods may be called from
// any goroutine.
type Judge struct {
	// srgb names a file with the colour profile of sRGB.
	srgb string
	mu   sync.Mutex
	// passed are the judgements so far, by the digests of both files.
	passed map[[2][sha256.Size]byte][]string
}

// New makes a Judge. srgb names a file with the colour profile of sRGB, without
// which ("") originals of other profiles cannot be rendered and count as
// unreadable.
func New(srgb string) *Judge {
	return &Judge{srgb: srgb, passed: map[[2][sha256.Size]byte][]string{}}
}

// Problems names what is wrong with a variant of an original, if anything is. A
// pair that was judged before is not decoded again.
func (j *Judge) Problems(original, variant []byte) []string {
	pair := [2][sha256.Size]byte{sha256.Sum256(original), sha256.Sum256(variant)}
	j.mu.Lock()
	passed, known := j.passed[pair]
	j.mu.Unlock()
	if known {
		return passed
	}
	passed = j.judge(original, variant)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.passed[pair] = passed
	return passed
}

func (j *Judge) judge(original, variant []byte) []string {
	want, err := j.Render(original)
	if err != nil {
		return []string{fmt.Sprintf("a variant of a file that no other decoder reads: %v", err)}
	}
	if want.Keep != "" {
		return []string{"a variant although the original is " + want.Keep}
	}
	got, err := Decode(variant)
	if err != nil {
		return []string{fmt.Sprintf("the variant does not decode: %v", err)}
	}
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if len(variant) > len(original)*98/100 {
		say("%d bytes instead of %d are not 2 %% less", len(variant), len(original))
	}
	found = append(found, metadata(got)...)
	if got.Size() != want.Size() {
		say("size %v, want %v", got.Size(), want.Size())
		return found
	}
	if len(got.Profile) > 0 {
		for i := range got.Frames {
			if got.Frames[i].Image, err = j.managed(got.Frames[i].Image, got.Profile); err != nil {
				say("the variant's profile: %v", err)
				return found
			}
		}
	}
	if want.guess {
		if r := Likeness(want.Frames[0].Image, got.Frames[0].Image); r < 0.8 {
			say("light and dark correlate by %.2f only", r)
		}
		return found
	}
	if len(want.Frames) == 1 && len(got.Frames) == 1 {
		compare(say, "", want.Frames[0].Image, got.Frames[0].Image, want.loose)
		return found
	}
	found = append(found, sameTiming(want.Clip, got)...)
	for i, at := 0, 0; i < len(want.Frames); i++ {
		// The middle of each original frame, on the variant's time line.
		ms := want.Frames[i].shownFor()
		compare(say, fmt.Sprintf("frame %d: ", i), want.Frames[i].Image, got.at(at+ms/2), want.loose)
		at += ms
	}
	return found
}

func compare(say func(string, ...any), where string, want, got *image.NRGBA, loose float64) {
	mean, worst := Difference(want, got)
	// The corpus stays under this at quality 80; tiny pictures have few cells to average over.
	limit := 7 * loose
	if want.Rect.Dx()*want.Rect.Dy() < 32*32 {
		limit *= 2
	}
	if mean > limit || worst > 12*limit {
		say("%scolours differ by %.1f in the mean and %.0f at most (limit %.0f)", where, mean, worst, limit)
	}
}

// sameTiming compares total time and loops. Equal neighbours may have become one frame.
func sameTiming(want, got Clip) []string {
	if len(got.Frames) == 1 {
		return nil // all frames were equal, which their comparison proves
	}
	var found []string
	if got.total() != want.total() {
		found = append(found, fmt.Sprintf("animation of %d ms, want %d", got.total(), want.total()))
	}
	if len(got.Frames) > len(want.Frames) {
		found = append(found, fmt.Sprintf("%d frames, want %d", len(got.Frames), len(want.Frames)))
	}
	// "n more times" and "n times" are both read out of a GIF's number by browsers.
	if got.Plays != want.Plays && (want.Plays <= 1 || got.Plays != want.Plays-1) {
		found = append(found, fmt.Sprintf("plays %d times, want %d (0 is for ever)", got.Plays, want.Plays))
	}
	return found
}

// metadata names what a variant carries of its original's private side.
func metadata(c Clip) []string {
	var found []string
	if len(c.XMP) > 0 {
		found = append(found, fmt.Sprintf("%d bytes of XMP in a variant", len(c.XMP)))
	}
	if len(c.EXIF) == 0 {
		return found
	}
	tags := EXIFTags(bytes.TrimPrefix(c.EXIF, []byte("Exif\x00\x00")))
	for tag, name := range map[uint16]string{
		0x8825: "a place", 0x010f: "a maker", 0x0110: "a model", 0x0132: "a date", 0x9003: "a date",
		0x927c: "a maker's note", 0x9286: "a comment", 0x010e: "a description", 0x0131: "a program",
	} {
		if _, there := tags[tag]; there {
			found = append(found, fmt.Sprintf("%s (tag %#04x) in a variant's EXIF", name, tag))
		}
	}
	if o, there := tags[0x0112]; there && o != 1 {
		found = append(found, fmt.Sprintf("orientation %d left in a variant", o))
	}
	return found
}
