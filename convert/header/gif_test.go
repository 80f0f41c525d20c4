package header

import (
	"errors"
	"testing"
	"time"
)

func TestGIF(t *testing.T) {
	ms := time.Millisecond
	type want struct {
		frames, whole, empty, loop int
		min, max, total            time.Duration
		alpha, uncovered           bool
		extent                     [2]int
	}
	full, part := gifFrame(0, 0, 10, 8), gifFrame(2, 2, 3, 3)
	for _, c := range []struct {
		name  string
		parts [][]byte
		want  want
	}{
		{"one picture", [][]byte{full}, want{frames: 1, whole: 1, loop: -1, extent: [2]int{10, 8}}},
		{
			"three pictures, for ever",
			[][]byte{gifLoop(0), gifControl(1, false, 10), full, gifControl(1, false, 3), part, gifControl(1, true, 200), full},
			want{3, 3, 0, 0, 30 * ms, 2 * time.Second, 2130 * ms, true, false, [2]int{10, 8}},
		},
		{"no delay on the second", [][]byte{gifControl(1, false, 10), full, full}, want{2, 2, 0, -1, 0, 100 * ms, 100 * ms, false, false, [2]int{10, 8}}},
		{"the last of two controls counts", [][]byte{gifControl(1, false, 10), gifControl(1, false, 20), full}, want{1, 1, 0, -1, 200 * ms, 200 * ms, 200 * ms, false, false, [2]int{10, 8}}},
		{"loops", [][]byte{gifLoop(3), full, full}, want{frames: 2, whole: 2, loop: 3, extent: [2]int{10, 8}}},
		{"the last loop count counts", [][]byte{gifLoop(3), gifLoop(7), full}, want{frames: 1, whole: 1, loop: 7, extent: [2]int{10, 8}}},
		{"other extensions", [][]byte{[]byte("!\xfe\x03abc\x02de\x00"), []byte("!\x01\x00"), []byte("!\xff\x0bXMP DataXMP\x02xx\x00"), full}, want{frames: 1, whole: 1, loop: -1, extent: [2]int{10, 8}}},
		{"empty frame", [][]byte{full, gifFrame(0, 0, 0, 4)}, want{frames: 2, whole: 2, empty: 1, loop: -1, extent: [2]int{10, 8}}},
		{"beyond the canvas", [][]byte{full, gifFrame(8, 1, 9, 2)}, want{frames: 2, whole: 2, loop: -1, extent: [2]int{17, 8}}},
		{"first frame too small", [][]byte{part}, want{frames: 1, whole: 1, loop: -1, alpha: true, uncovered: true, extent: [2]int{5, 5}}},
		{"first frame too small, with transparency", [][]byte{gifControl(1, true, 0), part}, want{frames: 1, whole: 1, loop: -1, alpha: true, extent: [2]int{5, 5}}},
		{"wiped and not covered", [][]byte{full, gifControl(wipe, false, 0), part, part}, want{frames: 3, whole: 3, loop: -1, alpha: true, uncovered: true, extent: [2]int{10, 8}}},
		{"wiped and covered", [][]byte{gifControl(wipe, false, 0), full, full}, want{frames: 2, whole: 2, loop: -1, extent: [2]int{10, 8}}},
		{"wiped with transparency", [][]byte{full, gifControl(wipe, true, 0), part, part}, want{frames: 3, whole: 3, loop: -1, alpha: true, extent: [2]int{10, 8}}},
		{"the last one wiped", [][]byte{full, gifControl(wipe, false, 0), part}, want{frames: 2, whole: 2, loop: -1, extent: [2]int{10, 8}}},
	} {
		info, err := Parse(join(gifScreen(10, 8), join(c.parts...), gifEnd, []byte("behind")))
		got := want{
			info.Frames, info.FramesWhole, info.EmptyFrames, info.Loop,
			info.MinDelay, info.MaxDelay, info.Duration, info.Alpha, info.Uncovered,
			[2]int{info.ExtentWidth, info.ExtentHeight},
		}
		if err != nil || got != c.want {
			t.Errorf("%s:\n got %+v (%v)\nwant %+v", c.name, got, err, c.want)
		}
		if info.Animated != (c.want.frames > 1) || !info.Whole || info.Width != 10 || info.Height != 8 || info.PaletteSize != 2 {
			t.Errorf("%s: %+v", c.name, info)
		}
	}
}

func TestGIFStructure(t *testing.T) {
	good := join(gifScreen(10, 8), gifFrame(0, 0, 10, 8), gifFrame(0, 0, 10, 8), gifEnd)
	for _, c := range []struct {
		name          string
		bytes         []byte
		want          error
		frames, ended int
		whole, junk   bool
	}{
		{"whole", good, nil, 2, 2, true, false},
		{"without its trailer", good[:len(good)-1], nil, 2, 2, false, false},
		{"cut in the second frame's data", good[:len(good)-3], nil, 2, 1, false, false},
		{"cut in the second frame's header", good[:len(good)-12], nil, 1, 1, false, false},
		{"junk behind the first frame", join(gifScreen(10, 8), gifFrame(0, 0, 10, 8), []byte("junk")), nil, 1, 1, false, true},
		{"no frames", join(gifScreen(10, 8), gifEnd), nil, 0, 0, true, false},
		{"cut in the screen", good[:12], ErrShort, 0, 0, false, false},
		{"cut in the palette", good[:17], ErrShort, 0, 0, false, false},
		{"cut before the first frame", good[:19], ErrShort, 0, 0, false, false},
		{"cut in an extension", join(gifScreen(10, 8), []byte("!\xff\x0bNETSCAPE2.0\x03")), ErrShort, 0, 0, false, false},
		{"junk at once", join(gifScreen(10, 8), []byte("junk")), ErrBroken, 0, 0, false, false},
	} {
		info, err := Parse(c.bytes)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) ||
			info.Frames != c.frames || info.FramesWhole != c.ended || info.Whole != c.whole || info.Junk != c.junk {
			t.Errorf("%s: %+v (%v)", c.name, info, err)
		}
	}
}
