package main

import (
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/internal/warm"
)

// sayEvery is how often a line says how far the work is, where no bar can.
const sayEvery = 15 * time.Second

// warmProgress shows how far `karui warm` is: by a bar on a terminal, else by a line
// now and then.
type warmProgress struct {
	out     io.Writer
	bar     progress.Writer
	tracker *progress.Tracker
	ended   chan struct{}
	next    time.Time
}

func newWarmProgress(cmd *cobra.Command) *warmProgress {
	p := &warmProgress{out: cmd.ErrOrStderr(), next: time.Now().Add(sayEvery)}
	if !command.Terminal(p.out) {
		return p
	}
	p.bar = progress.NewWriter()
	p.bar.SetOutputWriter(p.out)
	p.bar.SetAutoStop(false)
	p.bar.SetUpdateFrequency(200 * time.Millisecond)
	p.bar.SetMessageLength(48)
	p.bar.Style().Options.PercentFormat = "%3.0f%%"
	p.bar.Style().Options.TimeInProgressPrecision = time.Second
	p.bar.Style().Visibility.Value = false
	p.tracker = &progress.Tracker{Message: "looking for images", RemoveOnCompletion: true}
	p.bar.AppendTracker(p.tracker)
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		p.bar.Render()
	}()
	return p
}

func (p *warmProgress) update(now warm.Progress) {
	words := fmt.Sprintf("%d of %d done", now.Done, now.All)
	if now.Walking {
		words += ", looking for more"
	}
	if now.Failed > 0 {
		words += fmt.Sprintf(", %d failed", now.Failed)
	}
	switch {
	case p.bar != nil:
		p.tracker.UpdateTotal(int64(max(now.All, 1)))
		p.tracker.SetValue(int64(min(now.Done+now.Failed, max(now.All-1, 0)))) // the bar ends with the work
		p.tracker.UpdateMessage(words)
	case !time.Now().Before(p.next):
		p.next = time.Now().Add(sayEvery)
		_, _ = fmt.Fprintf(p.out, "karui: %s\n", words)
	}
}

// say tells something beside the progress.
func (p *warmProgress) say(words string) {
	if p.bar != nil {
		p.bar.Log("%s", words)
		return
	}
	_, _ = fmt.Fprintf(p.out, "karui: %s\n", words)
}

// end takes the bar away.
func (p *warmProgress) end() {
	if p.bar == nil {
		return
	}
	p.tracker.MarkAsDone()
	p.bar.Stop()
	<-p.ended
}
