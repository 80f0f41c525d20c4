package main

import (
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/watchdog/settings"
)

func newRunCommand() *cobra.Command {
	var file configFlag
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Watches all sites until it is told to stop",
		Long: `Watches all sites: every interval, each site's proxy is asked for a ping, and what
follows from it is done. Only SIGTERM and SIGINT end it; no error does. SIGHUP reads
the configuration again, and a bad file is logged and the old one stays.

It listens on 'listen' for /healthz, /metrics and /status. A second daemon on the
same state_dir stands by and takes over when the first ends. A state_dir that cannot
be written to does not keep it from degrading; it does not restore then.`,
		Example: `  karui-watchdog run
  karui-watchdog run --config ./watchdog.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := file.load(cmd)
			if err != nil {
				return err
			}
			w, err := wire(cmd.Context(), &file, r.Value, plan{what: "run", disk: diskWanted, logTo: cmd.ErrOrStderr(), level: slog.LevelInfo})
			if err != nil {
				return err
			}
			defer w.Close()
			for _, warning := range append(r.Warnings, r.Value.Warnings()...) {
				w.log.Warn("configuration", "warning", warning)
			}
			reload := make(chan settings.Config)
			var reloading sync.WaitGroup
			reloading.Go(func() { w.reloads(cmd, &file, reload) })
			// A daemon that stands by for another is as good as started.
			if err := command.Ready(cmd.Context()); err != nil {
				w.log.Warn("systemd does not learn that the watchdog runs", "error", err)
			}
			w.Run(cmd.Context(), reload)
			reloading.Wait() // ends with the same context
			w.log.Info("ended")
			return nil
		},
	}
	file.register(cmd)
	return cmd
}

// reloads reads the configuration again at each SIGHUP, until the command's
// context ends.
func (w *wiring) reloads(cmd *cobra.Command, file *configFlag, out chan<- settings.Config) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	done := cmd.Context().Done()
	for {
		select {
		case <-done:
			return
		case <-hangup:
		}
		r, err := file.load(cmd)
		if err != nil {
			w.log.Error("the configuration is not taken over, the old one stays", "error", err)
			w.ReloadFailed()
			continue
		}
		w.mailer.Configure(r.Value)
		select {
		case out <- r.Value:
		case <-done:
			return
		}
	}
}
