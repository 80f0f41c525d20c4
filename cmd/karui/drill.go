package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/internal/drill"
)

// drilling is the command line of `karui drill`.
type drilling struct {
	file    configFlag
	dryRun  bool
	json    bool
	both    bool
	faults  []string
	rates   []string
	levels  []int
	limit   time.Duration
	options drill.Options
}

func newDrillCommand() *cobra.Command {
	var d drilling
	cmd := &cobra.Command{
		Use:   "drill",
		Short: "Injects faults into places on this machine and prints what still succeeds",
		Long: `Injects faults into places on this machine's loopback, at several rates, fetches
through them at every level of retry.level, and prints the share of requests that
succeeded, what was added in requests, and how long it took. Nobody else is asked
and no configuration is needed.

With --dry-run nothing is sent at all: it says what each fault would do to the
sites of the configuration.`,
		Example: `  karui drill
  karui drill --fault refuse --fault hang --level 2 --requests 5000 --per-second 1000
  karui drill --both --json > drill.json
  karui drill --config /etc/karui/karui.yaml --dry-run`,
		Args: cobra.NoArgs,
		RunE: d.run,
	}
	d.file.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&d.dryRun, "dry-run", false, "say what each fault would do to the configured sites, and send nothing")
	flags.BoolVar(&d.json, "json", false, "print the figures as JSON")
	flags.BoolVar(&d.both, "both", false, "both places misbehave, not only one of two")
	flags.StringArrayVar(&d.faults, "fault", nil, "only this one, more than once for several: "+strings.Join(faultNames(), ", "))
	flags.StringSliceVar(&d.rates, "rate", nil, "shares of requests that are hit (default 1%,10%,50%,100%)")
	flags.IntSliceVar(&d.levels, "level", nil, "levels of retry.level (default 0,1,2,3)")
	flags.IntVar(&d.options.Requests, "requests", 500, "how many for each fault, rate and level")
	flags.IntVar(&d.options.PerSecond, "per-second", 250, "how many of these in a second")
	flags.IntVar(&d.options.AtOnce, "at-once", 6, "how many measurements beside one another")
	flags.DurationVar(&d.limit, "limit", 10*time.Minute, "end after this time, with what was measured until then")
	if err := cmd.RegisterFlagCompletionFunc("fault", cobra.FixedCompletions(faultNames(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // only for a flag that does not exist
	}
	return cmd
}

func faultNames() []string {
	var names []string
	for _, f := range drill.Faults() {
		names = append(names, string(f))
	}
	return names
}

func (d *drilling) run(cmd *cobra.Command, _ []string) error {
	if d.dryRun {
		return d.plan(cmd)
	}
	if cmd.Flags().Changed("config") {
		return command.Usage("a drill asks places of its own: add --dry-run to hear about the configured ones")
	}
	if d.limit <= 0 {
		return command.Usage("--limit is %s: it must be more than 0", d.limit)
	}
	if err := d.read(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), d.limit)
	defer cancel()
	update, end := drillProgress(cmd)
	report, failure := drill.Run(ctx, d.options, update)
	end()
	if failure != nil && len(report.Cells) == 0 && ctx.Err() == nil {
		return command.Usage("%v", failure)
	}
	var err error
	if d.json {
		out := json.NewEncoder(cmd.OutOrStdout())
		out.SetIndent("", "  ")
		err = out.Encode(report)
	} else {
		err = report.Print(cmd.OutOrStdout(), command.Terminal(cmd.OutOrStdout()))
	}
	switch {
	case errors.Is(failure, context.DeadlineExceeded):
		failure = fmt.Errorf("--limit (%s) ran out, and the rest was not measured", d.limit)
	case errors.Is(failure, context.Canceled):
		failure = errors.New("interrupted")
	}
	return errors.Join(err, failure)
}

// read takes over what the flags say in words.
func (d *drilling) read() error {
	d.options.Both, d.options.Levels = d.both, d.levels
	for _, f := range d.faults {
		d.options.Faults = append(d.options.Faults, drill.Fault(f))
	}
	for _, text := range d.rates {
		var percent float64
		if n, err := fmt.Sscanf(text, "%g%%", &percent); n != 1 || err != nil || percent <= 0 || percent > 100 {
			return command.Usage("--rate is %q: it must be a percentage over 0%% and up to 100%%, such as 10%%", text)
		}
		d.options.Rates = append(d.options.Rates, percent/100)
	}
	return nil
}

// plan prints what would happen.
func (d *drilling) plan(cmd *cobra.Command) error {
	loaded, err := d.file.load(cmd)
	if err != nil {
		return err
	}
	var sites []drill.Site
	for _, s := range loaded.Value.Sites {
		sites = append(sites, drill.Site{ID: s.ID, Deadline: loaded.Value.Origin.Deadline, Retry: loaded.Value.Retry, Places: s.Origins})
	}
	steps := drill.Plan(sites)
	if d.json {
		out := json.NewEncoder(cmd.OutOrStdout())
		out.SetIndent("", "  ")
		return out.Encode(steps)
	}
	return drill.PrintPlan(cmd.OutOrStdout(), steps, command.Terminal(cmd.OutOrStdout()))
}

// drillProgress shows how far the drill is, on a terminal only. End takes it away.
func drillProgress(cmd *cobra.Command) (update func(done, all int), end func()) {
	stderr := cmd.ErrOrStderr()
	if !command.Terminal(stderr) {
		return nil, func() {}
	}
	w := progress.NewWriter()
	w.SetOutputWriter(stderr)
	w.SetAutoStop(false)
	w.SetUpdateFrequency(200 * time.Millisecond)
	w.SetMessageLength(48)
	w.Style().Options.PercentFormat = "%3.0f%%"
	w.Style().Options.TimeInProgressPrecision = time.Second
	w.Style().Visibility.Value = false
	tracker := &progress.Tracker{Message: "drilling", RemoveOnCompletion: true}
	w.AppendTracker(tracker)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Render()
	}()
	update = func(n, all int) {
		tracker.UpdateTotal(int64(all))
		tracker.SetValue(int64(n))
		tracker.UpdateMessage(fmt.Sprintf("%d of %d measured", n, all))
	}
	return update, func() {
		tracker.MarkAsDone()
		w.Stop()
		<-done
	}
}
