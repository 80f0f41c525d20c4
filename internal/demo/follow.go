package demo

import (
	"context"
	"fmt"
	"time"
)

// facts are how things are now.
func (d *demo) facts() facts {
	state, _ := d.proxy.now()
	status, _ := d.patrol.now()
	written, atEdge := d.edge.orders()
	d.mu.Lock()
	full := d.diskFull
	d.mu.Unlock()
	return facts{
		Proxy: state, Slow: d.line.delay.Load() > 0, DiskFull: full && state == proxyUp, OriginBroken: d.origin.broken.Load(),
		Written: written, AtEdge: atEdge, Health: status.Health,
		GoodRounds: status.GoodRounds, GoodRoundsNeed: status.GoodRoundsNeeded,
		Recent: d.numbers.recent(4), Sheds: d.numbers.recent(2).Sheds,
	}
}

// follow looks at everything once a second until ctx ends, and notes what changed.
func (d *demo) follow(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			d.look(ctx)
		}
	}
}

// look notes what changed since the last look.
func (d *demo) look(ctx context.Context) {
	d.looking.Lock()
	defer d.looking.Unlock()
	// While the watchdog is away, what it said last stands.
	_ = d.patrol.look(ctx, d.guard.page())
	now := d.facts()
	if d.before != nil {
		for _, e := range changes(*d.before, now) {
			d.journal.note(e.Tone, e.Text)
		}
	}
	d.before = &now
}

// changes says in words what happened between two looks.
func changes(before, now facts) []words {
	var out []words
	say := func(tone, format string, args ...any) {
		out = append(out, words{Tone: tone, Text: fmt.Sprintf(format, args...)})
	}
	if before.Recent.Vain == 0 && now.Recent.Vain > 0 {
		second := "the origin"
		if now.AtEdge == orderOrigin {
			second = "karui"
		}
		say(toneBad, "The edge asks %s second, in vain: it shows what it keeps, as long as it keeps any.", second)
	}
	if before.Recent.Failovers == before.Recent.Vain && now.Recent.Failovers > now.Recent.Vain {
		if now.AtEdge == orderOrigin {
			say(toneWarn, "The edge turns to karui, since the origin failed.")
		} else {
			say(toneWarn, "Stage 1: the edge turns to the origin for images that karui did not give it.")
		}
	}
	if before.Health != now.Health && now.Health != "" {
		if now.Health == "up" {
			say(toneGood, "The watchdog found karui up.")
		} else {
			say(toneWarn, "The watchdog found karui %s.", now.Health)
		}
	}
	if before.Written != now.Written {
		switch now.Written {
		case orderOrigin:
			say(toneWarn, "Stage 2: the origin was put first in the distribution.")
		case orderKarui:
			say(toneGood, "karui was put first in the distribution.")
		default:
			say(toneBad, "The order in the distribution cannot be read.")
		}
	}
	if before.AtEdge != now.AtEdge {
		switch now.AtEdge {
		case orderOrigin:
			say(toneWarn, "The new order has reached the edge: the origin is asked first.")
		case orderKarui:
			say(toneGood, "The new order has reached the edge: karui is asked first.")
		}
	}
	return out
}
