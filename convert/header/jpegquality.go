package header

import "encoding/binary"

// quantTable is one quantisation table in zigzag order. Its sum is 0 when it was not defined.
type quantTable struct {
	step [64]uint16
	wide bool // 16-bit steps
	set  bool
}

// The example tables of ITU-T T.81, K.1 (luminance) and K.2 (chrominance), in zigzag order. libjpeg and nearly
// everything after it scales these by a quality from 1 to 100.
var annexK = [2][64]uint16{
	{
		16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40,
		26, 24, 22, 22, 24, 49, 35, 37, 29, 40, 58, 51, 61, 60, 57, 51,
		56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87,
		95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99,
	},
	{
		17, 18, 18, 24, 21, 24, 47, 26, 26, 47, 99, 66, 56, 66, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
	},
}

// readQuantTables reads the tables of one DQT segment, as far as they are whole.
func readQuantTables(tables *[4]quantTable, data []byte) {
	for len(data) > 0 {
		wide, id := data[0]>>4 != 0, data[0]&15
		data = data[1:]
		size := 64
		if wide {
			size = 128
		}
		if int(id) >= len(tables) || len(data) < size {
			return
		}
		t := &tables[id]
		t.set, t.wide = true, wide
		for i := range t.step {
			if wide {
				t.step[i] = binary.BigEndian.Uint16(data[2*i:])
			} else {
				t.step[i] = uint16(data[i])
			}
		}
		data = data[size:]
	}
}

// quality is the libjpeg quality that the tables in use fit best, 0 without tables. Luminance counts three times as
// much as chrominance where encoders chose differently for the two: that is what the eye sees.
func (j *jpegState) quality(color Color) int {
	first, second := j.table(0), j.table(1)
	if first == nil {
		return 0
	}
	luma := first.fit(&annexK[0])
	if color != YCC && color != YCCK || second == nil || second == first {
		return luma
	}
	return (3*luma + second.fit(&annexK[1]) + 2) / 4
}

func (j *jpegState) table(component int) *quantTable {
	id := int(j.components[component].table)
	if id >= len(j.quant) || !j.quant[id].set {
		return nil
	}
	return &j.quant[id]
}

// lowFrequencies is how many coefficients, in zigzag order, carry what one sees of a picture at a normal distance.
const lowFrequencies = 15

// fit returns the quality whose scaled table is nearest to t. A table of a different make (Photoshop, mozjpeg,
// phones) has no true answer: it is taken as what the better of its whole and its low frequencies amounts to, since
// an estimate that is too low costs looks and one that is too high only bytes.
func (t *quantTable) fit(base *[64]uint16) int {
	whole := t.nearest(base, len(base))
	if t.distance(base, whole) == 0 {
		return whole
	}
	return max(whole, t.nearest(base, lowFrequencies))
}

// nearest compares sums over the first n steps: these only fall as quality grows, so seven halvings find the place.
func (t *quantTable) nearest(base *[64]uint16, n int) int {
	sum := 0
	for _, step := range t.step[:n] {
		sum += int(step)
	}
	low, high := 1, 100
	for low < high { // the lowest quality whose sum is not larger
		q := (low + high) / 2
		if t.scaledSum(base, n, q) <= sum {
			high = q
		} else {
			low = q + 1
		}
	}
	best := low
	for q := max(low-1, 1); q <= min(low+1, 100); q++ {
		if d, e := abs(t.scaledSum(base, n, q)-sum), abs(t.scaledSum(base, n, best)-sum); d < e {
			best = q
		}
	}
	return best
}

func (t *quantTable) scaledSum(base *[64]uint16, n, quality int) int {
	scale, limit, sum := t.scale(quality), t.limit(), 0
	for _, step := range base[:n] {
		sum += scaled(int(step), scale, limit)
	}
	return sum
}

func (t *quantTable) distance(base *[64]uint16, quality int) int {
	scale, limit, sum := t.scale(quality), t.limit(), 0
	for i, step := range base {
		sum += abs(scaled(int(step), scale, limit) - int(t.step[i]))
	}
	return sum
}

// scale is jpeg_quality_scaling of libjpeg, in percent.
func (t *quantTable) scale(quality int) int {
	if quality < 50 {
		return 5000 / quality
	}
	return 200 - 2*quality
}

// limit is what libjpeg caps a step at: 8 bits for baseline files.
func (t *quantTable) limit() int {
	if t.wide {
		return 32767
	}
	return 255
}

func scaled(step, scale, limit int) int {
	return min(max((step*scale+50)/100, 1), limit)
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
