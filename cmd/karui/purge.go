package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"karui/internal/admin"
	"karui/internal/api"
	"karui/internal/command"
	"karui/internal/purging"
	"karui/internal/purging/nodes"
	"karui/internal/server"
)

// purge is the command line of `karui purge`.
type purge struct {
	file    configFlag
	nodes   admin.Nodes
	site    string
	from    []string
	exact   bool
	noEdge  bool
	noWait  bool
	yes     bool
	json    bool
	list    bool
	follow  string
	timeout time.Duration
}

// maxPrefixes bounds what one command purges: with more, a shorter prefix is meant.
const maxPrefixes = 100_000

func newPurgeCommand() *cobra.Command {
	var p purge
	cmd := &cobra.Command{
		Use:   "purge --site ID PREFIX...",
		Short: "Purges pictures from the proxy, then from the edge",
		Long: `Purges everything of a site whose path begins with one of the prefixes: at once from
the proxy, and then, where the site has a distribution, from the edge. It waits for
both.

A PREFIX is a path, or a whole URL of which only the path counts; its host must not be
another site's. It may be typed as it looks in a browser, and covers what begins with it:
/images/ a folder, /a.jpg also /a.jpg?v=2, and / all of the site. A star at its end says
no more.

Nothing that was fetched before is answered by the proxy any more, also what is still
on its way, and over a restart. The edge is told once all nodes that were named have
acknowledged; if one does not, it is named, the edge is left alone, and the exit code
is 1. It is 1, too, where no disk of a node took the purge, which then holds until the
node's next start only; the edge is purged all the same.

CloudFront takes seconds to minutes, and no more than 15 prefixes at a time; the rest
waits in karui, which goes on by itself when this command is ended. With --exact, the
prefixes are whole paths, of which CloudFront takes 3,000 at a time; copies with a query
in their URL then stay there unless the query is named.

Exit code 0 if all is purged (with --no-wait: taken), 1 if not, 2 for wrong usage.`,
		Example: `  karui purge --site shop /images/spring/
  karui purge --site shop https://www.example.com/logo.png '/写真/'
  karui purge --site shop --exact --file changed.txt
  find images -newer stamp -printf '/%p\n' | karui purge --site shop --file -
  karui purge --site shop / --admin http://10.0.0.1:9090 --admin http://10.0.0.2:9090 --token-file /run/secrets/staff
  karui purge --list`,
		RunE: p.run,
	}
	p.file.register(cmd)
	p.nodes.Register(cmd)
	f := cmd.Flags()
	f.StringVar(&p.site, "site", "", "the site's id")
	f.StringArrayVar(&p.from, "file", nil, "file with more prefixes, one a line; - is the standard input")
	f.BoolVar(&p.exact, "exact", false, "the prefixes are whole paths: many at once are faster at the edge")
	f.BoolVar(&p.noEdge, "no-edge", false, "leave the edge alone")
	f.BoolVar(&p.noWait, "no-wait", false, "do not wait for the edge")
	f.DurationVar(&p.timeout, "timeout", 30*time.Minute, "how long to wait for the edge, which karui goes on with by itself")
	f.BoolVar(&p.yes, "yes", false, "do not ask before all of a site is purged")
	f.BoolVar(&p.json, "json", false, "print the result as JSON")
	f.BoolVar(&p.list, "list", false, "show the last purges, of all sites that the token may purge or of --site")
	f.StringVar(&p.follow, "follow", "", "wait for the purge of this id, as --list shows it")
	return cmd
}

func (p *purge) run(cmd *cobra.Command, args []string) error {
	if err := p.check(cmd, args); err != nil {
		return err
	}
	var sites []string
	if p.site != "" {
		sites = []string{p.site}
	}
	clients, err := p.nodes.Clients(func() (server.Config, error) {
		loaded, err := p.file.load(cmd)
		if err != nil {
			return server.Config{}, err
		}
		return loaded.Value, nil
	}, api.Purge, sites...)
	if err != nil {
		return err
	}
	var all []nodes.Node
	for _, c := range clients {
		defer c.Close()
		all = append(all, c)
	}
	switch {
	case p.list:
		return p.show(cmd, all)
	case p.follow != "":
		one, err := nodes.Find(cmd.Context(), all[0], p.follow)
		if err != nil {
			return err
		}
		answer := nodes.Answer{Admin: all[0].Base(), Acknowledged: true, Volatile: one.Volatile}
		if one.Remark != "" {
			answer.Remarks = []string{one.Remark}
		}
		result := nodes.Result{Site: one.Site, Nodes: []nodes.Answer{answer}, Purges: []purging.Purge{one}}
		err = p.wait(cmd, all[0], result)
		if p.volatile(cmd, result) {
			return command.ErrReported
		}
		return err
	}
	prefixes, err := p.prefixes(cmd, args)
	if err != nil {
		return err
	}
	if err := p.sure(cmd, prefixes); err != nil {
		return err
	}
	result := nodes.Purge(cmd.Context(), all, nodes.Order{Site: p.site, Prefixes: prefixes, Exact: p.exact, Edge: !p.noEdge})
	if result.Failed {
		err := p.failed(cmd, result, len(prefixes))
		_ = p.volatile(cmd, result)
		return err
	}
	p.acknowledged(cmd, result, len(prefixes))
	err = p.wait(cmd, all[0], result)
	if p.volatile(cmd, result) {
		return command.ErrReported
	}
	return err
}

