package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/internal/config"
	"karui/internal/logging"
	"karui/watchdog"
	"karui/watchdog/distribution"
	"karui/watchdog/mail"
	"karui/watchdog/settings"
	"karui/watchdog/store"
)

// wiring is the watchdog with its parts.
type wiring struct {
	*watchdog.Watchdog
	mailer *mail.Mailer
	log    *slog.Logger
}

// disk is what a command wants of state_dir.
type disk int

const (
	diskRead   disk = iota // looks at it and changes nothing, not even to make it
	diskWanted             // goes on without: to degrade matters most
	diskNeeded             // refuses when it cannot be written to
)

// plan is how a command wants its parts.
type plan struct {
	what  string // the command line that runs, for the messages of locks
	disk  disk
	logTo io.Writer
	level slog.Level
}

// openStore opens state_dir; look tells that it is not to be touched.
func (p plan) openStore(dir string, log *slog.Logger) (st *store.Store, look bool, err error) {
	if p.disk == diskRead {
		return store.At(dir), true, nil
	}
	st, err = store.Open(dir)
	if err == nil {
		return st, false, nil
	}
	const hint = "let it belong to the watchdog's user, on a disk that is not full or mounted read-only"
	if p.disk == diskNeeded {
		return nil, false, fmt.Errorf("%w\n%s", err, hint)
	}
	log.Error("going on without a state directory: degrading works, restoring does not, and what was done is not remembered after a restart",
		"error", err, "hint", hint)
	return store.At(dir), true, nil
}

// wire puts the parts together.
func wire(ctx context.Context, f *configFlag, c settings.Config, p plan) (*wiring, error) {
	var least slog.LevelVar
	least.Set(p.level)
	log := logging.New(p.logTo, &least)
	st, look, err := p.openStore(c.StateDir, log)
	if err != nil {
		return nil, err
	}
	// Also without SES now: a reload may turn to it.
	own, err := distribution.Load(ctx)
	if err != nil && c.Mail.SES.Region != "" {
		return nil, err
	}
	mailer, err := mail.New(c.StateDir, c, mail.Options{AWS: own, Log: log, Look: look})
	if err != nil {
		return nil, err
	}
	w, err := watchdog.New(watchdog.Options{
		Config: c, Store: st, Outbox: mailer, Log: log, What: p.what, CommandLine: f.commandLine, Version: version,
	})
	if err != nil {
		return nil, err
	}
	return &wiring{Watchdog: w, mailer: mailer, log: log}, nil
}

// commandLine is what a mail names to be run.
func (f *configFlag) commandLine(verb, site string) string {
	words := []string{"karui-watchdog", verb}
	if site != "" {
		words = append(words, site)
	}
	if f.path != "" && f.path != settings.DefaultFile {
		words = append(words, "--config", quoted(f.path))
	}
	return strings.Join(words, " ")
}

// quoted makes one word of a path, for a shell.
func quoted(path string) string {
	if !strings.ContainsAny(path, " '\"\\$`&|;<>()*?[]{}!#~\t\n") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// with loads the configuration and runs a command's body with the watchdog.
func with(cmd *cobra.Command, f *configFlag, what string, need disk, body func(ctx context.Context, w *wiring, c settings.Config) error) error {
	r, err := f.load(cmd)
	if err != nil {
		return err
	}
	// A command answers by itself; of the log, only trouble is of interest.
	w, err := wire(cmd.Context(), f, r.Value, plan{what: what, disk: need, logTo: cmd.ErrOrStderr(), level: slog.LevelError})
	if err != nil {
		return err
	}
	defer w.Close()
	return body(cmd.Context(), w, r.Value)
}

// siteArgument wants one site of the configuration.
func siteArgument(c settings.Config, args []string) error {
	if _, found := c.Site(args[0]); found {
		return nil
	}
	var ids []string
	for _, s := range c.Sites {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	if len(ids) > 10 {
		ids = append(ids[:10], "...")
	}
	return command.Usage("no site has the id %q; the configuration has %s", args[0], config.Or(ids...))
}

// oneSite is the check of a command line that names a site.
func oneSite(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return command.Usage("%s needs the id of one site, as in '%s shop'", cmd.Name(), cmd.CommandPath())
	}
	return nil
}

// oneSiteAtMost is the check of a command line that may name a site.
func oneSiteAtMost(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return command.Usage("%s takes the id of one site, and %q is one more", cmd.CommandPath(), args[1])
	}
	return nil
}

// person is who runs the command, as the system names them.
func person() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// say prints one line for people, apart from the answer.
func say(cmd *cobra.Command, format string, args ...any) {
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...)
}
