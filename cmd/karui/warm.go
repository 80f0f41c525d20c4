package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"karui/internal/admin"
	"karui/internal/api"
	"karui/internal/command"
	"karui/internal/server"
	"karui/internal/warm"
	"karui/proxy"
)

// warming is the command line of `karui warm`.
type warming struct {
	file                          configFlag
	admin                         admin.Flags
	site                          string
	sitemaps, pages, lists, hosts words
	proxy, rate, state            string
	formats                       []string
	original, again, dryRun, json bool
	followPages                   bool
	parallel, maxImages           int
	patience, doneFor, fetch      time.Duration
}

// words is a flag that may be given several times, each time with one value of any
// form.
type words []string

func (w *words) String() string     { return strings.Join(*w, " ") }
func (w *words) Set(s string) error { *w = append(*w, s); return nil }
func (w *words) Type() string       { return "string" }

func newWarmCommand() *cobra.Command {
	var w warming
	cmd := &cobra.Command{
		Use:   "warm --site ID {--sitemap URL | --page URL | --list FILE}...",
		Short: "Fills the cache with a site's images, at a bounded rate",
		Long: `Finds the images of a site in sitemaps, pages and lists, and asks karui for each of
them as the edge would, in every format of the site, until the answer is a settled
one. Viewers then get the lighter format at the first request.

  --sitemap  a sitemap or an index of sitemaps, also packed by gzip. Images that it
             names are taken; where it names only pages, they are read for theirs.
  --page     an HTML page: the images that a browser would load, and those that its
             metadata names.
  --list     URLs or paths, one a line.

Each is a URL or a file, - is the standard input, and all may be given several times.
Only images on the site's hosts count; nothing is fetched from hosts that neither the
site nor the command line names. Images that karui does not convert are left out.

It asks at --rate at most, pages included, and less when that is more than karui can
do: it waits with growing pauses while karui answers 503 or cannot be reached, and
while the admin listener says that the dial is above 0 or conversions are waiting. It
gives up when that lasts for --patience.

What was done is kept in a state file: the same command goes on where it ended, however
that came, and does not ask again for what was done within --done-for.

Exit code 0 if all images are settled, 1 if some are not (the table says which, and
why) or it was stopped, 2 for wrong usage. Dead links (404 and 410) are listed and are
no failures, unless there is nothing else.`,
		Example: `  karui warm --site shop --sitemap https://www.example.com/sitemap.xml
  karui warm --site shop --page https://www.example.com/ --rate 20/s --parallel 8
  karui warm --site shop --list urls.txt --format webp --original
  karui warm --site shop --sitemap sitemap.xml.gz --dry-run | head`,
		Args: cobra.NoArgs,
		RunE: w.run,
	}
	w.file.register(cmd)
	w.admin.Register(cmd)
	f := cmd.Flags()
	f.StringVar(&w.site, "site", "", "the site (its id in the configuration)")
	f.Var(&w.sitemaps, "sitemap", "sitemap or index of sitemaps: URL, file or -")
	f.Var(&w.pages, "page", "HTML page: URL, file or -")
	f.Var(&w.lists, "list", "list of URLs or paths, one a line: URL, file or -")
	f.Var(&w.hosts, "host", "a further host of the site, without a port")
	f.StringVar(&w.proxy, "proxy", "", "address of karui, such as http://10.0.0.5:8080 (default: listen of the configuration)")
	f.StringVar(&w.rate, "rate", "5/s", "requests at most, such as 5/s or 90/m")
	f.IntVar(&w.parallel, "parallel", 4, "requests at a time, 1 to 64")
	f.StringSliceVar(&w.formats, "format", nil, "only these of the site's formats")
	f.BoolVar(&w.original, "original", false, "also ask for the original, as viewers do who take no lighter format")
	f.BoolVar(&w.followPages, "follow-pages", true, "read the pages that a sitemap names without images")
	f.IntVar(&w.maxImages, "max-images", warm.DefaultLimits().Images, "images at most, up to 2000000")
	f.StringVar(&w.state, "state", "", "file that remembers what is done (default: one below the user's cache folder)")
	f.BoolVar(&w.again, "again", false, "forget what was done, and begin anew")
	f.DurationVar(&w.doneFor, "done-for", 0, "how long an image counts as done (default: ttl.long)")
	f.DurationVar(&w.patience, "patience", 10*time.Minute, "give up when karui gives no good answer for so long")
	f.DurationVar(&w.fetch, "fetch-timeout", warm.DefaultLimits().Fetch, "how long one sitemap or page may take")
	f.BoolVar(&w.dryRun, "dry-run", false, "print the images that would be asked for, and ask for none")
	f.BoolVar(&w.json, "json", false, "print the report as JSON")
	return cmd
}

// job is what the command line and the configuration come to.
type job struct {
	options warm.Options
	sources []warm.Source
	config  server.Config
}

