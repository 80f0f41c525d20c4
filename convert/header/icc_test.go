package header

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

// D50-adapted colorants as the common profiles state them.
var (
	adobeRGB  = [3][3]float64{{0.6097, 0.3111, 0.0195}, {0.2053, 0.6257, 0.0609}, {0.1492, 0.0632, 0.7446}}
	displayP3 = [3][3]float64{{0.5151, 0.2412, -0.0011}, {0.2919, 0.6922, 0.0419}, {0.1572, 0.0666, 0.7841}}
)

// sampledSRGB is the curve of sRGB in n points.
func sampledSRGB(n int) []byte {
	points := make([]uint16, n)
	for i := range points {
		x := float64(i) / float64(n-1)
		if x <= 0.04045 {
			x /= 12.92
		} else {
			x = math.Pow((x+0.055)/1.055, 2.4)
		}
		points[i] = uint16(math.Round(x * 65535))
	}
	return curvTag(points...)
}

func TestProfiles(t *testing.T) {
	withLUT := func(base []byte) []byte {
		p, _ := newProfile(base)
		tags := map[string][]byte{"A2B0": []byte("mAB \x00\x00\x00\x00")}
		for _, name := range []string{"rXYZ", "gXYZ", "bXYZ", "rTRC", "gTRC", "bTRC"} {
			tags[name] = p.tag(name)
		}
		return profileOf("RGB ", tags)
	}
	mluc := append([]byte("mluc\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x0cenUS\x00\x00\x00\x04\x00\x00\x00\x1c"), 0, 'P', 0, '3')
	lied := srgbProfile()
	binary.BigEndian.PutUint32(lied, uint32(len(lied)+1))
	manyTags := srgbProfile()
	binary.BigEndian.PutUint32(manyTags[iccHeader:], 1<<31)
	for _, c := range []struct {
		name    string
		profile []byte
		want    Profile
		matrix  bool
		title   string
	}{
		{"srgb, parametric", srgbProfile(), ProfileSRGB, true, "anything"},
		{"srgb, 1024 points", matrixProfile("c2", srgbColorants, sampledSRGB(1024)), ProfileSRGB, true, "c2"},
		{"srgb, 42 points", matrixProfile("c2", srgbColorants, sampledSRGB(42)), ProfileSRGB, true, "c2"},
		{"srgb with bytes behind", append(srgbProfile(), 0, 0, 0), ProfileSRGB, true, "anything"},
		{"named srgb, linear", matrixProfile("sRGB IEC61966-2.1", srgbColorants, curvTag()), ProfileWide, true, "sRGB IEC61966-2.1"},
		{"named srgb, gamma 1.8", matrixProfile("sRGB", srgbColorants, curvTag(461)), ProfileWide, true, "sRGB"},
		{"a curve of roots of negative numbers", matrixProfile("sRGB", srgbColorants, paraTag(3, 2.4, 0, -1, 0, 0)), ProfileWide, true, "sRGB"},
		{"named srgb, primaries of P3", matrixProfile("sRGB", displayP3, srgbCurve), ProfileWide, true, "sRGB"},
		{"adobe rgb", matrixProfile("Adobe RGB (1998)", adobeRGB, curvTag(563)), ProfileWide, true, "Adobe RGB (1998)"},
		{"display p3", matrixProfile("Display P3", displayP3, srgbCurve), ProfileWide, true, "Display P3"},
		{"tables beside the matrix", withLUT(srgbProfile()), ProfileWide, false, ""},
		{"tables alone", profileOf("RGB ", map[string][]byte{"A2B0": []byte("mft2")}), ProfileWide, false, ""},
		{"localized name", profileOf("GRAY", map[string][]byte{"desc": mluc}), ProfileGray, false, "P3"},
		{"cmyk", profileOf("CMYK", map[string][]byte{"desc": descTag("SWOP")}), ProfileCMYK, false, "SWOP"},
		{"lab", profileOf("Lab ", nil), ProfileBroken, false, ""},
		{"not a profile", bytes.Repeat([]byte("x"), 500), ProfileBroken, false, ""},
		{"shorter than it says", lied, ProfileBroken, false, ""},
		{"too many tags", manyTags, ProfileBroken, false, ""},
		{"header alone", srgbProfile()[:iccHeader], ProfileBroken, false, ""},
		{"empty", []byte{}, ProfileBroken, false, ""},
	} {
		for where, file := range map[string][]byte{
			"jpeg": smallJPEG(iccSegment(1, 1, c.profile)),
			"png":  smallPNG(chunk("iCCP", append([]byte("name\x00\x00"), deflate(c.profile)...)...)),
		} {
			info, err := Parse(file)
			if err != nil || info.Profile != c.want || info.ProfileMatrix != c.matrix || info.ProfileName != c.title {
				t.Errorf("%s in %s: %v matrix %v %q (%v), want %v %v %q",
					c.name, where, info.Profile, info.ProfileMatrix, info.ProfileName, err, c.want, c.matrix, c.title)
			}
		}
	}
}

func TestProfilePieces(t *testing.T) {
	p := srgbProfile()
	a, b, c := p[:100], p[100:300], p[300:]
	big := bytes.Repeat([]byte("x"), 65000)
	var tooBig [][]byte
	for i := range 80 {
		tooBig = append(tooBig, iccSegment(byte(i+1), 80, big))
	}
	for _, tc := range []struct {
		name   string
		pieces [][]byte
		want   Profile
	}{
		{"none", nil, ProfileNone},
		{"in order", [][]byte{iccSegment(1, 3, a), iccSegment(2, 3, b), iccSegment(3, 3, c)}, ProfileSRGB},
		{"out of order", [][]byte{iccSegment(3, 3, c), iccSegment(1, 3, a), iccSegment(2, 3, b)}, ProfileSRGB},
		{"one missing", [][]byte{iccSegment(1, 3, a), iccSegment(3, 3, c)}, ProfileBroken},
		{"one twice", [][]byte{iccSegment(1, 3, a), iccSegment(1, 3, a), iccSegment(3, 3, c)}, ProfileBroken},
		{"counts differ", [][]byte{iccSegment(1, 2, a), iccSegment(2, 3, b)}, ProfileBroken},
		{"number zero", [][]byte{iccSegment(0, 1, p)}, ProfileBroken},
		{"number over the count", [][]byte{iccSegment(2, 1, p)}, ProfileBroken},
		{"count zero", [][]byte{iccSegment(0, 0, p)}, ProfileBroken},
		{"too large", tooBig, ProfileBroken},
		{"cut before the number", [][]byte{seg(mAPP2, []byte(iccMark)...)}, ProfileBroken},
	} {
		info, err := Parse(smallJPEG(tc.pieces...))
		if err != nil || info.Profile != tc.want {
			t.Errorf("%s: %v (%v), want %v", tc.name, info.Profile, err, tc.want)
		}
	}
}

// A profile that unpacks to far more than a profile can be costs no more than the bound.
func TestProfileBomb(t *testing.T) {
	packed := deflate(make([]byte, 3*maxProfile))
	info, err := Parse(smallPNG(chunk("iCCP", append([]byte("bomb\x00\x00"), packed...)...)))
	if err != nil || info.Profile != ProfileBroken {
		t.Errorf("%v (%v)", info.Profile, err)
	}
}
