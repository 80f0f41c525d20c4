package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/internal/config"
	"karui/watchdog/settings"
)

// configFlag is the flag --config of the commands that need a configuration.
type configFlag struct{ path string }

func (f *configFlag) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.path, "config", "c", "", "configuration file (default "+settings.DefaultFile+")")
	if err := cmd.MarkFlagFilename("config", "yaml", "yml"); err != nil {
		panic(err) // only for a flag that does not exist
	}
}

// load reads the configuration.
func (f *configFlag) load(cmd *cobra.Command) (*config.Result[settings.Config], error) {
	if cmd.Flags().Changed("config") && f.path == "" {
		return nil, command.Usage("--config is empty: name a file, or leave it out")
	}
	r, err := settings.Load(f.path, os.Environ())
	if err != nil && f.path == "" {
		if _, none := os.Stat(settings.DefaultFile); errors.Is(none, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w\n%s does not exist: name the configuration file with --config", err, settings.DefaultFile)
		}
	}
	return r, err
}

// file names the file that load reads.
func (f *configFlag) file() string {
	if f.path == "" {
		return settings.DefaultFile
	}
	return f.path
}

// warn prints what is tolerated and yet looks like a mistake.
func warn(cmd *cobra.Command, r *config.Result[settings.Config]) {
	for _, w := range append(r.Warnings, r.Value.Warnings()...) {
		command.Warn(cmd, "%s", w)
	}
}

func newConfigCommand() *cobra.Command {
	cmd := command.Group(&cobra.Command{
		Use:   "config",
		Short: "Checks and shows the configuration",
		Long: `Checks and shows the configuration.

A value comes from, strongest first, an environment variable, the file, or the
defaults. The variable of ping.count is KARUI_WATCHDOG_PING_COUNT, and so on;
lists are JSON: KARUI_WATCHDOG_MAIL_TO='["ops@example.com"]'. A secret may be
given as the file that holds it: file:/run/secrets/smtp.`,
	})
	cmd.AddCommand(newConfigCheckCommand(), newConfigPrintCommand())
	return cmd
}

func newConfigCheckCommand() *cobra.Command {
	var file configFlag
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Validates the configuration: exit code 0 if it is good, 2 if not",
		Long: `Validates the configuration as a start would, and lists every mistake with its
place on stderr. Nobody is asked whether the ids and addresses in it exist: that
is what rehearse is for. Exit code 0 if all is well, 2 if not.`,
		Example: `  karui-watchdog config check
  karui-watchdog config check --config ./watchdog.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := file.load(cmd)
			if err != nil {
				return err
			}
			warn(cmd, r)
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "ok\n%s: %s\n", file.file(), summary(r.Value))
			return err
		},
	}
	file.register(cmd)
	return cmd
}

// summary says in one line what would be watched.
func summary(c settings.Config) string {
	sites := "1 site"
	if n := len(c.Sites); n != 1 {
		sites = fmt.Sprintf("%d sites", n)
	}
	by := "no mail"
	switch {
	case c.Mail.SMTP.Host != "":
		by = "mail by " + c.Mail.SMTP.Host
	case c.Mail.SES.Region != "":
		by = "mail by Amazon SES in " + c.Mail.SES.Region
	}
	reaction := time.Duration(c.Ping.Count-1)*c.Ping.Spacing + c.Ping.Timeout
	return fmt.Sprintf("%s, a round every %s, down is noticed at most %s after it began, %s, state in %s, listens on %s",
		sites, c.Interval, c.Interval+reaction, by, c.StateDir, c.Listen)
}

func newConfigPrintCommand() *cobra.Command {
	var file configFlag
	var changed bool
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Shows the effective configuration and where each value came from",
		Long: `Shows the effective configuration as YAML, each value with the place it came from
as a comment. Secrets are masked; the paths of those that lie in files are shown.
With --changed, only what is set somewhere is shown, and no default.`,
		Example: `  karui-watchdog config print --config ./watchdog.yaml
  karui-watchdog config print --changed`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := file.load(cmd)
			if err != nil {
				return err
			}
			for _, w := range r.Warnings {
				command.Warn(cmd, "%s", w)
			}
			if changed {
				return r.PrintChanged(cmd.OutOrStdout())
			}
			return r.Print(cmd.OutOrStdout())
		},
	}
	file.register(cmd)
	cmd.Flags().BoolVar(&changed, "changed", false, "show only what the file, the environment or a flag sets")
	return cmd
}
