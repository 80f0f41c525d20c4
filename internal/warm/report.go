package warm

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Report is what came of a run.
type Report struct {
	Site    string   `json:"site"`
	Sources []string `json:"sources"`
	// Images is how many images of the site were found, and Sitemaps and Pages in how
	// many documents.
	Images   int `json:"images"`
	Sitemaps int `json:"sitemaps"`
	Pages    int `json:"pages"`
	// Foreign are references to images and pages of other hosts, LeftOut those to what
	// karui does not convert, OverLimit images beyond the limit.
	Foreign   int `json:"other_hosts"`
	LeftOut   int `json:"left_out"`
	OverLimit int `json:"over_limit"`
	// Hostless is whether no host of the site is known, so that every URL counts as one of
	// another host.
	Hostless bool `json:"no_hosts,omitempty"`
	// Forms has what became of the images in each form, in the order of the site's formats.
	Forms []FormReport `json:"formats"`
	// Unread are documents that could not be read.
	Unread int `json:"documents_failed"`
	// Failed counts the images that failed in at least one form.
	Failed int `json:"images_failed"`
	// Failures are the first of both.
	Failures []Failure `json:"failures"`
	// DeadLinks counts the images, and the pages that a sitemap names, that do not exist
	// (404 or 410). They are no failures: there is nothing to warm. Dead are the first.
	DeadLinks int       `json:"dead_links"`
	Dead      []Failure `json:"dead"`
	Requests  int       `json:"requests"`
	Seconds   float64   `json:"seconds"`
	// Finished is whether everything was asked for.
	Finished bool `json:"finished"`
	// State is the file by which a later run goes on.
	State string `json:"state"`
}

// FormReport counts the images in one form.
type FormReport struct {
	Format string `json:"format"`
	// Ready were in the cache already, Made came into it now.
	Ready int `json:"ready"`
	Made  int `json:"made"`
	// Kept stay originals, for the reasons in KeptWhy.
	Kept    int            `json:"kept"`
	KeptWhy map[string]int `json:"kept_why"`
	// Bypassed are not kept by karui, Before were settled by an earlier run.
	Bypassed int `json:"bypass"`
	Before   int `json:"done_before"`
	Failed   int `json:"failed"`
	// Missing are dead links.
	Missing int `json:"missing"`
	// BytesBefore are the originals of those of which it is known, BytesAfter what
	// viewers get instead of these.
	BytesBefore int64 `json:"bytes_before"`
	BytesAfter  int64 `json:"bytes_after"`
}

// Failure is one document or image that was not dealt with.
type Failure struct {
	Name string `json:"name"`
	// Formats are the forms in which an image failed; none for a document.
	Formats []string `json:"formats,omitempty"`
	Reason  string   `json:"reason"`
}

// add counts one image that is settled in the form.
func (f *FormReport) add(j judgement, made bool) {
	switch j.outcome {
	case Variant:
		if made || !j.ready {
			f.Made++
		} else {
			f.Ready++
		}
	case Kept:
		f.Kept++
		if j.kept != "" {
			f.KeptWhy[cut(j.kept, 40)]++
		}
	default:
		f.Bypassed++
	}
	if j.before > 0 {
		f.BytesBefore, f.BytesAfter = f.BytesBefore+j.before, f.BytesAfter+j.after
	}
}

// settled is how many images are settled in the form, those included that do not exist.
func (f *FormReport) settled() int {
	return f.Ready + f.Made + f.Kept + f.Bypassed + f.Before + f.Missing
}

// Good tells whether nothing failed.
func (r *Report) Good() bool {
	return r.Finished && r.Failed == 0 && r.Unread == 0 && r.OverLimit == 0 && !r.AllDead()
}

// AllDead tells whether not one of the images exists: then what names them, or the
// origin, is wrong.
func (r *Report) AllDead() bool {
	return r.Images > 0 && len(r.Forms) > 0 && !slices.ContainsFunc(r.Forms, func(f FormReport) bool { return f.Missing < r.Images })
}

// WriteJSON writes the report as one document.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// printed is how many failures the table has below it.
const printed = 20

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatDefault
	t.SuppressTrailingSpaces()
	t.AppendHeader(table.Row{"format", "made", "ready", "kept", "bypass", "missing", "done before", "failed", "bytes", "become", "saved"})
	var right []table.ColumnConfig
	for n := 2; n <= 11; n++ {
		right = append(right, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	for _, f := range r.Forms {
		before, after, saved := "", "", ""
		if f.BytesBefore > 0 {
			before, after = humanize.IBytes(uint64(f.BytesBefore)), humanize.IBytes(uint64(f.BytesAfter))
			saved = fmt.Sprintf("%.0f %%", 100*float64(f.BytesBefore-f.BytesAfter)/float64(f.BytesBefore))
		}
		t.AppendRow(table.Row{f.Format, f.Made, f.Ready, f.Kept, f.Bypassed, f.Missing, f.Before, f.Failed, before, after, saved})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", t.Render(), r.Found())
	for _, f := range r.Forms {
		if f.Format == Original.String() || len(f.KeptWhy) == 0 {
			continue
		}
		var why []string
		for _, code := range slices.Sorted(maps.Keys(f.KeptWhy)) {
			why = append(why, fmt.Sprintf("%s %d", code, f.KeptWhy[code]))
		}
		fmt.Fprintf(&b, "kept as originals for %s: %s\n", f.Format, printable(strings.Join(why, ", ")))
	}
	for i, f := range r.Failures {
		if i == printed {
			break
		}
		formats := ""
		if len(f.Formats) > 0 {
			formats = " (" + strings.Join(f.Formats, ", ") + ")"
		}
		fmt.Fprintf(&b, "failed: %s%s: %s\n", printable(f.Name), formats, printable(f.Reason))
	}
	if more := r.Failed + r.Unread - min(len(r.Failures), printed); more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	for i, f := range r.Dead {
		if i == printed {
			fmt.Fprintf(&b, "and %d more dead links\n", r.DeadLinks-printed)
			break
		}
		fmt.Fprintf(&b, "dead link: %s: %s\n", printable(f.Name), printable(f.Reason))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Found says in a line what there was.
func (r *Report) Found() string {
	line := count(r.Images, "image") + " of the site"
	if r.Sitemaps+r.Pages > 0 {
		line += fmt.Sprintf(" in %s and %s", count(r.Sitemaps, "sitemap"), count(r.Pages, "page"))
	}
	line += fmt.Sprintf("; %s in %s", count(r.Requests, "request"), time.Duration(r.Seconds*float64(time.Second)).Round(time.Second))
	if r.Foreign > 0 {
		line += fmt.Sprintf("; %d left out since they are on other hosts", r.Foreign)
		if r.Hostless {
			line += ": " + r.NoHosts()
		}
	}
	if r.LeftOut > 0 {
		line += fmt.Sprintf("; %d left out since karui does not convert them", r.LeftOut)
	}
	if r.OverLimit > 0 {
		line += fmt.Sprintf("; %d over the limit, see --max-images", r.OverLimit)
	}
	return line
}

// NoHosts says why no URL is the site's, and what helps.
func (r *Report) NoHosts() string {
	return fmt.Sprintf("site %s has no hosts in the configuration, so that no URL is known to be its own (--host NAME names one; paths in a --list need none)", r.Site)
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return humanize.Comma(int64(n)) + " " + what
}

// printable keeps what documents and answers hold from steering a terminal.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			return '\uFFFD'
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
