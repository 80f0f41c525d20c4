package picture

import (
	"image"
	"math"
)

// sketch averages a picture over a grid of at most 48 cells a side and at least
// 8 pixels each, premultiplied, so that noise and sharpness do not count but
// place, colour and transparency do.
func sketch(img *image.NRGBA) [][4]float64 {
	const cells = 48
	w, h := img.Rect.Dx(), img.Rect.Dy()
	nx, ny := min(cells, max(1, w/8)), min(cells, max(1, h/8))
	sums, counts := make([][4]float64, nx*ny), make([]float64, nx*ny)
	for y := range h {
		base := (y * ny / h) * nx
		row := img.Pix[y*img.Stride : y*img.Stride+4*w]
		for cx := range nx {
			from, to := (cx*w+nx-1)/nx, ((cx+1)*w+nx-1)/nx
			var r, g, b, alpha int
			for p := row[4*from : 4*to]; len(p) >= 4; p = p[4:] {
				a := int(p[3])
				r, g, b, alpha = r+int(p[0])*a, g+int(p[1])*a, b+int(p[2])*a, alpha+a
			}
			sum := &sums[base+cx]
			sum[0] += float64(r) / 255
			sum[1] += float64(g) / 255
			sum[2] += float64(b) / 255
			sum[3] += float64(alpha)
			counts[base+cx] += float64(to - from)
		}
	}
	for i := range sums {
		for j := range 4 {
			sums[i][j] /= counts[i]
		}
	}
	return sums
}

// Difference is the mean and the largest distance of two sketches of the same size, in steps of 255.
func Difference(a, b *image.NRGBA) (mean, worst float64) {
	sa, sb := sketch(a), sketch(b)
	for i := range sa {
		d := 0.0
		for j := range 4 {
			d = max(d, math.Abs(sa[i][j]-sb[i][j]))
		}
		mean += d / float64(len(sa))
		worst = max(worst, d)
	}
	return mean, worst
}

// Likeness is the correlation of two pictures' brightness: 1 for the same, -1 for a negative.
func Likeness(a, b *image.NRGBA) float64 {
	sa, sb := sketch(a), sketch(b)
	var ma, mb, saa, sbb, sab float64
	light := func(c [4]float64) float64 { return 0.3*c[0] + 0.6*c[1] + 0.1*c[2] }
	for i := range sa {
		ma += light(sa[i]) / float64(len(sa))
		mb += light(sb[i]) / float64(len(sb))
	}
	for i := range sa {
		da, db := light(sa[i])-ma, light(sb[i])-mb
		saa, sbb, sab = saa+da*da, sbb+db*db, sab+da*db
	}
	if saa == 0 || sbb == 0 {
		return 1
	}
	return sab / math.Sqrt(saa*sbb)
}
