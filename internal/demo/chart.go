package demo

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// series is one colour of a chart.
type series struct {
	Name   string
	Class  string // of the style sheet
	Values []float64
	Sum    string // over the whole chart, in words
}

// chart is stacked bars over the last three minutes.
type chart struct {
	ID, Title, Text string
	Series          []series
	Top             string // the scale's end, in words
}

// Of the drawing, in its own units.
const (
	chartWidth  = 600.0
	chartHeight = 120.0
)

// SVG draws the bars. It holds numbers and names of classes only; whoever cannot
// see it has the legend.
func (c chart) SVG() template.HTML {
	top := c.top()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="bars" viewBox="0 0 %g %g" preserveAspectRatio="none" aria-hidden="true" focusable="false">`, chartWidth, chartHeight)
	for _, part := range []float64{0.25, 0.5, 0.75} {
		fmt.Fprintf(&b, `<path class="grid" d="M0 %gH%g"/>`, chartHeight*part, chartWidth)
	}
	step := chartWidth / slotCount
	floor := make([]float64, slotCount)
	for _, s := range c.Series {
		for i, v := range s.Values {
			h := v / top * chartHeight
			if v <= 0 || i >= slotCount {
				continue
			}
			floor[i] += h
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, s.Class, float64(i)*step+0.8, chartHeight-floor[i], step-1.6, h)
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // #nosec G203 -- made of numbers and of class names of this package
}

// top is the scale's end: the highest stack, rounded up.
func (c chart) top() float64 {
	highest := 0.0
	for i := range slotCount {
		sum := 0.0
		for _, s := range c.Series {
			if i < len(s.Values) {
				sum += s.Values[i]
			}
		}
		highest = max(highest, sum)
	}
	return ceiling(highest)
}

// ceiling is the next of 1, 2, 3, 4, 6, 8, 10, 20, 30, ... that is not lower.
func ceiling(v float64) float64 {
	if v <= 1 {
		return 1
	}
	magnitude := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 3, 4, 6, 8} {
		if m*magnitude >= v {
			return m * magnitude
		}
	}
	return 10 * magnitude
}

// charts draws the numbers over time.
func charts(slots []tally) []chart {
	pick := func(of func(tally) float64) []float64 {
		out := make([]float64, len(slots))
		for i, s := range slots {
			out[i] = of(s)
		}
		return out
	}
	sum := func(values []float64) float64 {
		total := 0.0
		for _, v := range values {
			total += v
		}
		return total
	}
	count := func(name, class string, of func(tally) float64) series {
		v := pick(of)
		return series{Name: name, Class: class, Values: v, Sum: fmt.Sprint(int(sum(v)))}
	}
	size := func(name, class string, of func(tally) float64) series {
		v := pick(of)
		return series{Name: name, Class: class, Values: v, Sum: bytesWords(int64(sum(v)))}
	}
	byWay := chart{ID: "by-way", Title: "Who answered", Text: "images in 3 s"}
	for _, w := range ways() {
		byWay.Series = append(byWay.Series, count(wayShort(w), "s-"+string(w), func(t tally) float64 { return float64(t.Ways[w]) }))
	}
	byFormat := chart{ID: "by-format", Title: "In which format", Text: "images in 3 s"}
	for _, f := range formats() {
		s := count(formatWords(f), "s-"+f, func(t tally) float64 { return float64(t.Formats[f]) })
		if f == "other" && s.Sum == "0" {
			continue
		}
		byFormat.Series = append(byFormat.Series, s)
	}
	bytes := chart{ID: "bytes", Title: "How many bytes", Text: "in 3 s", Series: []series{
		size("sent", "s-sent", func(t tally) float64 { return float64(t.Bytes) }),
		size("saved", "s-saved", func(t tally) float64 { return float64(t.Saved) }),
	}}
	failovers := chart{ID: "failovers", Title: "Stage 1 at work", Text: "failovers in 3 s", Series: []series{
		count("asked the second origin", "s-failover", func(t tally) float64 { return float64(t.Failovers) }),
	}}
	out := []chart{byWay, byFormat, bytes, failovers}
	for i := range out {
		out[i].Top = fmt.Sprint(int(out[i].top()))
		if out[i].ID == "bytes" {
			out[i].Top = bytesWords(int64(out[i].top()))
		}
	}
	return out
}

// wayShort names a way in a legend.
func wayShort(w way) string {
	switch w {
	case wayEdge:
		return "edge"
	case wayKarui:
		return "karui"
	case wayOrigin:
		return "origin"
	}
	return "nobody"
}

// wayWords says how an image came.
func wayWords(w way) string {
	switch w {
	case wayEdge:
		return "kept at the edge"
	case wayKarui:
		return "from karui"
	case wayOrigin:
		return "from the origin"
	}
	return "from nobody"
}

// formatWords is a format as people write it.
func formatWords(format string) string {
	switch format {
	case "webp":
		return "WebP"
	case "other":
		return "other"
	}
	return strings.ToUpper(format)
}

// seconds is a duration as people read it: "6 s".
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}

// bytesWords is a size as people read it, in steps of 1000.
func bytesWords(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 100_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1_000_000:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}

// savedWords is what was saved of an image of n bytes: "66 % saved". Empty for
// nothing.
func savedWords(n, saved int64) string {
	if saved <= 0 || n <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %% saved", 100*float64(saved)/float64(n+saved))
}