func (w *warming) run(cmd *cobra.Command, _ []string) error {
	j, err := w.job(cmd)
	if err != nil {
		return err
	}
	o := j.options
	o.State = warm.Memory(w.site, j.sources)
	if !w.dryRun {
		if o.State, err = w.openState(j.sources); err != nil {
			return err
		}
		defer func() { _ = o.State.Close() }() // nothing is written by it
		client, err := w.watch(j.config, cmd.Flags().Changed("admin"))
		if err != nil {
			return err
		}
		if client != nil {
			defer client.Close()
			o.Watch = func(ctx context.Context) (warm.Load, error) { return loadOf(ctx, client, w.site) }
		}
	}
	show := newWarmProgress(cmd)
	o.Progress, o.Say = show.update, show.say
	if w.dryRun {
		o.Found = func(target string) { _, _ = fmt.Fprintln(cmd.OutOrStdout(), target) }
	}
	report, failure := warm.Run(cmd.Context(), o)
	show.end()
	return w.finish(cmd, report, failure)
}

// finish prints the report and tells what the command comes to.
func (w *warming) finish(cmd *cobra.Command, report *warm.Report, failure error) error {
	var err error
	switch {
	case w.dryRun:
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%s\n", report.Found())
		for _, f := range report.Failures {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "failed: %s: %s\n", f.Name, f.Reason)
		}
	case w.json:
		err = report.WriteJSON(cmd.OutOrStdout())
	default:
		err = report.WriteTable(cmd.OutOrStdout())
	}
	switch {
	case errors.Is(failure, context.Canceled):
		failure = errors.New("stopped")
	case failure != nil:
	case report.Images == 0 && report.Unread == 0 && report.Foreign > 0 && report.Hostless:
		failure = fmt.Errorf("no image of site %s was found: %s", w.site, report.NoHosts())
	case report.Images == 0 && report.Unread == 0:
		failure = fmt.Errorf("no image of site %s was found: of other hosts there were %d (--host adds one), of other kinds %d",
			w.site, report.Foreign, report.LeftOut)
	case report.OverLimit > 0:
		failure = fmt.Errorf("%d images are over the limit: raise --max-images", report.OverLimit)
	case report.AllDead() && report.Unread == 0:
		failure = fmt.Errorf("not one of the %d images of site %s exists: are the list and the site's origin the right ones?", report.Images, w.site)
	case report.Failed+report.Unread > 0:
		failure = fmt.Errorf("%s; %s tries again", failedWords(report), w.sameCommand())
	}
	if failure != nil && !report.Finished && !w.dryRun {
		failure = fmt.Errorf("%w; %s goes on from here (%s)", failure, w.sameCommand(), report.State)
	}
	return errors.Join(err, failure)
}

// sameCommand names what to run next.
func (w *warming) sameCommand() string {
	if w.again {
		return "the same command without --again"
	}
	return "the same command"
}

// failedWords counts what failed.
func failedWords(r *warm.Report) string {
	var parts []string
	if r.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d images failed", r.Failed, r.Images))
	}
	if r.Unread > 0 {
		parts = append(parts, fmt.Sprintf("%d sitemaps, pages or lists could not be read", r.Unread))
	}
	return strings.Join(parts, ", and ")
}

// job checks the command line.
func (w *warming) job(cmd *cobra.Command) (job, error) {
	if w.site == "" {
		return job{}, command.Usage("--site is missing: name the site by its id in the configuration")
	}
	sources, err := w.sources()
	if err != nil {
		return job{}, err
	}
	perSecond, err := parseRate(w.rate)
	if err != nil {
		return job{}, err
	}
	switch {
	case w.parallel < 1 || w.parallel > 64:
		return job{}, command.Usage("--parallel is %d, but it must be 1 to 64", w.parallel)
	case w.maxImages < 1 || w.maxImages > 2_000_000:
		return job{}, command.Usage("--max-images is %d, but it must be 1 to 2000000", w.maxImages)
	case w.patience <= 0 || w.fetch <= 0 || w.doneFor < 0:
		return job{}, command.Usage("--patience, --fetch-timeout and --done-for must be more than 0")
	}
	loaded, err := w.file.load(cmd)
	if err != nil {
		return job{}, err
	}
	cfg := loaded.Value
	at := slices.IndexFunc(cfg.Sites, func(s proxy.SiteConfig) bool { return s.ID == w.site })
	if at < 0 {
		ids := make([]string, len(cfg.Sites))
		for i, s := range cfg.Sites {
			ids[i] = s.ID
		}
		return job{}, command.Usage("no site has the id %q; the configuration has %s", w.site, strings.Join(ids[:min(len(ids), 10)], ", "))
	}
	site := cfg.Sites[at]
	forms, err := w.forms(site.Formats)
	if err != nil {
		return job{}, err
	}
	base, err := w.base(cfg.Listen)
	if err != nil {
		return job{}, err
	}
	limits := warm.DefaultLimits()
	limits.Images, limits.Fetch = w.maxImages, w.fetch
	o := warm.Options{
		Sources: sources, Forms: forms, Pages: w.followPages, Stdin: cmd.InOrStdin(), Limits: limits,
		Scope: warm.Scope{
			Hosts: append(slices.Clone(site.Hosts), w.hosts...), Include: site.Include, Exclude: site.Exclude,
			Extensionless: site.Extensionless, Keyed: site.Query.Keyed,
		},
		Proxy: warm.Proxy{
			URL: base, Routing: cfg.Edge.RoutingHeader, Site: w.site, KeyHeader: proxy.KeyHeader, Short: cfg.TTL.Short,
		},
		Rate: perSecond, Parallel: w.parallel, Patience: w.patience, DoneFor: w.doneFor, DryRun: w.dryRun,
	}
	if len(cfg.Edge.Secrets) > 0 {
		o.Proxy.Key = cfg.Edge.Secrets[0]
	}
	if o.DoneFor == 0 {
		o.DoneFor = cfg.TTL.Long
	}
	return job{o, sources, cfg}, nil
}

