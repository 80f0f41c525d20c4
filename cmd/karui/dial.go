package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the zones of dial.schedule, where the machine has none

	"github.com/spf13/cobra"

	"karui/internal/api"
	"karui/internal/command"
	"karui/internal/server"
	"karui/proxy/origin"
)

func newDialCommand() *cobra.Command {
	var a asking
	var shed string
	cmd := &cobra.Command{
		Use:   "dial [LEVEL | auto]",
		Short: "Shows how conversions are made and what is turned away; sets it",
		Long: `Shows the level of the dial, why it is there and where it was, and which requests
are turned away; or sets one of these.

A LEVEL is a number or a name, such as 2 or spare: new conversions are made so from
now on, whatever the load. auto lets the load and the schedule decide again. With
--shed, a share of the requests is turned away with 503, by which the edge asks the
site's own origin; a given picture is always turned away, or never.

What is set holds at once, and over a restart of karui. What the edge has already
does not get smaller before it expires there: set a level some time before it is
needed, at least sites' usual lifetimes.`,
		Example: `  karui dial
  karui dial 2 --for 2h
  karui dial auto
  karui dial --shed 30% --site shop --for 1h
  karui dial --shed 0%`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.Usage("say `karui dial`, `karui dial LEVEL` or `karui dial auto`")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			hold, err := a.holds(cmd)
			if err != nil {
				return err
			}
			change := server.DialChange{For: hold, Site: a.site, Shed: shed}
			if len(args) > 0 {
				change.Level = args[0]
			}
			switch {
			case change.Level == "" && cmd.Flags().Changed("shed") && shed == "":
				return command.Usage("--shed is empty: it must be a percentage such as 30%%")
			case change.Level != "" || shed != "":
				if change.Level == "auto" && shed == "" && hold != "" {
					return command.Usage("--for is about a level or a share: auto holds anyway")
				}
				return a.askDial(cmd, api.Dial, http.MethodPut, change)
			case hold != "":
				return command.Usage("--for is about what is set: name a level, or a share with --shed")
			}
			return a.askDial(cmd, api.Read, http.MethodGet, nil)
		},
	}
	a.register(cmd)
	cmd.Flags().StringVar(&shed, "shed", "", "share of the requests to turn away, such as 30%; 0% for none")
	return cmd
}

// askDial sends in, unless it is nil, and prints the dial that comes back.
func (a *asking) askDial(cmd *cobra.Command, right api.Right, method string, in any) error {
	client, err := a.client(cmd, right)
	if err != nil {
		return err
	}
	defer client.Close()
	var answer server.DialAnswer
	if err := send(cmd.Context(), client, method, "/dial", in, &answer); err != nil {
		return err
	}
	if a.site != "" && in == nil {
		// The dial names only the sites for which something is set.
		var places server.PlacesAnswer
		if err := client.Get(cmd.Context(), "/places", &places); err != nil {
			return err
		}
		if !slices.ContainsFunc(places.Sites, func(s origin.PlacesStatus) bool { return s.Site == a.site }) {
			return noSite(a.site)
		}
	}
	if a.json {
		return printJSON(cmd.OutOrStdout(), answer)
	}
	return printDial(cmd.OutOrStdout(), &answer, a.site)
}

// printDial writes how the dial stands, for all sites or for one.
func printDial(w io.Writer, d *server.DialAnswer, site string) error {
	const shown = 10
	var b strings.Builder
	fmt.Fprintf(&b, "level %d (%s) by %s%s", d.Level, d.Name, dialCause(d), until(d.Until))
	fmt.Fprintf(&b, "; workers %.0f %% busy; levels: %s\n", 100*d.Busy, strings.Join(d.Levels, ", "))
	mine := func(id string) bool { return site == "" || id == "" || id == site }
	for _, id := range slices.Sorted(maps.Keys(d.Sites)) {
		if pin := d.Sites[id]; mine(id) && pin.Level >= 0 && pin.Level < len(d.Levels) {
			fmt.Fprintf(&b, "%s: level %d (%s) by an operator%s\n", id, pin.Level, d.Levels[pin.Level], until(pin.Until))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.Shed)) {
		if share := d.Shed[id]; mine(id) {
			first := ""
			if share.First > 0 {
				first = fmt.Sprintf(", those of its classes first (%.0f %%)", share.First)
			}
			fmt.Fprintf(&b, "%s: %g %% of requests are turned away%s%s\n", id, share.Percent, first, until(share.Until))
		}
	}
	if d.Disk {
		b.WriteString("all requests are turned away: every disk of the cache is full or out of use\n")
	}
	for _, g := range d.Stress {
		if g.Shedding && mine(g.Site) {
			fmt.Fprintf(&b, "%s are turned away since %s: they took too long to their first byte\n", groupWords(g), clockTime(g.Since))
		}
	}
	if line := backlogLine(d.Backlog, site); line != "" {
		b.WriteString(line)
	}
	n := 0
	for _, m := range d.History {
		if n++; !mine(m.Site) || n > shown {
			continue
		}
		of := ""
		if m.Site != "" {
			of = " (" + m.Site + ")"
		}
		fmt.Fprintf(&b, "  %s%s  %s -> %s: %s, %s\n", clockTime(m.At), of, m.FromName, m.ToName, m.Cause, localTimes(m.Detail))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// backlogLine says how much is to be made later, "" for nothing.
func backlogLine(counts map[string]int, site string) string {
	total := 0
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[id]; n > 0 && (site == "" || id == site) {
			total += n
			parts = append(parts, fmt.Sprintf("%s %d", id, n))
		}
	}
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("backlog: %d to be made at level 0 when workers are idle (%s)\n", total, strings.Join(parts, ", "))
}

func dialCause(d *server.DialAnswer) string {
	switch d.Mode {
	case "pinned":
		return "an operator"
	case "schedule":
		return fmt.Sprintf("the schedule (%s)", d.Window)
	case "auto":
		return "load"
	}
	return "the configuration"
}

func groupWords(g server.StressGroup) string {
	switch g.Group {
	case "misses":
		return "fetches for " + g.Site
	case "hits":
		return "answers from the cache, and with them all requests,"
	}
	return "all requests"
}

// stamp is a time as the server writes it into its sentences.
var stamp = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// localTimes writes the times in a sentence as the other times of the answer.
func localTimes(text string) string {
	return stamp.ReplaceAllStringFunc(text, func(found string) string {
		t, err := time.Parse(time.RFC3339, found)
		if err != nil {
			return found
		}
		return clockTime(t)
	})
}

// clockTime bears its zone, since the reader may sit in another one than the machine.
func clockTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 -07:00") }
