package drill

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Print writes the report as a table: with lines around it, or plainly for programs.
func (r Report) Print(w io.Writer, lines bool) error {
	t := newTable(lines, "fault", "rate", "level", "good", "with edge", "added", "p50", "p99", "retries")
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 2, Align: text.AlignRight},
		{Number: 3, Align: text.AlignRight},
		{Number: 4, Align: text.AlignRight},
		{Number: 5, Align: text.AlignRight},
		{Number: 6, Align: text.AlignRight},
		{Number: 7, Align: text.AlignRight},
		{Number: 8, Align: text.AlignRight},
	})
	for i, c := range r.Cells {
		if i > 0 && (c.Fault != r.Cells[i-1].Fault || c.Rate != r.Cells[i-1].Rate) {
			t.AppendSeparator()
		}
		t.AppendRow(table.Row{
			c.Fault, percent(c.Rate, 0), c.Level, percent(c.Good, 2), percent(c.GoodAtEdge, 2), "+" + percent(c.Added, 1),
			millis(c.P50), millis(c.P99), c.Retries,
		})
	}
	which := "one of two places misbehaves"
	if r.Both {
		which = "both places misbehave"
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s, in the share of its requests under rate.\n"+
		"good: answered well by karui. with edge: after the edge has asked the true\n"+
		"origin (the place that misbehaves) for what karui answered with 503, which\n"+
		"counts among the added requests. Limit to the first byte: %s.\n", t.Render(), which, time.Duration(r.Deadline))
	return err
}

// PrintPlan writes the steps as a table, as Print does.
func PrintPlan(w io.Writer, steps []Step, lines bool) error {
	t := newTable(lines, "site", "place", "fault", "then", "while sick", "first try has", "and the place is")
	for i, s := range steps {
		if i > 0 && (s.Site != steps[i-1].Site || s.Place != steps[i-1].Place) {
			t.AppendSeparator()
		}
		t.AppendRow(table.Row{s.Site, s.Place, s.Fault.Words(), s.Next, s.WhileSick, time.Duration(s.FirstTry), s.Then})
	}
	_, err := fmt.Fprintf(w, "%s\n\nthen: what follows the failed request, once at most. stop: its outcome is the answer; %s.\n", t.Render(), viewer(Refuse))
	return err
}

func newTable(lines bool, head ...string) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	if !lines {
		t.Style().Options = table.OptionsNoBordersAndSeparators
		t.Style().Box.PaddingLeft, t.Style().Box.PaddingRight = "", "  "
		t.SuppressTrailingSpaces()
	}
	t.Style().Format.Header = text.FormatDefault
	row := make(table.Row, len(head))
	for i, h := range head {
		row[i] = h
	}
	t.AppendHeader(row)
	return t
}

// percent never rounds up to 100, nor down to 0.
func percent(share float64, digits int) string {
	scale := math.Pow10(digits)
	n := math.Round(share*100*scale) / scale
	if share < 1 && n >= 100 {
		n = 100 - 1/scale
	}
	if share > 0 && n <= 0 {
		n = 1 / scale
	}
	return strconv.FormatFloat(n, 'f', digits, 64) + " %"
}

func millis(m Millis) string {
	return fmt.Sprintf("%.1f ms", float64(m)/float64(time.Millisecond))
}