func (w *warming) sources() ([]warm.Source, error) {
	var out []warm.Source
	stdin := 0
	for _, of := range []struct {
		kind  warm.SourceKind
		names words
	}{{warm.Sitemap, w.sitemaps}, {warm.List, w.lists}, {warm.Page, w.pages}} {
		for _, name := range of.names {
			s := warm.Source{Kind: of.kind, Name: name}
			if name == "-" {
				stdin++
			}
			if err := s.Readable(); err != nil {
				return nil, command.Usage("--%s: %v", of.kind, err)
			}
			out = append(out, s)
		}
	}
	switch {
	case len(out) == 0:
		return nil, command.Usage("nothing says which images there are: name a --sitemap, a --page or a --list")
	case stdin > 1:
		return nil, command.Usage("- is the standard input, which can be read only once")
	}
	return out, nil
}

// forms gives what is asked for: the site's formats, or those of them that were named.
func (w *warming) forms(ofSite []string) ([]warm.Form, error) {
	formats := ofSite
	if len(w.formats) > 0 {
		formats = w.formats
	}
	var forms []warm.Form
	for _, name := range formats {
		if !slices.Contains(ofSite, name) {
			return nil, command.Usage("--format has %q, but the formats of site %s are %s", name, w.site, strings.Join(ofSite, ", "))
		}
		f, err := warm.ParseForm(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	if w.original {
		forms = append(forms, warm.Original)
	}
	return forms, nil
}

// base gives the address of karui itself.
func (w *warming) base(listen string) (*url.URL, error) {
	if w.proxy != "" {
		u, err := url.Parse(w.proxy)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" {
			return nil, command.Usage("--proxy is %q, but must be an address such as http://10.0.0.5:8080", w.proxy)
		}
		return u, nil
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return nil, command.Usage("listen is %q, which does not say where karui is: name it with --proxy URL", listen)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		if host = "127.0.0.1"; err == nil && ip.Is6() {
			host = "::1"
		}
	}
	return &url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}, nil
}

// openState opens the file that remembers what is done.
func (w *warming) openState(sources []warm.Source) (*warm.State, error) {
	file := w.state
	if file == "" {
		folder, err := os.UserCacheDir()
		if err != nil {
			return nil, command.Usage("there is no folder for what is done (%v): name a file with --state", err)
		}
		file = filepath.Join(folder, "karui", "warm", warm.StateName(w.site, sources))
	}
	return warm.OpenState(file, w.site, sources, w.again)
}

// watch gives the way to the admin listener, nil where the proxy is another one than
// the configuration's.
func (w *warming) watch(cfg server.Config, named bool) (*admin.Client, error) {
	if w.proxy != "" && !named {
		return nil, nil
	}
	client, err := w.admin.Client(func() (server.Config, error) { return cfg, nil }, api.Read, w.site)
	if err != nil && !named {
		return nil, nil // it is worth knowing, and can be done without
	}
	return client, err
}

// loadOf asks how much karui has to do. A token for the site alone does not see the
// workers.
func loadOf(ctx context.Context, client *admin.Client, site string) (warm.Load, error) {
	var dial server.DialAnswer
	if err := client.Get(ctx, "/dial", &dial); err != nil {
		return warm.Load{}, err
	}
	var stats api.Stats
	if err := client.Get(ctx, "/stats", &stats); err != nil {
		return warm.Load{}, err
	}
	l := warm.Load{Level: dial.Level, LevelName: dial.Name}
	if pin, ok := dial.Sites[site]; ok && pin.Level >= 0 && pin.Level < len(dial.Levels) {
		l.Level, l.LevelName = pin.Level, dial.Levels[pin.Level]
	}
	if stats.Workers != nil {
		for _, class := range []api.WorkerLoad{stats.Workers.Fast, stats.Workers.Slow} {
			l.Waiting += class.Waiting
			l.Oldest = max(l.Oldest, time.Duration(class.OldestWaitSeconds*float64(time.Second)))
		}
	}
	return l, nil
}

// parseRate reads a number with its unit of time.
func parseRate(text string) (perSecond float64, err error) {
	number, unit, _ := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(number, 64)
	seconds := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	if err != nil || seconds == 0 || !(n/seconds >= 1.0/3600 && n/seconds <= 10_000) {
		return 0, command.Usage("--rate is %q, but it must be a number with its time, such as 5/s, 90/m or 1000/h, and at most 10000/s", text)
	}
	return n / seconds, nil
}
