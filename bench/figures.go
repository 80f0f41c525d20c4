package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// median is the middle one, or the mean of the two in the middle; NaN of none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// ratios divides round by round.
func ratios(of, by []float64) []float64 {
	r := make([]float64, min(len(of), len(by)))
	for i := range r {
		r[i] = of[i] / by[i]
	}
	return r
}

// quantile is the value below which the share q lies; NaN of none.
func quantile(v []time.Duration, q float64) time.Duration {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return s[min(int(math.Ceil(q*float64(len(s))))-1, len(s)-1)]
}

// spread shows a median with the lowest and the highest.
func spread(v []float64, format string) string {
	if len(v) == 0 {
		return "-"
	}
	return fmt.Sprintf(format+" ("+format+" to "+format+")", median(v), slices.Min(v), slices.Max(v))
}

// parseCounts reads growing numbers between commas.
func parseCounts(list string) ([]int, error) {
	var counts []int
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > 10_000_000 || len(counts) > 0 && n <= counts[len(counts)-1] {
			return nil, fmt.Errorf("%q: want growing numbers such as 2000,5000", list)
		}
		counts = append(counts, n)
	}
	return counts, nil
}

// report is one table.
type report struct{ w table.Writer }

func newTable(title string, columns ...any) report {
	w := table.NewWriter()
	w.SetTitle(title)
	w.AppendHeader(columns)
	w.SetStyle(table.StyleLight)
	w.Style().Format.Header = text.FormatDefault
	return report{w}
}

func (r report) row(cells ...any) { r.w.AppendRow(cells) }

func (r report) print(b *bench) {
	s := r.w.Render()
	if b.markdown {
		s = r.w.RenderMarkdown()
	}
	_, _ = fmt.Fprintf(b.out, "\n%s\n", s)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
