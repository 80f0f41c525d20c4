package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"karui/convert"
	"karui/convert/header"
	"karui/internal/audit"
	"karui/internal/batch"
	"karui/internal/command"
	"karui/proxy"
	"karui/proxy/rules"
)

// auditFlags are those of `karui audit`.
type auditFlags struct {
	// convertFlags has those that mean the same as those of `karui convert`.
	convertFlags
	file      configFlag
	site      string
	maxImages int
	fetch     time.Duration
}

func newAuditCommand() *cobra.Command {
	var flags auditFlags
	cmd := &cobra.Command{
		Use:   "audit {PAGE | DIR | FILE}...",
		Short: "Shows what a site would save, with before and after side by side",
		Long: `Converts the images of pages, folders and files as the proxy would, and writes one
page about it: bytes before and after, both pictures side by side with a score of how
much alike they look, and what stays as it is, and why. The page is one file that loads
nothing from elsewhere: it can be sent by mail.

A PAGE is the address of an HTML page, an HTML file, or the address of an image. Its
images are fetched from whatever host it names, private addresses included, with the
Accept of a browser of today: what the site already sends as WebP is seen as that.
--max-images, 32 MiB for each, 512 MiB and 10 minutes for all bound that. An HTML file
reaches only files below its own folder. Of a DIR, all files below it that are named
like images are taken, as karui convert does.

The report is karui-audit.html unless -o names another file; -o '' writes none. An
older report is replaced, any other file only with --overwrite. It stays under 30 MiB:
pictures are smaller copies where the files themselves would be too large, and only
the 300 largest images have any.

Scores go from 100 (the same pixels) down: from 95 on people see no difference, from 83
on only when they compare side by side, below that it shows.

--format, --quality and --png are those of karui convert. With --site they, and the
limits, come from the configuration, unless they are given as well: of the site's
formats those that a browser of today takes.

Exit code 0 if all images were read, 1 if some were not (the report is written all the
same) or it was interrupted, which leaves no report, 2 for wrong usage.`,
		Example: `  karui audit https://www.example.com/
  karui audit photos/ -o report.html
  karui audit https://www.example.com/ --format avif,webp --quality 70
  karui audit https://www.example.com/ --site shop --json | jq .total`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usage("name at least one page, folder or file")
			}
			return nil
		},
		RunE: flags.run,
	}
	f := cmd.Flags()
	flags.file.register(cmd)
	f.StringVarP(&flags.out, "output", "o", "karui-audit.html", "file for the report; '' for none")
	f.BoolVar(&flags.overwrite, "overwrite", false, "replace the file even if it is no report")
	f.StringVar(&flags.site, "site", "", "convert as this site does (its id in the configuration)")
	f.StringSliceVar(&flags.formats, "format", []string{header.WebP.String()}, "formats to convert to, best first: avif, heic, webp")
	f.IntVar(&flags.quality, "quality", 80, "1 to 100; a JPEG never gets more than it was saved with")
	f.StringVar(&flags.png, "png", convert.PNGAuto, "how PNG is compressed: auto (by content), lossy or lossless")
	f.IntVar(&flags.jobs, "jobs", 0, "images at a time (default: one per CPU)")
	f.IntVar(&flags.maxImages, "max-images", audit.DefaultLimits().Images, "images of pages at most, up to 5000")
	f.DurationVar(&flags.fetch, "fetch-timeout", audit.DefaultLimits().Fetch, "how long one page or image may take to come")
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

// plan is what the command line and the configuration come to.
func (a *auditFlags) plan(cmd *cobra.Command) (audit.Job, error) {
	job := audit.Job{Pixels: audit.ScreenPixels, Limits: convert.DefaultConfig(), Options: convert.Options{Keep: []string{convert.KeepCopyright}}}
	if a.site != "" || cmd.Flags().Changed("config") {
		loaded, err := a.file.load(cmd)
		if err != nil {
			return job, err
		}
		sites := loaded.Value.Sites
		at := slices.IndexFunc(sites, func(s proxy.SiteConfig) bool { return s.ID == a.site || a.site == "" && (s.Default || len(sites) == 1) })
		switch {
		case at < 0 && a.site == "":
			return job, command.Usage("--site is missing: the configuration has several sites, and none is the default one")
		case at < 0:
			return job, command.Usage("no site of the configuration has the id %q", a.site)
		}
		a.take(cmd, sites[at])
		job.Limits, job.Options.Keep = loaded.Value.Convert, sites[at].Keep
	}
	formats, err := a.check()
	if err != nil {
		return job, err
	}
	switch {
	case a.maxImages < 1 || a.maxImages > 5000:
		return job, command.Usage("--max-images is %d, but it must be 1 to 5000", a.maxImages)
	case a.fetch <= 0 || a.fetch > time.Hour:
		return job, command.Usage("--fetch-timeout is %s, but it must be more than 0 and at most 1h", a.fetch)
	}
	job.Options.Formats, job.Options.Quality, job.Options.PNG = formats, a.quality, a.png
	job.Parallel = a.jobs
	if job.Parallel == 0 {
		job.Parallel = runtime.GOMAXPROCS(0)
	}
	job.Limits.Workers = job.Parallel
	// Nobody waits for an answer here, so an image is never given up for want of a worker.
	job.Limits.QueueWait = time.Hour
	if a.out != "" {
		job.Pictures = audit.PicturesMost
	}
	return job, nil
}

