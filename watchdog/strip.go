package watchdog

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"time"

	"karui/internal/page"
	"karui/watchdog/event"
	"karui/watchdog/machine"
	"karui/watchdog/store"
)

// The strip of rounds: one column for each, the newest at the right. A round is told by
// its height and form as much as by its colour, for those who see no difference between
// red and green. Above it are the moves of the order, below it who came first.
const (
	stripRounds = 60 // five hours at the usual interval
	stripStep   = 5
	stripBar    = 4
	stripWidth  = stripRounds * stripStep
	stripHeight = 34
)

// column is one place of a strip.
type column struct {
	verdict machine.Verdict
	order   event.Order
	// gap: nobody looked for longer than there should be between two rounds.
	gap bool
	// degraded and restored: the order was moved in this round, or before the next one.
	degraded, restored bool
}

// columns lays rounds out, the newest last. A move of the order stands with the round
// that it came in, or after.
func columns(h store.History, interval time.Duration) []column {
	var (
		out   []column
		ended time.Time
		at    []time.Time // when the columns' rounds began, zero for gaps
	)
	for _, r := range h.Rounds {
		began := r.At.Add(-r.Took)
		if !ended.IsZero() && began.Sub(ended) > 2*interval {
			out, at = append(out, column{gap: true}), append(at, time.Time{})
		}
		ended = r.At
		out, at = append(out, column{verdict: r.Verdict, order: r.Order}), append(at, began)
	}
	for _, t := range h.Told {
		for i := len(out) - 1; i >= 0; i-- {
			if !out[i].gap && !at[i].After(t.At) {
				out[i].degraded = out[i].degraded || t.Kind == event.Degrade
				out[i].restored = out[i].restored || t.Kind == event.Restore
				break
			}
		}
	}
	return out[max(len(out)-stripRounds, 0):]
}

// strip draws the rounds.
func strip(cols []column, words string) template.HTML {
	paths := map[string]*strings.Builder{}
	draw := func(class, form string, args ...any) {
		if paths[class] == nil {
			paths[class] = &strings.Builder{}
		}
		fmt.Fprintf(paths[class], form, args...)
	}
	for i, c := range cols {
		x := stripWidth - (len(cols)-i)*stripStep
		if c.gap {
			draw("gap", "M%d.5 9V27", x+1)
			continue
		}
		switch c.verdict {
		case machine.VerdictUp:
			draw("up", "M%d 19h%dv8h-%dz", x, stripBar, stripBar)
		case machine.VerdictDown:
			draw("down", "M%d 9h%dv18h-%dz", x, stripBar, stripBar)
		default:
			draw("odd", "M%d.5 14.5h%dv12h-%dz", x, stripBar-1, stripBar-1)
		}
		switch c.order {
		case event.OrderProxy:
			draw("first", "M%d 31h%d", x, stripStep)
		case event.OrderDirect:
			draw("second", "M%d 31h%d", x, stripStep)
		}
		if c.degraded {
			draw("moved", "M%d 1h8l-4 6z", x-2)
		} else if c.restored {
			draw("moved", "M%d 7h8l-4-6z", x-2)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="strip" width="%d" height="%d" viewBox="-2 0 %d %d" role="img" aria-label="%s">`,
		stripWidth+4, stripHeight, stripWidth+4, stripHeight, html.EscapeString(words))
	fmt.Fprintf(&b, `<path class="ground" d="M0 27.5H%d"/>`, stripWidth)
	for _, class := range []string{"gap", "up", "down", "odd", "first", "second", "moved"} {
		if p := paths[class]; p != nil {
			fmt.Fprintf(&b, `<path class="%s" d="%s"/>`, class, p)
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // #nosec G203 -- made of numbers and escaped text
}

// stripWords says what a strip shows.
func stripWords(cols []column) string {
	var up, down, odd, gaps, moves int
	for _, c := range cols {
		switch {
		case c.gap:
			gaps++
		case c.verdict == machine.VerdictUp:
			up++
		case c.verdict == machine.VerdictDown:
			down++
		default:
			odd++
		}
		if c.degraded {
			moves++
		}
		if c.restored {
			moves++
		}
	}
	if up+down+odd == 0 {
		return "no round yet"
	}
	text := fmt.Sprintf("last %d rounds: %d up, %d down, %d inconclusive", up+down+odd, up, down, odd)
	if moves > 0 {
		text += "; " + page.Plural(moves, "move") + " of the order"
	}
	if gaps > 0 {
		text += "; " + page.Plural(gaps, "gap") + " in which nobody looked"
	}
	return text
}

// sign is one entry of the legend: a small strip of its own.
type sign struct {
	SVG  template.HTML
	Text string
}

// legend explains a strip.
func legend() []sign {
	one := func(class, path string) template.HTML {
		return template.HTML(`<svg class="strip" width="12" height="20" viewBox="0 0 12 20" aria-hidden="true"><path class="` + class + `" d="` + path + `"/></svg>`) // #nosec G203 -- constants
	}
	return []sign{
		{one("up", "M2 10h8v8h-8z"), "up"},
		{one("down", "M2 1h8v17h-8z"), "down"},
		{one("odd", "M2.5 6.5h7v11h-7z"), "inconclusive: nothing answered, not even the controls"},
		{one("gap", "M6 1V18"), "nobody looked"},
		{one("first", "M0 11h12"), "proxy first"},
		{one("second", "M0 11h12"), "true origin first"},
		{one("moved", "M2 8h8l-4 6z"), "degraded"},
		{one("moved", "M2 14h8l-4-6z"), "restored"},
	}
}
