package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/internal/invalidation"
	"karui/internal/purging"
	"karui/internal/purging/nodes"
)

// wait waits for the edge, unless that is left out, and prints what came of it.
func (p *purge) wait(cmd *cobra.Command, node nodes.Node, r nodes.Result) error {
	out, notes := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if !p.json {
		p.announce(out, r)
	}
	said := map[string]bool{}
	for _, one := range r.Purges {
		for _, remark := range one.Edge.Remarks {
			if !said[remark] {
				said[remark] = true
				_, _ = fmt.Fprintf(notes, "note: %s\n", remark)
			}
		}
	}
	if batches := manyBatches(r.Purges); batches > 0 {
		_, _ = fmt.Fprintf(notes, "note: CloudFront takes %d prefixes at a time, so these go in %d turns of some seconds to minutes each; whole paths go %d at a time with --exact\n",
			invalidation.MaxWildcards, batches, invalidation.MaxExact)
	}
	var err error
	if !p.noWait && slices.ContainsFunc(r.Purges, func(one purging.Purge) bool { return one.State == purging.Running }) {
		limited, cancel := context.WithTimeout(cmd.Context(), p.timeout)
		defer cancel()
		update, end := purgeProgress(notes)
		r.Purges, err = nodes.Follow(limited, node, r.Purges, update)
		end()
	}
	if p.json {
		if err := printJSON(out, r); err != nil {
			return err
		}
	}
	if err != nil {
		p.unfinished(cmd, node, r, err)
		return command.ErrReported
	}
	return p.conclude(cmd, r)
}

// manyBatches gives the number of turns of purges that would be faster as exact ones,
// 0 where they are few.
func manyBatches(purges []purging.Purge) int {
	const few = 3
	batches := 0
	for _, one := range purges {
		if !one.Exact && one.State == purging.Running {
			batches += one.Edge.Batches
		}
	}
	if batches <= few {
		return 0
	}
	return batches
}

// announce says what the edge has been asked for.
func (p *purge) announce(out io.Writer, r nodes.Result) {
	paths, batches, distribution := 0, 0, ""
	for _, one := range r.Purges {
		switch one.Edge.State {
		case purging.None:
			_, _ = fmt.Fprintf(out, "site %s has no distribution (sites[].distribution): there is no edge to purge\n", r.Site)
			return
		case purging.Skipped:
			_, _ = fmt.Fprintf(out, "edge: distribution %s was left out\n", one.Edge.Distribution)
			return
		}
		paths, batches, distribution = paths+one.Edge.Paths, batches+one.Edge.Batches, one.Edge.Distribution
	}
	_, _ = fmt.Fprintf(out, "edge: distribution %s, %s in %s\n", distribution, counted(paths, "path"), counted(batches, "invalidation"))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// conclude says how it ended.
func (p *purge) conclude(cmd *cobra.Command, r nodes.Result) error {
	failed := false
	for _, one := range r.Purges {
		switch {
		case one.Edge.Failure != nil:
			failed = true
			complain(cmd, "the proxy has purged, the edge has not: %s\n  remedy: %s", one.Edge.Failure.Message, one.Edge.Failure.Remedy)
		case p.json:
		case one.Edge.State == purging.Running:
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "edge: under way; `karui purge --follow %s` waits for it\n", one.ID)
		case one.Edge.State == purging.Done:
			took := ""
			if one.Edge.Ended != nil {
				took = " after " + one.Edge.Ended.Sub(one.At).Round(time.Second).String()
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "edge: done%s\n", took)
		}
	}
	if failed {
		return command.ErrReported
	}
	return nil
}

// unfinished says what holds, and where to look, when the waiting ended before the
// edge was done.
func (p *purge) unfinished(cmd *cobra.Command, node nodes.Node, r nodes.Result, err error) {
	why := err.Error()
	switch {
	case cmd.Context().Err() != nil:
		why = "interrupted"
	case errors.Is(err, context.DeadlineExceeded):
		why = "not done within " + p.timeout.String()
	}
	words := fmt.Sprintf("%s: the proxy has purged, and karui at %s goes on with the edge by itself", why, node.Base())
	if i := slices.IndexFunc(r.Purges, func(one purging.Purge) bool { return one.State == purging.Running }); i >= 0 {
		one := r.Purges[i]
		if one.Edge.Waits != "" {
			words += "\n  it waits: " + one.Edge.Waits
		}
		words += fmt.Sprintf("\n  `karui purge --follow %s` waits again, `karui purge --list` shows how it does", one.ID)
	}
	complain(cmd, "%s", words)
}

// purgeProgress shows how the edge does, on a terminal only. End takes it away.
func purgeProgress(stderr io.Writer) (update func([]purging.Purge), end func()) {
	if !command.Terminal(stderr) {
		return nil, func() {}
	}
	began := time.Now()
	update = func(purges []purging.Purge) {
		done, all, waits := 0, 0, ""
		for _, one := range purges {
			all += one.Edge.Paths
			done += one.Edge.Completed
			if waits == "" {
				waits = one.Edge.Waits
			}
		}
		line := fmt.Sprintf("edge: %d of %d paths, %s", done, all, time.Since(began).Round(time.Second))
		if waits != "" {
			line += "; it waits: " + waits
		}
		if width := columns(stderr); width > 1 && len(line) >= width {
			line = strings.ToValidUTF8(line[:width-1], "")
		}
		_, _ = fmt.Fprintf(stderr, "\r\x1b[K%s", line)
	}
	return update, func() { _, _ = fmt.Fprint(stderr, "\r\x1b[K") }
}
