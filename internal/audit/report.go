package audit

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"karui/convert"
	"karui/internal/audit/score"
	"karui/internal/batch"
)

//go:embed assets
var assets embed.FS

// PicturesMost is what the pictures of a report may take, in bytes, before they are
// written as text (a third more). With the rest a report stays under 30 MiB for up to
// some thousand images, and goes through most mail servers for a few dozen.
const PicturesMost = 20 << 20

// Mark is in the first bytes of every report, by which one is known.
const Mark = `<meta name="generator" content="karui audit">`

// Subject is what a report is about, beside its images.
type Subject struct {
	// Names are the words that were audited.
	Names []string
	// Settings are how images were converted, in words.
	Settings string
	// When it was, in UTC.
	When time.Time
	// LeftOut and TooMany are those of [Found]; Pages too.
	LeftOut, TooMany int
	Pages            bool
}

// WriteHTML writes the report as one page.
func WriteHTML(w io.Writer, subject Subject, images []Image, total batch.Summary) error {
	style, err := assets.ReadFile("assets/report.css")
	if err != nil {
		return err
	}
	script, err := assets.ReadFile("assets/report.js")
	if err != nil {
		return err
	}
	page, err := template.New("report.html").Funcs(template.FuncMap{
		"bytes": inBytes, "percent": percent, "plural": plural,
	}).ParseFS(assets, "assets/report.html")
	if err != nil {
		return err
	}
	v := view{
		Subject: subject, Total: total, Rows: rows(images), Formats: formats(images), Kept: kept(images), Scores: scores(images),
		Saved: total.BytesBefore - total.BytesAfter, Mark: template.HTML(Mark), //nolint:gosec // a constant
		Style: template.CSS(style), Script: template.JS(script), //nolint:gosec // files of this package
		Policy: fmt.Sprintf("default-src 'none'; img-src data:; style-src 'sha256-%s'; script-src 'sha256-%s'; base-uri 'none'; form-action 'none'",
			digest(style), digest(script)),
	}
	return page.Execute(w, v)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// view is what the template shows.
type view struct {
	Subject
	Total   batch.Summary
	Saved   int64
	Rows    []rowView
	Formats []formatView
	Kept    []keptView
	Scores  scoresView
	Policy  string
	Mark    template.HTML
	Style   template.CSS
	Script  template.JS
}

// rowView is one image.
type rowView struct {
	N int
	Image
	Converted     bool
	Size          string
	SavedShare    float64
	ScoreText     string
	Class         string
	Before, After template.URL
	Preview       bool
	Width, Height int
}

func rows(images []Image) []rowView {
	out := make([]rowView, 0, len(images))
	for i, m := range images {
		r := rowView{N: i + 1, Image: m, Converted: m.Error == "" && m.Code == convert.Converted, Width: m.Report.Width, Height: m.Report.Height}
		r.Path, r.Reason, r.Error = readable(m.Path), readable(m.Reason), readable(m.Error)
		if m.Report.Width > 0 {
			r.Size = fmt.Sprintf("%d × %d", m.Report.Width, m.Report.Height)
			if m.Frames > 1 {
				r.Size += fmt.Sprintf(", %d frames", m.Frames)
			}
		}
		if r.Converted && m.Bytes > 0 {
			r.SavedShare = float64(m.Saved) / float64(m.Bytes)
		}
		if m.Score != nil {
			r.ScoreText, r.Class = fmt.Sprintf("%.1f", float64(*m.Score)), class(*m.Score)
		}
		if m.pair.before.body != nil {
			r.Before, r.After, r.Preview = m.pair.before.url(), m.pair.after.url(), m.pair.preview
		}
		out = append(out, r)
	}
	return out
}

func class(s score.Score) string {
	switch {
	case s >= score.Same:
		return "same"
	case s >= score.Similar:
		return "similar"
	}
	return "visible"
}

// url holds the picture itself.
func (p picture) url() template.URL {
	return template.URL("data:" + p.mediaType + ";base64," + base64.StdEncoding.EncodeToString(p.body)) //nolint:gosec // a picture, of a type from our own list
}

// formatView sums up the images of one kind that became another.
type formatView struct {
	From, To      string
	Images        int
	Before, After int64
}

// Share is what was saved.
func (f formatView) Share() float64 {
	if f.Before == 0 {
		return 0
	}
	return float64(f.Before-f.After) / float64(f.Before)
}

func formats(images []Image) []formatView {
	sums := map[[2]string]*formatView{}
	for _, m := range images {
		if m.Error != "" || m.Code != convert.Converted {
			continue
		}
		to := m.Format
		if m.Lossless {
			to += ", lossless"
		}
		key := [2]string{m.Source, to}
		f := sums[key]
		if f == nil {
			f = &formatView{From: m.Source, To: to}
			sums[key] = f
		}
		f.Images++
		f.Before += m.Bytes
		f.After += m.VariantBytes
	}
	var out []formatView
	for _, f := range sums {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b formatView) int {
		return cmp.Or(cmp.Compare(b.Before-b.After, a.Before-a.After), cmp.Compare(a.From+a.To, b.From+b.To))
	})
	return out
}