// check looks at what can be told from the command line alone.
func (p *purge) check(cmd *cobra.Command, args []string) error {
	if p.list || p.follow != "" {
		for _, name := range []string{"file", "exact", "no-edge", "yes"} {
			if len(args) > 0 || cmd.Flags().Changed(name) || p.list && p.follow != "" {
				return command.Usage("--list and --follow look at purges: say nothing of what to purge with them")
			}
		}
		return nil
	}
	switch {
	case p.site == "":
		return command.Usage("--site is missing: name the site whose pictures are meant")
	case len(args) == 0 && len(p.from) == 0:
		return command.Usage("say what to purge, such as `karui purge --site %s /images/`; / is all of the site", p.site)
	case p.timeout <= 0:
		return command.Usage("--timeout is %s: it must be more than 0, such as 10m", p.timeout)
	case p.noWait && cmd.Flags().Changed("timeout"):
		return command.Usage("--timeout is about waiting, which --no-wait leaves out")
	}
	return nil
}

// prefixes gives those of the arguments and the files, in their common form. Before one
// of a whole URL its host stays, which a node compares with the site's.
func (p *purge) prefixes(cmd *cobra.Command, args []string) ([]string, error) {
	var list []string
	add := func(where, text string) error {
		prefix, err := purging.Prefix(text, p.exact)
		if err != nil {
			return command.Usage("%s%v", where, err)
		}
		if host := purging.Host(text); host != "" {
			if strings.Contains(host, ":") {
				host = "[" + host + "]"
			}
			prefix = "https://" + host + prefix
		}
		if list = append(list, prefix); len(list) > maxPrefixes {
			return command.Usage("there are over %d prefixes: shorter ones cover more", maxPrefixes)
		}
		return nil
	}
	for _, text := range args {
		if err := add("", text); err != nil {
			return nil, err
		}
	}
	for _, name := range p.from {
		if err := eachLine(cmd, name, add); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, command.Usage("--file holds no prefix: %s", strings.Join(p.from, ", "))
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// eachLine reads the lines of a file that say something. What begins with # is said to
// people.
func eachLine(cmd *cobra.Command, name string, add func(where, text string) error) error {
	in := cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return command.Usage("--file: %v", err)
		}
		defer f.Close()
		in = f
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<10)
	n := 0
	for lines.Scan() {
		n++
		text := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if text == "" || text[0] == '#' {
			continue
		}
		if err := add(fmt.Sprintf("%s:%d: ", name, n), text); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return command.Usage("%s:%d: the line is over 64 KiB", name, n+1)
		}
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// sure asks a person before all of a site is purged. A script means what it says.
func (p *purge) sure(cmd *cobra.Command, prefixes []string) error {
	if p.yes || !slices.ContainsFunc(prefixes, p.whole) || !command.IsTerminal(cmd.InOrStdin()) || !command.IsTerminal(cmd.ErrOrStderr()) {
		return nil
	}
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "This purges every picture of site %s: all of them are fetched and converted anew. Go on? [y/N] ", p.site)
	answer := make(chan string, 1)
	go func() { // it ends with the process, which ends soon when nobody answers
		line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case word := <-answer:
		if word == "y" || word == "yes" {
			return nil
		}
	case <-cmd.Context().Done():
		_, _ = fmt.Fprintln(cmd.ErrOrStderr())
	}
	return errors.New("nothing was purged")
}

// whole tells whether a prefix, or a URL with it, is all of a site.
func (p *purge) whole(prefix string) bool {
	path, err := purging.Prefix(prefix, p.exact)
	return err == nil && purging.Whole(path)
}

// complain says on stderr what went wrong.
func complain(cmd *cobra.Command, format string, args ...any) {
	w := cmd.ErrOrStderr()
	_, _ = fmt.Fprintf(w, "%s %s\n", command.Paint(w, command.Bad, "karui:"), fmt.Sprintf(format, args...))
}

// failed says which nodes have not acknowledged.
func (p *purge) failed(cmd *cobra.Command, r nodes.Result, count int) error {
	if p.json {
		if err := printJSON(cmd.OutOrStdout(), r); err != nil {
			return err
		}
	} else {
		p.acknowledged(cmd, r, count)
	}
	misused := true
	for _, a := range r.Nodes {
		why := a.Err
		if refused := (*api.Error)(nil); errors.As(why, &refused) {
			why = refused // which listener it was is said anyway
		}
		if !a.Acknowledged && !errors.Is(a.Err, context.Canceled) {
			complain(cmd, "%s has not purged: %v", a.Admin, why)
		}
		misused = misused && !a.Acknowledged && command.IsUsage(a.Err)
	}
	switch {
	case cmd.Context().Err() != nil:
		complain(cmd, "interrupted: the edge is as it was; purge again")
	case !p.noEdge && len(r.Nodes) > 1:
		complain(cmd, "the edge was left alone, since it would fetch old pictures from there: mend that, or take the node out of service, and purge again")
	}
	if misused {
		return command.ErrMisused
	}
	return command.ErrReported
}

// acknowledged says who has purged.
func (p *purge) acknowledged(cmd *cobra.Command, r nodes.Result, count int) {
	if p.json {
		return
	}
	what := "1 prefix"
	if count != 1 {
		what = fmt.Sprintf("%d prefixes", count)
	}
	for _, a := range r.Nodes {
		if a.Acknowledged {
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s has purged %s of site %s\n", a.Admin, what, r.Site)
		}
	}
	for _, a := range r.Nodes {
		if a.Volatile {
			continue // it is said at the end
		}
		for _, remark := range a.Remarks {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "note: %s: %s\n", a.Admin, remark)
		}
	}
}

// volatile names the nodes whose next start would bring back what was purged.
func (p *purge) volatile(cmd *cobra.Command, r nodes.Result) (any bool) {
	for _, a := range r.Nodes {
		if a.Volatile {
			any = true
			complain(cmd, "%s: %s", a.Admin, strings.Join(a.Remarks, "; "))
		}
	}
	return any
}
