package picture

import (
	"encoding/binary"
	"math"
)

// SRGB is a colour profile (ICC version 2) of sRGB, for ImageMagick to convert to.
// It has the primaries of IEC 61966-2-1, adapted to D50, and its tone curve at
// 1,024 points.
func SRGB() []byte {
	fixed := func(values ...float64) (b []byte) {
		for _, v := range values {
			b = binary.BigEndian.AppendUint32(b, uint32(int32(math.Round(v*65536))))
		}
		return b
	}
	xyz := func(values ...float64) []byte { return append([]byte("XYZ \x00\x00\x00\x00"), fixed(values...)...) }

	const points = 1024
	curve := binary.BigEndian.AppendUint32([]byte("curv\x00\x00\x00\x00"), points)
	for i := range points {
		v := float64(i) / (points - 1)
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		curve = binary.BigEndian.AppendUint16(curve, uint16(math.Round(v*65535)))
	}
	const name = "sRGB\x00"
	description := binary.BigEndian.AppendUint32([]byte("desc\x00\x00\x00\x00"), uint32(len(name)))
	description = append(append(description, name...), make([]byte, 4+4+2+1+67)...) // no other languages

	d50 := []float64{0.9642, 1, 0.8249}
	tags := []struct {
		name string
		data []byte
	}{
		{"desc", description},
		{"cprt", []byte("text\x00\x00\x00\x00none\x00")},
		{"wtpt", xyz(d50...)},
		{"rXYZ", xyz(0.43607, 0.22249, 0.01392)},
		{"gXYZ", xyz(0.38515, 0.71687, 0.09708)},
		{"bXYZ", xyz(0.14307, 0.06061, 0.71410)},
		{"rTRC", curve},
		{"gTRC", curve},
		{"bTRC", curve},
	}
	table := binary.BigEndian.AppendUint32(nil, uint32(len(tags)))
	var data []byte
	from := 128 + 4 + 12*len(tags)
	for _, tag := range tags {
		table = append(table, tag.name...)
		table = binary.BigEndian.AppendUint32(table, uint32(from+len(data)))
		table = binary.BigEndian.AppendUint32(table, uint32(len(tag.data)))
		data = append(data, tag.data...)
		data = append(data, make([]byte, (4-len(data)%4)%4)...)
	}
	head := make([]byte, 128)
	binary.BigEndian.PutUint32(head, uint32(from+len(data)))
	copy(head[8:], "\x02\x10\x00\x00mntrRGB XYZ ")
	copy(head[24:], "\x07\xe7\x00\x01\x00\x01") // some date: 2023-01-01
	copy(head[36:], "acsp")
	copy(head[68:], fixed(d50...))
	return append(append(head, table...), data...)
}