// take fills in what a site says and no flag does.
func (a *auditFlags) take(cmd *cobra.Command, site proxy.SiteConfig) {
	changed := cmd.Flags().Changed
	if !changed("format") {
		var types []string
		for _, name := range site.Formats {
			types = append(types, "image/"+name)
		}
		a.formats = nil
		for _, accepted := range rules.Accepted([]string{audit.Accept}, types) {
			a.formats = append(a.formats, strings.TrimPrefix(accepted, "image/"))
		}
		if len(a.formats) == 0 { // HEIC alone, which browsers of one maker take
			a.formats = site.Formats
		}
	}
	if !changed("quality") {
		a.quality = site.Quality
	}
	if !changed("png") {
		a.png = site.PNG
	}
}

func (a *auditFlags) run(cmd *cobra.Command, args []string) error {
	job, err := a.plan(cmd)
	if err != nil {
		return err
	}
	if a.out != "" {
		if err := audit.MayWrite(a.out, a.overwrite); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "karui-audit-")
	if err != nil {
		return fmt.Errorf("make a folder for what is fetched: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is in the folder for such things
	found, err := a.collect(cmd, args, int64(job.Limits.MaxBytes), dir)
	if err != nil {
		return interrupted(err)
	}
	if len(found.Items) == 0 {
		return fmt.Errorf("no image was found in %s", strings.Join(args, ", "))
	}
	images, total, err := a.convert(cmd, found, job)
	if err != nil {
		return interrupted(err)
	}
	total.LeftOut = found.LeftOut
	if a.out != "" {
		subject := audit.Subject{
			Names: args, When: time.Now().UTC(), LeftOut: found.LeftOut, TooMany: found.TooMany, Pages: found.Pages,
			Settings: fmt.Sprintf("as %s, quality %d, PNG %s", strings.Join(a.formats, " or "), a.quality, a.png),
		}
		if err := audit.WriteFile(a.out, subject, images, total); err != nil {
			return err
		}
	}
	return a.finish(cmd, found, images, total)
}

func (a *auditFlags) collect(cmd *cobra.Command, args []string, most int64, dir string) (audit.Found, error) {
	limits := audit.DefaultLimits()
	limits.Images, limits.Fetch, limits.Bytes = a.maxImages, a.fetch, most
	bar, end := newBar(cmd, "fetching")
	defer end()
	return audit.Collect(cmd.Context(), args, limits, dir, func(done, all int) {
		bar(done, all, fmt.Sprintf("%d of %d images fetched", done, all))
	})
}

// convert runs the job over what was found.
func (a *auditFlags) convert(cmd *cobra.Command, found audit.Found, job audit.Job) ([]audit.Image, batch.Summary, error) {
	job.Parallel = min(job.Parallel, len(found.Items))
	job.Limits.Workers = job.Parallel
	pool, err := convert.New(job.Limits)
	if err != nil {
		return nil, batch.Summary{}, fmt.Errorf("start workers: %w", err)
	}
	defer pool.Close()
	if err := pool.CheckEncoders(cmd.Context(), job.Options.Formats); err != nil {
		return nil, batch.Summary{}, fmt.Errorf("--format %s: %w", strings.Join(a.formats, ","), err)
	}
	bar, end := newBar(cmd, "converting")
	defer end()
	return audit.Run(cmd.Context(), pool, found.Items, job, func(s batch.Summary) {
		bar(s.Files, len(found.Items), fmt.Sprintf("%d of %d images: %d converted, %d kept", s.Files, len(found.Items), s.Converted, s.Kept))
	})
}

// finish prints what came of it.
func (a *auditFlags) finish(cmd *cobra.Command, found audit.Found, images []audit.Image, total batch.Summary) error {
	out := cmd.OutOrStdout()
	if a.json {
		if err := audit.WriteJSON(out, images, total, a.out); err != nil {
			return err
		}
	} else {
		if err := audit.WriteTable(out, images, total, columns(out)); err != nil {
			return err
		}
		if found.TooMany > 0 {
			if _, err := fmt.Fprintf(out, "%d further images of the pages left out: --max-images is %d\n", found.TooMany, a.maxImages); err != nil {
				return err
			}
		}
		if a.out != "" {
			if _, err := fmt.Fprintf(out, "report: %s\n", a.out); err != nil {
				return err
			}
		}
	}
	if total.Failed > 0 {
		return fmt.Errorf("%d of %d images could not be read", total.Failed, total.Files)
	}
	return nil
}

// interrupted says in words what a signal did.
func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted: no report was written")
	}
	return err
}
