package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"karui/convert"
	"karui/convert/header"
	"karui/internal/batch"
	"karui/internal/command"
)

// convertFlags are those of `karui convert`.
type convertFlags struct {
	out       string
	overwrite bool
	formats   []string
	quality   int
	png       string
	jobs      int
	json      bool
}

func newConvertCommand() *cobra.Command {
	var flags convertFlags
	cmd := &cobra.Command{
		Use:   "convert FILE or DIR...",
		Short: "Converts files as the proxy would, and says what it decided and why",
		Long: `Converts files as the proxy would, and says what it decided and why.

A file is taken whatever its name; of a folder, all files below it that are named
like images (.jpg .jpeg .jpe .jfif .png .gif); how many others there are stands
below the table (left_out in JSON). Without -o nothing is written, and
the table shows what the proxy would save. With -o, variants are written there
under the paths that the originals have below their folder: photo.jpg becomes
photo.webp, or photo.jpg.webp where a photo.png is converted with it. Originals
that are kept as they are are not copied, and no file that exists is overwritten
unless --overwrite is given.

--format takes the formats that a viewer would accept, best first: a picture that
would not get smaller as the first, or that it cannot hold, becomes the next one.
Flat drawings become WebP rather than AVIF or HEIC, which would blur them, and
animations only WebP.

--json prints one document: {"files": [...], "total": {...}}. Each file has path,
source, width, height, frames, bytes, format, variant_bytes, saved_bytes, code (a
stable word, "converted" for a variant), reason (a sentence), settled (whether the
decision would be the same tomorrow), outcomes (code and reason for each format that
was asked for), quality, cpu_ms, and error where the file could not be read or its
variant not be written.

Exit code 0 also when originals are kept, 1 when a file could not be read or
written, 2 for wrong usage.`,
		Example: `  karui convert photo.jpg
  karui convert photos/ -o variants/
  karui convert photos/ --format avif,webp
  karui convert photos/ --quality 60 --json | jq '.files[] | select(.code != "converted")'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usage("name at least one file or folder")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	f := cmd.Flags()
	f.StringVarP(&flags.out, "output", "o", "", "folder for the variants (default: write nothing)")
	f.BoolVar(&flags.overwrite, "overwrite", false, "replace variants that are there already (never an original)")
	f.StringSliceVar(&flags.formats, "format", []string{header.WebP.String()}, "formats to convert to, best first: avif, heic, webp")
	f.IntVar(&flags.quality, "quality", 80, "1 to 100; a JPEG never gets more than it was saved with")
	f.StringVar(&flags.png, "png", convert.PNGAuto, "how PNG is compressed: auto (by content), lossy or lossless")
	f.IntVar(&flags.jobs, "jobs", 0, "conversions at a time (default: one per CPU)")
	f.BoolVar(&flags.json, "json", false, "print one JSON document instead of a table")
	for name, values := range map[string][]string{
		"format": {"webp", "avif,webp", "heic,webp", "avif", "heic"},
		"png":    {convert.PNGAuto, convert.PNGLossy, convert.PNGLossless},
	} {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // only for a flag that does not exist
		}
	}
	return cmd
}

// check tells which flag cannot be used, and gives the formats.
func (c *convertFlags) check() ([]header.Format, error) {
	var formats []header.Format
	for _, name := range c.formats {
		format, known := header.ParseFormat(strings.TrimSpace(name))
		switch {
		case !known || !convert.CanMake(format):
			return nil, command.Usage("--format has %q, but it must be avif, heic or webp, or several of these with commas between", name)
		case slices.Contains(formats, format):
			return nil, command.Usage("--format has %s twice", name)
		}
		formats = append(formats, format)
	}
	switch {
	case len(formats) == 0:
		return nil, command.Usage("--format is empty, but it must be avif, heic or webp, or several of these with commas between")
	case c.quality < 1 || c.quality > 100:
		return nil, command.Usage("--quality is %d, but it must be 1 to 100", c.quality)
	case !slices.Contains([]string{convert.PNGAuto, convert.PNGLossy, convert.PNGLossless}, c.png):
		return nil, command.Usage("--png is %q, but it must be auto, lossy or lossless", c.png)
	case c.jobs < 0 || c.jobs > 256:
		return nil, command.Usage("--jobs is %d, but it must be 1 to 256, or 0 for one per CPU", c.jobs)
	case c.overwrite && c.out == "":
		return nil, command.Usage("--overwrite does nothing without -o")
	}
	return formats, nil
}

func (c *convertFlags) run(cmd *cobra.Command, args []string) error {
	formats, err := c.check()
	if err != nil {
		return err
	}
	inputs, leftOut := batch.Inputs(args)
	if len(inputs) == 0 {
		return fmt.Errorf("no file in %s is named like an image (.jpg .jpeg .jpe .jfif .png .gif)", strings.Join(args, ", "))
	}
	if c.out != "" {
		if err := batch.Clash(inputs); err != nil {
			return command.Usage("%w", err)
		}
	}
	limits := convert.DefaultConfig()
	limits.Workers = min(c.jobs, len(inputs))
	if c.jobs == 0 {
		limits.Workers = min(runtime.GOMAXPROCS(0), len(inputs))
	}
	// Nobody waits for an answer here, so a file is never given up for want of a worker.
	limits.QueueWait = time.Hour
	pool, err := convert.New(limits)
	if err != nil {
		return fmt.Errorf("start workers: %w", err)
	}
	defer pool.Close()
	if err := pool.CheckEncoders(cmd.Context(), formats); err != nil {
		return fmt.Errorf("--format %s: %w", strings.Join(c.formats, ","), err)
	}

	job := batch.Job{
		Inputs: inputs, Out: c.out, Overwrite: c.overwrite, Limits: limits, Parallel: limits.Workers,
		Options: convert.Options{
			Formats: formats, Quality: c.quality, PNG: c.png, Keep: []string{convert.KeepCopyright},
		},
	}
	reports, total, stopped := runBatch(cmd, pool, job)
	total.LeftOut = leftOut
	if err := c.print(cmd, reports, total); err != nil {
		return err
	}
	switch {
	case stopped != nil && total.Files < len(inputs):
		return fmt.Errorf("stopped after %d of %d files: %w", total.Files, len(inputs), stopped)
	case total.Failed > 0:
		there := 0
		for _, r := range reports {
			if strings.Contains(r.Error, "--overwrite") {
				there++
			}
		}
		hint := ""
		if there > 0 {
			hint = fmt.Sprintf(", %d of them since a file is there already, which --overwrite replaces", there)
		}
		return fmt.Errorf("%d of %d files could not be read or written%s", total.Failed, total.Files, hint)
	}
	return nil
}

// runBatch runs the job, with progress where somebody is watching.
func runBatch(cmd *cobra.Command, c batch.Converter, job batch.Job) ([]batch.Report, batch.Summary, error) {
	var (
		reports []batch.Report
		total   batch.Summary
	)
	bar, end := newProgress(cmd, int64(len(job.Inputs)))
	defer end()
	err := batch.Run(cmd.Context(), c, job, func(r batch.Report) {
		total.Add(&r)
		reports = append(reports, r)
		bar(total)
	})
	batch.Sort(reports)
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	return reports, total, err
}

// newProgress shows how far the work is, on a terminal only. End takes it away.
func newProgress(cmd *cobra.Command, files int64) (update func(batch.Summary), end func()) {
	bar, end := newBar(cmd, "converting")
	return func(s batch.Summary) {
		bar(s.Files, int(files), fmt.Sprintf("%d of %d files: %d converted, %d kept", s.Files, files, s.Converted, s.Kept))
	}, end
}

// print writes the result in the form that was asked for.
func (c *convertFlags) print(cmd *cobra.Command, reports []batch.Report, total batch.Summary) error {
	if c.json {
		return batch.WriteJSON(cmd.OutOrStdout(), reports, total)
	}
	return batch.WriteTable(cmd.OutOrStdout(), reports, total, columns(cmd.OutOrStdout()))
}

// columns is the width of a terminal, 0 for what is none.
func columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd())) //nolint:gosec // a file descriptor
	if err != nil {
		return 0
	}
	return width
}
