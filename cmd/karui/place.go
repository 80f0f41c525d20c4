package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"karui/internal/admin"
	"karui/internal/api"
	"karui/internal/command"
	"karui/internal/server"
	"karui/proxy/origin"
)

// asking is what the commands share that ask a running karui about fetching.
type asking struct {
	file  configFlag
	admin admin.Flags
	site  string
	hold  command.Duration
	json  bool
}

func (a *asking) register(cmd *cobra.Command) {
	a.file.register(cmd)
	a.admin.Register(cmd)
	cmd.Flags().StringVar(&a.site, "site", "", "only for this site (default: all)")
	cmd.Flags().Var(&a.hold, "for", "how long it holds, such as 90m, 6h or 3d (default: until it is changed)")
	cmd.Flags().BoolVar(&a.json, "json", false, "print the answer as JSON")
}

// client gives the way to the admin listener, with a token that has the right.
func (a *asking) client(cmd *cobra.Command, right api.Right) (*admin.Client, error) {
	load := func() (server.Config, error) {
		loaded, err := a.file.load(cmd)
		if err != nil {
			return server.Config{}, err
		}
		return loaded.Value, nil
	}
	var sites []string
	if a.site != "" {
		sites = []string{a.site}
	}
	return a.admin.Client(load, right, sites...)
}

// ask sends in, unless it is nil, and prints the places that come back.
func (a *asking) ask(cmd *cobra.Command, right api.Right, method, path string, in any) error {
	client, err := a.client(cmd, right)
	if err != nil {
		return err
	}
	defer client.Close()
	var answer server.PlacesAnswer
	if err := send(cmd.Context(), client, method, path, in, &answer); err != nil {
		return err
	}
	if a.site != "" {
		kept := answer.Sites[:0]
		for _, s := range answer.Sites {
			if s.Site == a.site {
				kept = append(kept, s)
			}
		}
		if len(kept) == 0 {
			return noSite(a.site)
		}
		answer.Sites = kept
	}
	if a.json {
		return printJSON(cmd.OutOrStdout(), answer)
	}
	return printPlaces(cmd.OutOrStdout(), answer.Sites)
}

// noSite says that karui, or the token, does not know the site that was named.
func noSite(site string) error {
	return command.Usage("there is no site %q that this token may see; `karui place` lists the sites", site)
}

func printJSON(w io.Writer, answer any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(answer)
}

func send(ctx context.Context, client *admin.Client, method, path string, in, out any) error {
	if in == nil {
		return client.Get(ctx, path, out)
	}
	return client.Do(ctx, method, path, in, out)
}

// holds gives --for as the API takes it.
func (a *asking) holds(cmd *cobra.Command) (string, error) {
	if !cmd.Flags().Changed("for") {
		return "", nil
	}
	if a.hold <= 0 {
		return "", command.Usage("--for is %s: it must be more than 0, such as 90m, 6h or 3d", a.hold.String())
	}
	return a.hold.String(), nil
}

func newPlaceCommand() *cobra.Command {
	var a asking
	cmd := &cobra.Command{
		Use:   "place [NAME {out | in}]",
		Short: "Shows the places that originals come from; takes one out of use, or lets it in",
		Long: `Shows the places (sites[].origins) that originals are fetched from and how they do,
or takes one out of use in an outage, and lets it in again.

A place that is out gets no request from karui, not even a heartbeat. The last
place of a site that is in is never taken out. What is set holds at once, and over
a restart of karui. It is about all sites that have a place of this name, or about
the one named with --site.`,
		Example: `  karui place
  karui place tokyo out --for 1h
  karui place tokyo in`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 2 && (args[1] == "out" || args[1] == "in") {
				return nil
			}
			return command.Usage("say `karui place`, `karui place NAME out` or `karui place NAME in`")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			hold, err := a.holds(cmd)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				if hold != "" {
					return command.Usage("--for is about what is set: name a place and say out")
				}
				return a.ask(cmd, api.Read, http.MethodGet, "/places", nil)
			}
			if args[1] == "in" && hold != "" {
				return command.Usage("--for is for out alone: a place that is in is watched by karui itself")
			}
			change := server.PlaceChange{State: args[1], For: hold, Site: a.site}
			return a.ask(cmd, api.Dial, http.MethodPut, "/places/"+url.PathEscape(args[0]), change)
		},
	}
	a.register(cmd)
	return cmd
}

// printPlaces writes one line for each place, below its site.
func printPlaces(w io.Writer, sites []origin.PlacesStatus) error {
	var b strings.Builder
	for _, s := range sites {
		fmt.Fprintf(&b, "%s: retries %s%s, level %d\n", s.Site, s.Retries, until(s.Until), s.Level)
		for _, p := range s.Places {
			use := ""
			if p.State != origin.StateIn && p.InUse {
				use = ", asked all the same as there is no other"
			}
			down := ""
			if p.AddressesDown > 0 && p.State != origin.StateDown {
				down = fmt.Sprintf(", %d of %d addresses down", p.AddressesDown, p.Addresses)
			}
			fmt.Fprintf(&b, "  %-20s %s%s%s%s; weight %g; last minute: %d tries, %d timed out, %d unavailable, %d overloaded\n",
				p.Name, p.State, until(p.Until), use, down, p.Weight, p.Tries, p.TimedOut, p.Unavailable, p.Overloaded)
		}
	}
	if len(sites) == 0 {
		b.WriteString("no sites\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + clockTime(t)
}
