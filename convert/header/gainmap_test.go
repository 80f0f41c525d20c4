package header

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func xmpSegment(text string) []byte { return seg(mAPP1, []byte(xmpMark+text)...) }

// withPictures makes a file whose MPF index names the further pictures, which follow it directly.
func withPictures(further ...[]byte) []byte {
	entries := make([]byte, 16*(len(further)+1))
	index := func() []byte {
		return seg(mAPP2, append([]byte("MPF\x00"), tiff(binary.BigEndian,
			tiffField{0xB000, 7, 4, []byte("0100")},
			tiffField{0xB002, 7, uint32(len(entries)), entries})...)...)
	}
	first := smallJPEG(index())
	at := uint32(len(first) - (len(soi) + 4 + len("MPF\x00"))) // offsets count from the index's own TIFF header
	for i, picture := range further {
		binary.BigEndian.PutUint32(entries[16*(i+1)+4:], uint32(len(picture)))
		binary.BigEndian.PutUint32(entries[16*(i+1)+8:], at)
		at += uint32(len(picture))
	}
	return join(append([][]byte{smallJPEG(index())}, further...)...)
}

func TestGainMap(t *testing.T) {
	const (
		adobe     = `<rdf:Description xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" hdrgm:Version="1.0"/>`
		container = `xmlns:Container="http://ns.google.com/photos/1.0/container/" `
		apple     = `<apdi:AuxiliaryImageType>urn:com:apple:photo:2020:aux:hdrgainmap</apdi:AuxiliaryImageType>`
	)
	plain := smallJPEG()
	for _, c := range []struct {
		name     string
		bytes    []byte
		gain     bool
		mpf      bool
		pictures bool // is decided only where the further pictures begin
	}{
		{"plain", plain, false, false, false},
		{"adobe's namespace", smallJPEG(xmpSegment(adobe)), true, false, false},
		{"google's container", smallJPEG(xmpSegment(container + `Item:Semantic="GainMap"`)), true, false, false},
		{"google's container of a motion photo", smallJPEG(xmpSegment(container + `Item:Semantic="MotionPhoto"`)), false, false, false},
		{"the word alone", smallJPEG(xmpSegment(`dc:title="My GainMap"`)), false, false, false},
		{"iso", smallJPEG(seg(mAPP2, []byte(isoGainMapMark+"\x00\x00\x00\x00")...)), true, false, false},
		{"two views of a stereo camera", withPictures(plain), false, true, true},
		{"apple's second picture", withPictures(smallJPEG(xmpSegment(apple))), true, true, true},
		{"apple's third picture", withPictures(plain, smallJPEG(xmpSegment(apple))), true, true, true},
		{"second picture by iso", withPictures(smallJPEG(seg(mAPP2, []byte(isoGainMapMark)...))), true, true, true},
		{"an index that leads to no picture", withPictures([]byte("no picture")), false, true, true},
		{"a second picture that is no gain map", withPictures(smallJPEG(xmpSegment("dc:title"))), false, true, true},
	} {
		info, err := Parse(c.bytes)
		if err != nil || info.GainMap != c.gain || info.MPF != c.mpf || info.MPFPending {
			t.Errorf("%s: gain map %v, mpf %v, pending %v (%v)", c.name, info.GainMap, info.MPF, info.MPFPending, err)
		}
		if !c.pictures {
			continue
		}
		first := bytes.Index(c.bytes, eoi) + len(eoi)
		info, err = Parse(c.bytes[:first])
		if err != nil || info.GainMap || !info.MPFPending {
			t.Errorf("%s, prefix: gain map %v, pending %v (%v)", c.name, info.GainMap, info.MPFPending, err)
		}
	}
}

func TestMPFHostile(t *testing.T) {
	entries := make([]byte, 16*4000)
	for i := range len(entries) / 16 {
		binary.LittleEndian.PutUint32(entries[16*i+8:], 0xFFFFFFFF-uint32(i))
	}
	index := seg(mAPP2, append([]byte("MPF\x00"), tiff(binary.LittleEndian, tiffField{0xB002, 7, uint32(len(entries)), entries})...)...)
	info, err := Parse(smallJPEG(index, index))
	if err != nil || !info.MPFPending || info.GainMap {
		t.Errorf("%+v (%v)", info, err)
	}
}
