package warm

import (
	"context"
	"fmt"
	"time"
)

// Load is how much the proxy has to do, as its operators' API says.
type Load struct {
	// Level is the dial's, and LevelName its name.
	Level     int
	LevelName string
	// Waiting conversions have no worker yet, the oldest for Oldest.
	Waiting int
	Oldest  time.Duration
}

// longWait is how long a conversion may wait while images are warmed: half of what
// moves the dial.
const longWait = 250 * time.Millisecond

// watchEvery is how often the load is asked for.
const watchEvery = 3 * time.Second

// high says why the proxy should be left alone, empty if it need not be. Variants made
// at a level above 0 would have to be made again.
func (l Load) high() string {
	switch {
	case l.Level > 0:
		return fmt.Sprintf("its dial is at %d (%s)", l.Level, l.LevelName)
	case l.Waiting > 0 && l.Oldest >= longWait:
		return "conversions are waiting for a worker"
	}
	return ""
}

// watches asks for the load until the run ends.
func (r *run) watches(ctx context.Context) {
	to := &intake{r: r, ctx: ctx}
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		load, err := r.o.Watch(ctx)
		to.tell(func() {
			switch {
			case err != nil:
				load = Load{}
				r.say("the proxy's load is not known, so that only its answers tell when it has too much to do: " + err.Error())
			case load.high() != "" && r.loaded.IsZero():
				r.loaded = time.Now()
			}
			if r.load = load; load.high() == "" {
				r.loaded = time.Time{}
			}
		})
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// intake hands what other goroutines have to say to that of the run.
type intake struct {
	r   *run
	ctx context.Context
}

// tell has f carried out by the run, and waits for it. When the run has ended, nobody
// listens any more.
func (i *intake) tell(f func()) {
	done := make(chan struct{})
	select {
	case i.r.do <- func() { f(); close(done) }:
		<-done
	case <-i.ctx.Done():
	}
}

func (i *intake) image(target string) { i.tell(func() { i.r.found(target) }) }

func (i *intake) page(url string, targets []string) {
	i.tell(func() {
		all := true
		for _, t := range targets {
			i.r.found(t)
			all = all && i.r.seen[t]
		}
		if !all {
			return // the page is read again when its other images have their turn
		}
		if _, known := i.r.o.State.pageSince(url, i.r.fresh); !known {
			i.r.o.State.readPage(url, targets, time.Now())
		}
	})
}

func (i *intake) known(url string) (targets []string, ok bool) {
	i.tell(func() { targets, ok = i.r.o.State.pageSince(url, i.r.fresh) })
	return targets, ok
}

func (i *intake) note(foreign, leftOut int) {
	i.tell(func() {
		i.r.report.Foreign += foreign
		i.r.report.LeftOut += leftOut
	})
}

func (i *intake) documents(sitemaps, pages int) {
	i.tell(func() {
		i.r.report.Sitemaps += sitemaps
		i.r.report.Pages += pages
	})
}

func (i *intake) failed(name string, err error) {
	i.tell(func() {
		i.r.report.Unread++
		if len(i.r.report.Failures) < i.r.o.Failures {
			i.r.report.Failures = append(i.r.report.Failures, Failure{Name: name, Reason: err.Error()})
		}
	})
}

func (i *intake) dead(name string, err error) {
	i.tell(func() { i.r.deadLink(name, err.Error()) })
}

func (i *intake) full() (full bool) {
	i.tell(func() { full = len(i.r.seen) >= i.r.o.Images || i.r.kept >= i.r.o.Kept })
	return full
}
