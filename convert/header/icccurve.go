package header

import (
	"encoding/binary"
	"math"
)

// isSRGBCurve compares a tone curve with that of sRGB at fifteen places, as encoded values.
func isSRGBCurve(tag []byte) bool {
	for step := 1; step < 16; step++ {
		x := float64(step) / 16
		y, ok := evalCurve(tag, x)
		if !ok || !(math.Abs(encodeSRGB(y)-x) <= curveTolerance) { // so that NaN is none
			return false
		}
	}
	return true
}

// encodeSRGB is the transfer function of IEC 61966-2-1.
func encodeSRGB(linear float64) float64 {
	if linear <= 0.0031308 {
		return 12.92 * linear
	}
	return 1.055*math.Pow(linear, 1/2.4) - 0.055
}

// evalCurve evaluates a curveType or parametricCurveType tag at x in 0..1.
func evalCurve(tag []byte, x float64) (y float64, ok bool) {
	if len(tag) < 12 {
		return 0, false
	}
	switch string(tag[:4]) {
	case "curv":
		n := int64(binary.BigEndian.Uint32(tag[8:]))
		points := tag[12:]
		switch {
		case n == 0:
			return x, true
		case n > int64(len(points)/2):
			return 0, false
		case n == 1:
			return math.Pow(x, float64(binary.BigEndian.Uint16(points))/256), true
		}
		at := x * float64(n-1)
		i := min(int64(at), n-2)
		low, high := float64(binary.BigEndian.Uint16(points[2*i:])), float64(binary.BigEndian.Uint16(points[2*i+2:]))
		return (low + (high-low)*(at-float64(i))) / 65535, true
	case "para":
		return evalParametric(int(binary.BigEndian.Uint16(tag[8:])), tag[12:], x)
	}
	return 0, false
}

// evalParametric evaluates the functions of ICC.1:2022, table 68.
func evalParametric(kind int, b []byte, x float64) (y float64, ok bool) {
	counts := [...]int{1, 3, 4, 5, 7}
	if kind >= len(counts) || len(b) < 4*counts[kind] {
		return 0, false
	}
	var p [7]float64 // g a b c d e f
	for i := range counts[kind] {
		p[i] = fixed(b[4*i:])
	}
	g, a, o, c, d, e, f := p[0], p[1], p[2], p[3], p[4], p[5], p[6]
	switch kind {
	case 0:
		return math.Pow(x, g), true
	case 1, 2: // c is the offset of kind 2, and 0 for kind 1
		if a*x+o >= 0 {
			return math.Pow(a*x+o, g) + c, true
		}
		return c, true
	case 3:
		if x >= d {
			return math.Pow(a*x+o, g), true
		}
		return c * x, true
	}
	if x >= d {
		return math.Pow(a*x+o, g) + e, true
	}
	return c*x + f, true
}
