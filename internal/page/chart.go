package page

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Chart is a drawing with its labels, for the template "chart".
type Chart struct {
	// ID is the element's, of letters, digits and dashes; Note says what is counted.
	ID, Title, Note string
	// Text is what the chart shows, in words, for those who do not see it.
	Text string
	// Y are labels from the top to the bottom, X from the left to the right, at even
	// distances.
	Y, X []string
	Keys []Key
	SVG  template.HTML
	// Empty is shown instead of a drawing, where there is nothing to draw.
	Empty string
	// The first From places are shaded: nothing is known of them, as Before says.
	// Nothing is written where no series has a value in the rest.
	From            int
	Before, Nothing string
}

// Key is one entry of a legend. Class is a name of the style sheet.
type Key struct{ Name, Class, Value string }

// Series is one colour of bars, or one line. Values that are NaN are not known.
type Series struct {
	Key
	Values []float64
	// Step lines keep a value until the next.
	Step bool
}

// Limit is a line across the chart.
type Limit struct {
	At    float64
	Name  string
	Class string
	// Below puts the name below the line.
	Below bool
}

// Scale maps values to 0 at the bottom and 1 at the top.
type Scale struct {
	Min, Max float64
	// Log scales need a Min over 0.
	Log bool
}

// At gives the place of a value; what lies outside is at the edge.
func (s Scale) At(v float64) float64 {
	low, high := s.Min, s.Max
	if s.Log {
		v, low, high = math.Log(max(v, s.Min)), math.Log(s.Min), math.Log(s.Max)
	}
	if !(high > low) {
		return 0
	}
	return min(max((v-low)/(high-low), 0), 1)
}

// Unknown is a value that is not known.
func Unknown() float64 { return math.NaN() }

// Ceiling is the next of 1, 2, 3, 4, 6, 8, 10, 20, 30, ... that is not lower.
func Ceiling(v float64) float64 {
	if !(v > 1) {
		return 1
	}
	if math.IsInf(v, 0) || v > 1e300 {
		return 1e300
	}
	magnitude := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 3, 4, 6, 8} {
		if m*magnitude >= v {
			return m * magnitude
		}
	}
	return 10 * magnitude
}

// CeilingBytes is Ceiling for sizes, in the units that Bytes writes.
func CeilingBytes(v float64) float64 {
	unit := 1.0
	for v/unit >= 1024 && unit < 1<<50 {
		unit *= 1024
	}
	return min(Ceiling(v/unit), 1024) * unit
}

// Highest is the highest of the stacks.
func Highest(series []Series, wide int) float64 {
	highest := 0.0
	for i := range wide {
		sum := 0.0
		for _, s := range series {
			if i < len(s.Values) && s.Values[i] > 0 {
				sum += s.Values[i]
			}
		}
		highest = max(highest, sum)
	}
	return highest
}

