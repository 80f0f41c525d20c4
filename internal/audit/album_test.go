package audit

import (
	"bytes"
	"testing"

	"karui/convert"
)

func sized(n int, format string) shown {
	return shown{make([]byte, n), format, convert.View{Width: 90, Height: 60, Pix: bytes.Repeat([]byte{90, 140, 60, 255}, 90*60)}}
}

func (p pair) size() int64 { return int64(len(p.before.body) + len(p.after.body)) }

func TestSmallPicturesLeaveRoomForLargeOnes(t *testing.T) {
	a := newAlbum(100_000, []int{0, 1, 2, 3})
	a.pass(9) // has no share
	a.pass(3)
	for i := range 2 {
		if p := a.take(i, sized(300, "jpeg"), sized(200, "webp")); p.preview || p.size() != 500 {
			t.Errorf("%d: %d bytes, preview %t", i, p.size(), p.preview)
		}
	}
	if p := a.take(2, sized(59_000, "png"), sized(40_000, "avif")); p.preview || p.size() != 99_000 {
		t.Errorf("%d bytes, preview %t", p.size(), p.preview)
	}
	if p := a.take(2, sized(1, "png"), sized(1, "webp")); p.size() != 0 {
		t.Error("an image has pictures twice")
	}
}

func TestWhatDoesNotFitIsShownSmaller(t *testing.T) {
	for name, test := range map[string]struct {
		room          int64
		before, after shown
		preview, none bool
	}{
		"too large":                {50_000, sized(1<<20, "jpeg"), sized(10, "webp"), true, false},
		"not for all browsers":     {50_000, sized(10, "jpeg"), sized(10, "heic"), true, false},
		"no room at all":           {100, sized(1<<20, "jpeg"), sized(10, "webp"), false, true},
		"a drawing never comes in": {50_000, sized(10, "svg"), sized(10, "webp"), true, false},
	} {
		p := fit(test.room, test.before, test.after)
		if p.preview != test.preview || (p.size() == 0) != test.none || p.size() > test.room {
			t.Errorf("%s: %d bytes, preview %t", name, p.size(), p.preview)
		}
		if p.preview && (p.before.mediaType != "image/jpeg" || p.after.mediaType != "image/jpeg") {
			t.Errorf("%s: %s and %s", name, p.before.mediaType, p.after.mediaType)
		}
	}
}

// Whatever the images are, all pictures together stay within the room.
func TestAlbumIsBounded(t *testing.T) {
	var all []int
	for i := range 50 {
		all = append(all, i)
	}
	const room = 200_000
	a := newAlbum(room, all)
	var sum int64
	for i := range all {
		sum += a.take(i, sized(i*i*40, "jpeg"), sized(i*i*20, "webp")).size()
	}
	if sum > room || sum < room/4 {
		t.Errorf("%d of %d bytes", sum, room)
	}
}
