package main

import (
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"karui/internal/command"
)

// newBar shows a bar of progress on stderr, on a terminal only. Update takes how many
// of how many are done, and the words beside the bar; end takes it away.
func newBar(cmd *cobra.Command, words string) (update func(done, all int, words string), end func()) {
	stderr := cmd.ErrOrStderr()
	if !command.Terminal(stderr) {
		return func(int, int, string) {}, func() {}
	}
	w := progress.NewWriter()
	w.SetOutputWriter(stderr)
	w.SetAutoStop(false)
	w.SetUpdateFrequency(200 * time.Millisecond)
	w.SetMessageLength(48)
	w.Style().Options.PercentFormat = "%3.0f%%"
	w.Style().Options.TimeInProgressPrecision = time.Second
	w.Style().Visibility.Value = false
	tracker := &progress.Tracker{Message: words, RemoveOnCompletion: true}
	w.AppendTracker(tracker)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Render()
	}()
	update = func(done, all int, words string) {
		tracker.UpdateTotal(int64(all))
		tracker.SetValue(int64(done))
		tracker.UpdateMessage(words)
	}
	return update, func() {
		tracker.MarkAsDone()
		w.Stop()
		<-done
	}
}