// Spark draws a small curve of one series over another, without labels; words say
// what it shows.
func Spark(words string, values, part []float64) template.HTML {
	highest := 1.0
	for _, v := range values {
		highest = max(highest, v)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="spark" viewBox="0 0 %d 20" preserveAspectRatio="none" role="img" aria-label="%s">`, max(len(values), 1), html.EscapeString(words))
	for i, of := range [][]float64{values, part} {
		some := false
		var path strings.Builder
		path.WriteString("M0 20")
		for x, v := range of {
			h := 0.0
			if v > 0 {
				h, some = max(19*v/highest, 1), true
			}
			fmt.Fprintf(&path, "V%sH%d", num(20-h), x+1)
		}
		if some {
			fmt.Fprintf(&b, `<path class="%s" d="%sV20z"/>`, []string{"s1", "s7"}[i], path.String())
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // #nosec G203 -- made of numbers and escaped text
}

// Meter draws a share of 0 to 1 as a bar, with marks at others.
func Meter(words, class string, share float64, marks ...float64) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="meter" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="%s"><rect class="ground" width="100" height="10"/>`, html.EscapeString(words))
	fmt.Fprintf(&b, `<rect class="%s" width="%s" height="10"/>`, html.EscapeString(class), num(100*Scale{Max: 1}.At(share)))
	for _, m := range marks {
		if m > 0 && m < 1 {
			fmt.Fprintf(&b, `<path class="mark" d="M%s 0V10"/>`, num(100*m))
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // #nosec G203 -- made of numbers and escaped text
}

// drawing writes an SVG. The data lies in an inner picture that is stretched to the
// width, 100 high and one wide for each value; words are outside of it, and keep
// their shape.
type drawing struct {
	strings.Builder
	words strings.Builder
	wide  int
}

func draw(c *Chart, wide, grid int) *drawing {
	d := &drawing{wide: wide}
	fmt.Fprintf(d, `<svg class="plot" role="img" aria-labelledby="%[1]s-title %[1]s-text"><title id="%[1]s-title">%[2]s</title><desc id="%[1]s-text">%[3]s</desc>`,
		html.EscapeString(c.ID), html.EscapeString(c.Title), html.EscapeString(c.Text))
	fmt.Fprintf(d, `<svg class="data" viewBox="0 0 %d 100" width="100%%" height="100%%" preserveAspectRatio="none">`, wide)
	for i := range grid {
		fmt.Fprintf(d, `<path class="grid" d="M0 %sH%d"/>`, num(100*float64(i)/float64(grid)), wide)
	}
	return d
}

// done ends the drawing.
func (d *drawing) done() template.HTML {
	// What is inside was made of numbers and escaped text.
	return template.HTML(d.String() + "</svg>" + d.words.String() + "</svg>") // #nosec G203
}

// unknown shades the places of which nothing is known, and says where there is
// nothing to see in the others.
func (d *drawing) unknown(c *Chart, series []Series) {
	first := min(max(c.From, 0), d.wide)
	if first > 0 {
		fmt.Fprintf(d, `<rect class="unknown" x="0" y="0" width="%d" height="100"/>`, first)
	}
	say := func(middle float64, words string) {
		fmt.Fprintf(&d.words, `<text class="unknown" x="%s%%" y="50%%" text-anchor="middle">%s</text>`, num(100*middle/float64(d.wide)), html.EscapeString(words))
	}
	if c.Before != "" && first*4 > d.wide {
		say(float64(first)/2, c.Before)
	}
	for _, s := range series {
		for i, v := range s.Values {
			if i >= first && !math.IsNaN(v) {
				return
			}
		}
	}
	if c.Nothing != "" && (d.wide-first)*3 > d.wide {
		say(float64(first+d.wide)/2, c.Nothing)
	}
}

func (d *drawing) limits(limits []Limit, scale Scale) {
	for _, l := range limits {
		y := 100 * (1 - scale.At(l.At))
		fmt.Fprintf(d, `<path class="limit %s" d="M0 %sH%d"/>`, html.EscapeString(l.Class), num(y), d.wide)
		dy := "-4"
		if l.Below {
			dy = "13"
		}
		fmt.Fprintf(&d.words, `<text class="limit %s" x="100%%" dx="-4" y="%s%%" dy="%s" text-anchor="end">%s</text>`,
			html.EscapeString(l.Class), num(y), dy, html.EscapeString(l.Name))
	}
}

// num writes a coordinate; what is no number is at 0.
func num(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// BarOptions are how bars are drawn.
type BarOptions struct {
	// Words write a value of the scale; nil where the chart has its own labels.
	Words func(float64) string
	// Max is the scale's end; 0 takes Ceiling of the highest bar.
	Max    float64
	Limits []Limit
	// Tip gives what a bar says under the pointer; nil for nothing.
	Tip func(i int) string
}

// Bars draws stacked bars, one for each place of the values.
func Bars(c Chart, series []Series, wide int, o BarOptions) Chart {
	scale := Scale{Max: o.Max}
	if scale.Max == 0 {
		scale.Max = Ceiling(Highest(series, wide))
	}
	if o.Words != nil {
		c.Y = []string{o.Words(scale.Max), o.Words(scale.Max / 2), o.Words(0)}
	}
	d := draw(&c, wide, max(len(c.Y)-1, 1))
	d.unknown(&c, series)
	for i := range wide {
		floor, some := 0.0, false
		for _, s := range series {
			if i >= len(s.Values) || !(s.Values[i] > 0) {
				continue
			}
			if !some && o.Tip != nil {
				fmt.Fprintf(d, `<g><title>%s</title>`, html.EscapeString(o.Tip(i)))
			}
			some = true
			h := 100 * scale.At(s.Values[i])
			floor += h
			fmt.Fprintf(d, `<rect class="%s" x="%s" y="%s" width=".8" height="%s"/>`, html.EscapeString(s.Class), num(float64(i)+0.1), num(100-floor), num(max(h, 0.6)))
		}
		if some && o.Tip != nil {
			d.WriteString("</g>")
		}
	}
	d.limits(o.Limits, scale)
	for _, s := range series {
		c.Keys = append(c.Keys, s.Key)
	}
	c.SVG = d.done()
	return c
}

// Lines draws lines; what is not known is a gap in them.
func Lines(c Chart, series []Series, wide int, scale Scale, limits []Limit) Chart {
	d := draw(&c, wide, max(len(c.Y)-1, 1))
	d.unknown(&c, series)
	d.limits(limits, scale)
	for _, s := range series {
		if path := line(s, scale); path != "" {
			fmt.Fprintf(d, `<path class="line %s" d="%s"/>`, html.EscapeString(s.Class), path)
		}
		c.Keys = append(c.Keys, s.Key)
	}
	c.SVG = d.done()
	return c
}

// line gives the path of one series. A value alone between gaps is a short dash.
func line(s Series, scale Scale) string {
	var b strings.Builder
	pen, last := false, 0.0
	for i, v := range s.Values {
		if math.IsNaN(v) {
			pen = false
			continue
		}
		y := 100 * (1 - scale.At(v))
		switch {
		case !pen:
			fmt.Fprintf(&b, "M%d %sh1", i, num(y))
		case s.Step && y != last:
			fmt.Fprintf(&b, "V%sh1", num(y))
		case y == last:
			b.WriteString("h1")
		default:
			fmt.Fprintf(&b, "L%d %s", i+1, num(y))
		}
		pen, last = true, y
	}
	return b.String()
}
