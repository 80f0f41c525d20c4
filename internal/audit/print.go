package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"karui/convert"
	"karui/internal/batch"
)

// WriteJSON writes one document: {"files": [...], "total": {...}, "report": "..."},
// the latter only where a report was written.
func WriteJSON(w io.Writer, images []Image, total batch.Summary, report string) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if images == nil {
		images = []Image{}
	}
	return e.Encode(struct {
		Files  []Image       `json:"files"`
		Total  batch.Summary `json:"total"`
		Report string        `json:"report,omitempty"`
	}{images, total, report})
}

// WriteTable writes a line for each image, and the sum below. Width is that of the
// terminal in columns, 0 for none, which leaves names whole.
func WriteTable(w io.Writer, images []Image, total batch.Summary, width int) error {
	const others = 76 // about what the other columns take
	name := 0
	if width > 0 {
		name = max(width-others, 20)
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatDefault
	t.SuppressTrailingSpaces()
	t.AppendHeader(table.Row{"image", "bytes", "becomes", "bytes", "saved", "score", "decision"})
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 1, WidthMax: name, WidthMaxEnforcer: text.WrapHard},
		{Number: 2, Align: text.AlignRight},
		{Number: 4, Align: text.AlignRight},
		{Number: 5, Align: text.AlignRight},
		{Number: 6, Align: text.AlignRight},
		{Number: 7, WidthMax: 48, WidthMaxEnforcer: text.WrapSoft},
	})
	for _, m := range images {
		t.AppendRow(m.row())
	}
	var sum strings.Builder
	fmt.Fprintf(&sum, "%s\n", total)
	if s := scores(images); s.Median != "" {
		fmt.Fprintf(&sum, "%d look the same, %d differ side by side only, %d differ visibly; median score %s, lowest %s\n",
			s.Same, s.Similar, s.Visible, s.Median, s.Lowest)
	}
	if total.LeftOut > 0 {
		fmt.Fprintf(&sum, "%s left out\n", plural(total.LeftOut, "other file"))
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s", t.Render(), sum.String())
	return err
}

func (m Image) row() table.Row {
	path, before := readable(m.Path), inBytes(m.Bytes)
	switch {
	case m.Error != "":
		return table.Row{path, "", "", "", "", "", "not read: " + readable(m.Error)}
	case m.Code != convert.Converted:
		return table.Row{path, before, "", "", "", "", string(m.Code)}
	}
	becomes, score, looks := m.Format, "none", m.Looks
	if m.Lossless {
		becomes += " lossless"
	}
	if m.Score != nil {
		score = fmt.Sprintf("%.1f", float64(*m.Score))
	}
	if m.NoScore != "" {
		looks = "no score: " + readable(m.NoScore)
	}
	return table.Row{path, before, becomes, inBytes(m.VariantBytes), percent(float64(m.Saved) / float64(m.Bytes)), score, looks}
}
