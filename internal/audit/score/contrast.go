package score

// plane is one channel of a picture.
type plane struct {
	w, h int
	v    []float32
}

// half makes a plane of half the size by the mean of four.
func (p plane) half() plane {
	q := plane{w: p.w / 2, h: p.h / 2}
	q.v = make([]float32, q.w*q.h)
	for y := range q.h {
		top, below := p.v[2*y*p.w:], p.v[(2*y+1)*p.w:]
		row := q.v[y*q.w : (y+1)*q.w]
		for x := range row {
			row[x] = (top[2*x] + top[2*x+1] + below[2*x] + below[2*x+1]) / 4
		}
	}
	return q
}

// reach is how far from a pixel what is around it counts: a square of 7 pixels.
const reach = 3

// plain keeps a difference from being infinite where there is nothing to see. Of 0.0009
// (that of structural similarity), 0.005 and 0.03 it agreed best with Butteraugli.
const plain = 0.005

// contrast is how much two planes differ, as far as what is around does not hide it.
func contrast(a, b plane) float64 {
	// For every column the sums over the rows in reach; they move down with it.
	cols := make([]sums, a.w)
	from, to := 0, 0 // the rows that are in the sums
	var third, eighth float64
	for y := range a.h {
		for ; to < min(a.h, y+reach+1); to++ {
			addRow(cols, a.v[to*a.w:(to+1)*a.w], b.v[to*a.w:(to+1)*a.w], 1)
		}
		for ; from < y-reach; from++ {
			addRow(cols, a.v[from*a.w:(from+1)*a.w], b.v[from*a.w:(from+1)*a.w], -1)
		}
		var s sums
		left, right := 0, 0
		for x := range a.w {
			for ; right < min(a.w, x+reach+1); right++ {
				s.add(&cols[right], 1)
			}
			for ; left < x-reach; left++ {
				s.add(&cols[left], -1)
			}
			d := s.contrast(float64((to - from) * (right - left)))
			third += d * d * d
			d *= d
			d *= d
			eighth += d * d
		}
	}
	n := float64(a.w * a.h)
	return (root(third/n, 3) + root(eighth/n, 8)) / 2
}

// sums are those of values and squares of both planes, and of squares of their difference.
type sums struct{ a, b, aa, bb, dd float64 }

func (s *sums) add(o *sums, sign float64) {
	s.a += sign * o.a
	s.b += sign * o.b
	s.aa += sign * o.aa
	s.bb += sign * o.bb
	s.dd += sign * o.dd
}

func addRow(cols []sums, a, b []float32, sign float64) {
	for x := range cols {
		va, vb := float64(a[x]), float64(b[x])
		cols[x].a += sign * va
		cols[x].b += sign * vb
		cols[x].aa += sign * va * va
		cols[x].bb += sign * vb * vb
		cols[x].dd += sign * (va - vb) * (va - vb)
	}
}

// contrast is that of n pixels.
func (s *sums) contrast(n float64) float64 {
	ma, mb := s.a/n, s.b/n
	busy := max(0, s.aa/n-ma*ma) + max(0, s.bb/n-mb*mb)
	return max(0, s.dd/n) / (busy + plain)
}
