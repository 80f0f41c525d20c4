package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/internal/logging"
	"karui/watchdog"
	"karui/watchdog/distribution"
	"karui/watchdog/mail"
	"karui/watchdog/settings"
	"karui/watchdog/store"
)

// demoWatchdog is the hidden command by which `karui demo` runs the watchdog: the
// same code as karui-watchdog, in a process of its own, so that one file is enough.
const demoWatchdog = "demo-watchdog"

func newDemoWatchdogCommand() *cobra.Command {
	group := command.Group(&cobra.Command{Use: demoWatchdog, Short: "The watchdog of a demonstration", Hidden: true})
	var file string
	group.PersistentFlags().StringVar(&file, "config", "", "configuration file")
	group.AddCommand(&cobra.Command{
		Use: "run", Short: "Watches until SIGTERM", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return watch(cmd, file) },
	}, &cobra.Command{
		Use: "rehearse", Short: "Prints the checklist, a JSON line a point", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return rehearse(cmd, file) },
	})
	return group
}

// wireWatchdog puts the parts together, as karui-watchdog does.
func wireWatchdog(cmd *cobra.Command, file, what string, level slog.Level) (*watchdog.Watchdog, *mail.Mailer, settings.Config, error) {
	r, err := settings.Load(file, os.Environ())
	if err != nil {
		return nil, nil, settings.Config{}, err
	}
	var least slog.LevelVar
	least.Set(level)
	log := logging.New(cmd.ErrOrStderr(), &least)
	st, err := store.Open(r.Value.StateDir)
	if err != nil {
		return nil, nil, settings.Config{}, err
	}
	own, err := distribution.Load(cmd.Context())
	if err != nil {
		return nil, nil, settings.Config{}, err
	}
	mailer, err := mail.New(r.Value.StateDir, r.Value, mail.Options{AWS: own, Log: log})
	if err != nil {
		return nil, nil, settings.Config{}, err
	}
	w, err := watchdog.New(watchdog.Options{
		Config: r.Value, Store: st, Outbox: mailer, Log: log, What: what,
	})
	return w, mailer, r.Value, err
}

func watch(cmd *cobra.Command, file string) error {
	w, mailer, _, err := wireWatchdog(cmd, file, "run", slog.LevelInfo)
	if err != nil {
		return err
	}
	defer w.Close()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	reload := make(chan settings.Config)
	var reloading sync.WaitGroup
	ctx := cmd.Context()
	reloading.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
			}
			r, err := settings.Load(file, os.Environ())
			if err != nil {
				continue // this program wrote it: nobody is there to mend it
			}
			mailer.Configure(r.Value)
			select {
			case reload <- r.Value:
			case <-ctx.Done():
				return
			}
		}
	})
	w.Run(ctx, reload)
	reloading.Wait()
	return nil
}

func rehearse(cmd *cobra.Command, file string) error {
	w, _, c, err := wireWatchdog(cmd, file, "rehearse", slog.LevelError)
	if err != nil {
		return err
	}
	defer w.Close()
	enc := json.NewEncoder(cmd.OutOrStdout())
	result, err := w.Rehearse(cmd.Context(), c.Sites[0].ID, watchdog.Rehearse{
		Person:   "the page of the demonstration",
		Announce: func(string) {},
		Progress: func(p watchdog.Point) { _ = enc.Encode(p) },
	})
	if err != nil {
		return err
	}
	if !result.Passed {
		return command.ErrReported
	}
	return nil
}
