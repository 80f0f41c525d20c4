package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"karui/internal/purging"
	"karui/internal/purging/nodes"
)

// show prints the last purges.
func (p *purge) show(cmd *cobra.Command, all []nodes.Node) error {
	lists := map[string]purging.List{}
	for _, n := range all {
		list, err := nodes.List(cmd.Context(), n)
		if err != nil {
			return err
		}
		if p.site != "" {
			list.Purges = slices.DeleteFunc(list.Purges, func(one purging.Purge) bool { return one.Site != p.site })
		}
		lists[n.Base()] = list
	}
	if p.json {
		if len(all) == 1 {
			return printJSON(cmd.OutOrStdout(), lists[all[0].Base()])
		}
		return printJSON(cmd.OutOrStdout(), lists)
	}
	for _, n := range all {
		if len(all) > 1 {
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s:\n", n.Base())
		}
		if err := printPurges(cmd.OutOrStdout(), lists[n.Base()].Purges); err != nil {
			return err
		}
	}
	return nil
}

// printPurges writes a line for each purge, and more where it failed.
func printPurges(w io.Writer, purges []purging.Purge) error {
	const shown = 30
	var b strings.Builder
	for i, one := range purges {
		if i == shown {
			fmt.Fprintf(&b, "and %d older ones (--json lists them)\n", len(purges)-shown)
			break
		}
		by := ""
		if one.By != "" {
			by = " by " + one.By
		}
		fmt.Fprintf(&b, "%s  %s  %s: %s%s; %s\n", one.ID, clockTime(one.At), one.Site, prefixWords(one), by, edgeWords(one))
		if f := one.Edge.Failure; f != nil {
			fmt.Fprintf(&b, "  %s\n  remedy: %s\n", f.Message, f.Remedy)
		}
	}
	if len(purges) == 0 {
		b.WriteString("no purges\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func prefixWords(one purging.Purge) string {
	const shown = 3
	words := strings.Join(one.Prefixes[:min(len(one.Prefixes), shown)], " ")
	if more := one.Count - min(len(one.Prefixes), shown); more > 0 {
		words += fmt.Sprintf(" and %d more", more)
	}
	return words
}

// edgeWords says how a purge does at the edge.
func edgeWords(one purging.Purge) string {
	e := one.Edge
	switch e.State {
	case purging.None:
		return "no distribution"
	case purging.Skipped:
		return "edge left out"
	case purging.Done:
		took := ""
		if e.Ended != nil {
			took = " in " + e.Ended.Sub(one.At).Round(time.Second).String()
		}
		return fmt.Sprintf("edge %s done%s", e.Distribution, took)
	case purging.Failed:
		return fmt.Sprintf("edge %s FAILED", e.Distribution)
	}
	words := fmt.Sprintf("edge %s: %d of %d paths", e.Distribution, e.Completed, e.Paths)
	if e.Batches > 1 {
		words += fmt.Sprintf(" in %d invalidations", e.Batches)
	}
	if e.Waits != "" {
		words += "; it waits: " + e.Waits
	}
	return words
}
