package main

import (
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/internal/config"
	"karui/internal/demo"
)

// demonstration is the command line of `karui demo`.
type demonstration struct {
	listen string
	origin string
}

func newDemoCommand() *cobra.Command {
	var d demonstration
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Runs the whole system on this machine, to watch and to break",
		Long: `Runs the whole system on this machine: sample images, an edge that behaves as
CloudFront does, karui, the watchdog, and a mail server. No AWS and no network are
needed, and nothing stays behind when it ends.

It prints one address. The page there shows the images as viewers get them, the way
they came, the watchdog's rounds and its mails, and has buttons to stop karui, slow
it down, fill its disk, break the origin, heal everything, and rehearse. What takes
minutes in earnest takes seconds here: about 15 s after "Stop the proxy", the
watchdog has swapped the order and the mail is there.

With --origin the images are those of a real site, which sees the requests that
karui and the edge make, about one a second.`,
		Example: `  karui demo
  karui demo --listen 127.0.0.1:8000
  karui demo --origin https://www.example.com`,
		Args: cobra.NoArgs,
		RunE: d.run,
	}
	cmd.Flags().StringVar(&d.listen, "listen", "", "address of the page (default 127.0.0.1:8080, or another port if that is taken)")
	cmd.Flags().StringVar(&d.origin, "origin", "", "a real site to show, instead of the sample images")
	return cmd
}

func (d *demonstration) run(cmd *cobra.Command, _ []string) error {
	o := demo.Options{
		Listen:   d.listen,
		Formats:  []string{"avif", "webp"},
		Progress: cmd.ErrOrStderr(),
		Commands: demo.Commands{
			Serve: []string{"serve"}, Watchdog: []string{demoWatchdog, "run"}, Rehearse: []string{demoWatchdog, "rehearse"},
			Disk: []string{demoDisk}, Janitor: []string{demoJanitor},
		},
		Ready: func(address string) { _, _ = fmt.Fprintln(cmd.OutOrStdout(), address) },
	}
	if d.origin != "" {
		site, err := url.Parse(d.origin)
		if err != nil || site.Scheme != "http" && site.Scheme != "https" || site.Host == "" || site.User != nil || site.RawQuery != "" {
			return command.Usage("--origin is %q, but it must be the address of a site, such as https://www.example.com", d.origin)
		}
		if !config.GoodPort(site) {
			return command.Usage("--origin is %q, but its port must be from 1 to 65535", d.origin)
		}
		o.Site = site
	}
	var err error
	if o.Executable, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program's own file: %w", err)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP) // the terminal is gone
	defer stop()
	return demo.Run(ctx, o)
}

// Hidden commands, which `karui demo` runs.
const (
	demoDisk    = "demo-disk"
	demoJanitor = "demo-janitor"
)

func newDemoDiskCommand() *cobra.Command {
	return &cobra.Command{
		Use: demoDisk, Short: "Becomes another command of karui, on a small disk", Hidden: true,
		Args: cobra.MinimumNArgs(1), DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			executable, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program's own file: %w", err)
			}
			return demo.Disk(args[0], executable, args[1:])
		},
	}
}

func newDemoJanitorCommand() *cobra.Command {
	return &cobra.Command{
		Use: demoJanitor, Short: "Removes the folder of a demonstration once that has ended", Hidden: true,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return demo.Janitor(args[0], cmd.InOrStdin()) },
	}
}
