package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"karui/cache"
	"karui/internal/command"
	"karui/internal/config"
	"karui/internal/server"
)

// configFlag is the flag --config of the commands that need a configuration.
type configFlag struct{ path string }

func (f *configFlag) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.path, "config", "c", "", "configuration file (default "+server.DefaultFile+", which may be missing)")
	if err := cmd.MarkFlagFilename("config", "yaml", "yml"); err != nil {
		panic(err) // only for a flag that does not exist
	}
}

// load reads the configuration and prints its warnings.
func (f *configFlag) load(cmd *cobra.Command, flags ...config.Flag) (*config.Result[server.Config], error) {
	if cmd.Flags().Changed("config") && f.path == "" {
		return nil, command.Usage("--config is empty: name a file, or leave it out")
	}
	return server.Load(f.path, os.Environ(), flags...)
}

// file names the file that load reads.
func (f *configFlag) file() string {
	if f.path == "" {
		return server.DefaultFile
	}
	return f.path
}

func newConfigCommand() *cobra.Command {
	cmd := command.Group(&cobra.Command{
		Use:   "config",
		Short: "Checks and shows the configuration",
		Long: `Checks and shows the configuration.

A value comes from, strongest first, a flag, an environment variable, the file,
or the defaults. The variable of cache.memory is KARUI_CACHE_MEMORY, and so on;
lists are JSON: KARUI_EDGE_SECRETS='["one", "two"]'. A secret may be given as
the file that holds it: file:/run/secrets/edge.`,
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
place on stderr. Exit code 0 if all is well, 2 if not.

It also looks at the folders of the cache, without writing anything: a file or
somebody else's files in their place are mistakes; that the user who asks may not
write there is a warning, since karui may run as another one.`,
		Example: `  karui config check
  karui config check --config ./karui.yaml
  KARUI_CACHE_MEMORY=1GiB karui config check --config ./karui.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := file.load(cmd)
			if err != nil {
				return err
			}
			for _, w := range r.Warnings {
				command.Warn(cmd, "%s", w)
			}
			for _, remark := range r.Value.Remarks() {
				command.Warn(cmd, "%s", remark)
			}
			if err := checkFolders(cmd, r); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "ok\n%s: %s\n", file.file(), summary(r.Value))
			return err
		},
	}
	file.register(cmd)
	return cmd
}

// checkFolders looks at the folders of the cache as a start would, and writes
// nothing. What may differ by the user who asks, or by the machine's mounts, is a
// warning.
func checkFolders(cmd *cobra.Command, r *config.Result[server.Config]) error {
	var problems []error
	for i, v := range r.Value.Cache.Volumes {
		key := config.Key("cache.volumes", i, "path")
		problem, warning := cache.Inspect(v.Path)
		source := r.Source(key)
		if source.Kind == config.SourceDefault { // the list as a whole may have been set
			source = r.Source("cache.volumes")
		}
		if problem != "" {
			problems = append(problems, &config.Problem{Key: key, What: problem, Source: source})
		}
		if warning != "" {
			command.Warn(cmd, "%s", &config.Problem{Key: key, What: warning, Source: source})
		}
	}
	return errors.Join(problems...)
}

// summary says in one line what would be started.
func summary(c server.Config) string {
	sites := "1 site"
	if n := len(c.Sites); n != 1 {
		sites = fmt.Sprintf("%d sites", n)
	}
	hosts := 0
	for _, s := range c.Sites {
		hosts += len(s.Hosts)
	}
	secret := "no edge secret (anybody may ask)"
	if n := len(c.Edge.Secrets); n > 0 {
		secret = fmt.Sprintf("edge secrets: %d", n)
	}
	volumes := make([]string, len(c.Cache.Volumes))
	for i, v := range c.Cache.Volumes {
		volumes[i] = fmt.Sprintf("%s (%s)", v.Path, v.MaxSize)
	}
	return fmt.Sprintf("%s, hosts: %d, listens on %s, admin on %s, cache in %s, %s",
		sites, hosts, c.Listen, c.Admin.Listen, strings.Join(volumes, ", "), secret)
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
		Example: `  karui config print --config ./karui.yaml
  karui config print --config ./karui.yaml --changed`,
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
