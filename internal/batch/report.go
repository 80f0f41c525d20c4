package batch

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"karui/convert"
	"karui/convert/header"
)

// Report says what became of one input.
type Report struct {
	Path string `json:"path"`
	// Out is the file that was written, "" for none.
	Out string `json:"out,omitempty"`
	// Source is the format of the original by its bytes; "unknown" is no image that karui knows.
	Source string `json:"source"`
	// Width and Height are those of the picture the right way up, 0 where the header could not be read.
	Width  int   `json:"width"`
	Height int   `json:"height"`
	Frames int   `json:"frames"`
	Bytes  int64 `json:"bytes"`
	// Format is the format that is answered: the variant's, or again the original's.
	Format string `json:"format"`
	// VariantBytes is 0 where the original is kept.
	VariantBytes int64 `json:"variant_bytes"`
	// Saved is the bytes that a viewer does not have to load.
	Saved int64 `json:"saved_bytes"`
	// Quality is the number that the encoder was given, after the source's own quality limited it; 0 for none.
	Quality  int  `json:"quality,omitempty"`
	Lossless bool `json:"lossless,omitempty"`
	convert.Decision
	// Outcomes says what was decided about each format that was asked for, in that order.
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// CPUMillis is the CPU time of the worker in milliseconds.
	CPUMillis int64 `json:"cpu_ms"`
	// Error says why the file could not be read, or its variant not be written.
	Error string `json:"error,omitempty"`
}

func (r *Report) describe(info header.Info, plan convert.Plan) {
	r.Source = info.Format.String()
	r.Format = r.Source
	r.Width, r.Height = info.Upright()
	r.Frames = info.Frames
	r.Quality = plan.Quality
}

// Outcome is what was decided about one format.
type Outcome struct {
	Format string       `json:"format"`
	Code   convert.Code `json:"code"`
	Reason string       `json:"reason"`
}

func (r *Report) decided(d convert.Decision, outcomes []convert.Outcome) {
	r.Decision = d
	for _, o := range outcomes {
		r.Outcomes = append(r.Outcomes, Outcome{o.Format.String(), o.Decision.Code, o.Decision.Reason})
	}
}

func (r Report) failed(err error) Report {
	r.Error = err.Error()
	return r
}

// Summary adds reports up.
type Summary struct {
	Files     int `json:"files"`
	Converted int `json:"converted"`
	Kept      int `json:"kept"`
	Failed    int `json:"failed"`
	// LeftOut are files of folders that are not named like images.
	LeftOut int `json:"left_out"`
	// BytesBefore are the originals that were read, BytesAfter what viewers load instead.
	BytesBefore int64 `json:"bytes_before"`
	BytesAfter  int64 `json:"bytes_after"`
	CPUMillis   int64 `json:"cpu_ms"`
	// Codes counts the decisions.
	Codes map[convert.Code]int `json:"codes"`
}

// Add counts one more report, and fills in what it saves.
func (s *Summary) Add(r *Report) {
	s.Files++
	s.CPUMillis += r.CPUMillis
	if r.Error != "" {
		s.Failed++
		return
	}
	if s.Codes == nil {
		s.Codes = map[convert.Code]int{}
	}
	s.Codes[r.Code]++
	s.BytesBefore += r.Bytes
	if r.Code != convert.Converted {
		s.Kept++
		s.BytesAfter += r.Bytes
		return
	}
	r.Saved = r.Bytes - r.VariantBytes
	s.Converted++
	s.BytesAfter += r.VariantBytes
}

// String is the summary in one line.
func (s Summary) String() string {
	line := fmt.Sprintf("%d converted, %d kept as they are", s.Converted, s.Kept)
	if s.Failed > 0 {
		line += fmt.Sprintf(", %d failed", s.Failed)
	}
	if s.BytesBefore == 0 {
		return line
	}
	return fmt.Sprintf("%s: %s instead of %s (%s less)", line,
		humanize.IBytes(uint64(s.BytesAfter)), humanize.IBytes(uint64(s.BytesBefore)), percent(s.BytesBefore-s.BytesAfter, s.BytesBefore)) //nolint:gosec // sums of sizes
}

func percent(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}

// WriteJSON writes one document: {"files": [...], "total": {...}}.
func WriteJSON(w io.Writer, reports []Report, total Summary) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if reports == nil {
		reports = []Report{}
	}
	return e.Encode(struct {
		Files []Report `json:"files"`
		Total Summary  `json:"total"`
	}{reports, total})
}

// fixedColumns is about what the columns between the name and the reason take.
const fixedColumns = 78

// WriteTable writes the reports as a table for people, and the summary below it.
// Width is that of the terminal in columns, 0 for none, which leaves names whole.
func WriteTable(w io.Writer, reports []Report, total Summary, width int) error {
	name, reason := 0, 70
	if width > 0 {
		rest := max(width-fixedColumns, 40)
		name, reason = rest/2, rest-rest/2
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"file", "size", "bytes", "becomes", "bytes", "saved", "decision", "reason"})
	t.SuppressTrailingSpaces()
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 1, WidthMax: name, WidthMaxEnforcer: text.WrapHard},
		{Number: 3, Align: text.AlignRight},
		{Number: 5, Align: text.AlignRight},
		{Number: 6, Align: text.AlignRight},
		{Number: 8, WidthMax: reason, WidthMaxEnforcer: text.WrapSoft},
	})
	for _, r := range reports {
		t.AppendRow(r.row())
	}
	left := ""
	switch {
	case total.LeftOut == 1:
		left = "1 other file left out\n"
	case total.LeftOut > 1:
		left = fmt.Sprintf("%d other files left out\n", total.LeftOut)
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s\n%s", t.Render(), total, left)
	return err
}

func (r Report) row() table.Row {
	size := ""
	if r.Width > 0 {
		size = fmt.Sprintf("%d x %d", r.Width, r.Height)
		if r.Frames > 1 {
			size += fmt.Sprintf(" x %d", r.Frames)
		}
	}
	before, path := humanize.IBytes(uint64(r.Bytes)), printable(r.Path) //nolint:gosec // a size
	switch {
	case r.Error != "":
		return table.Row{path, size, before, "", "", "", "failed", printable(r.Error)}
	case r.Code != convert.Converted:
		return table.Row{path, size, before, "", "", "", string(r.Code), printable(r.Reason)}
	}
	// The numbers stand in the columns.
	reason, _, _ := strings.Cut(r.Reason, fmt.Sprintf(", %d bytes", r.VariantBytes))
	becomes := r.Format
	if r.Lossless {
		becomes += " lossless"
	}
	return table.Row{
		path, size, before, becomes, humanize.IBytes(uint64(r.VariantBytes)), percent(r.Saved, r.Bytes), //nolint:gosec // a size
		string(r.Code), printable(reason),
	}
}

// printable keeps names of files from steering a terminal.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			return '\uFFFD'
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// Sort puts reports in the order of their paths.
func Sort(reports []Report) {
	slices.SortFunc(reports, func(a, b Report) int { return strings.Compare(a.Path, b.Path) })
}