// keptView sums up the images that stay what they are for one reason.
type keptView struct {
	Code   convert.Code
	Images int
	Bytes  int64
	// Example is the reason of one of them.
	Example string
}

func kept(images []Image) []keptView {
	sums := map[convert.Code]*keptView{}
	for _, m := range images {
		if m.Error != "" || m.Code == convert.Converted {
			continue
		}
		k := sums[m.Code]
		if k == nil {
			k = &keptView{Code: m.Code, Example: readable(m.Reason)}
			sums[m.Code] = k
		}
		k.Images++
		k.Bytes += m.Bytes
	}
	var out []keptView
	for _, code := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, *sums[code])
	}
	slices.SortStableFunc(out, func(a, b keptView) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

// scoresView counts how the variants look.
type scoresView struct {
	Same, Similar, Visible, None int
	Median, Lowest               string
}

func scores(images []Image) scoresView {
	var v scoresView
	var all []float64
	for _, m := range images {
		switch {
		case m.Error != "" || m.Code != convert.Converted:
		case m.Score == nil:
			v.None++
		default:
			all = append(all, float64(*m.Score))
			switch class(*m.Score) {
			case "same":
				v.Same++
			case "similar":
				v.Similar++
			default:
				v.Visible++
			}
		}
	}
	if len(all) > 0 {
		slices.Sort(all)
		v.Median, v.Lowest = fmt.Sprintf("%.1f", all[len(all)/2]), fmt.Sprintf("%.1f", all[0])
	}
	return v
}

func inBytes(n int64) string {
	if n < 0 {
		return "-" + humanize.IBytes(uint64(-n)) //nolint:gosec // not negative
	}
	return humanize.IBytes(uint64(n)) //nolint:gosec // not negative
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", humanize.Comma(int64(n)), noun)
}

// readable bounds a text of others, and takes out of it what steers terminals and turns
// the direction of writing around.
func readable(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 || c == 0x200e || c == 0x200f {
			return '\uFFFD'
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if runes := []rune(s); len(runes) > 600 {
		s = string(runes[:400]) + " ... " + string(runes[len(runes)-150:])
	}
	return s
}

// PerThousand is what a thousand loads of all images save.
func (v view) PerThousand() int64 { return 1000 * v.Saved }

// SavedShare is that of all bytes.
func (v view) SavedShare() float64 {
	if v.Total.BytesBefore == 0 {
		return 0
	}
	return float64(v.Saved) / float64(v.Total.BytesBefore)
}

// Title names the subject in few words.
func (s Subject) Title() string {
	if len(s.Names) == 0 {
		return "images"
	}
	title := readable(s.Names[0])
	if len(s.Names) > 1 {
		title += fmt.Sprintf(" and %d more", len(s.Names)-1)
	}
	return title
}

// Pixels are those of the picture, to sort by.
func (r rowView) Pixels() int64 { return int64(r.Width) * int64(r.Height) }
