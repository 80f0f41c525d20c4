package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// action is something that a button does.
type action string

// The actions.
const (
	actStop     action = "stop"
	actSlow     action = "slow"
	actFill     action = "fill"
	actBreak    action = "break"
	actHeal     action = "heal"
	actRehearse action = "rehearse"
)

// refusal is why something cannot be done now.
type refusal string

func (r refusal) Error() string { return string(r) }

// buttons lists what can be done, with the reason where it cannot be done now.
func (d *demo) buttons(f facts) []button {
	inEffect := func(on bool, why string) (string, string) {
		if on {
			return why, "on"
		}
		return "", ""
	}
	stop := button{Name: string(actStop), Label: "Stop the proxy", Text: "Kills karui with SIGKILL, and leaves it down."}
	switch f.Proxy {
	case proxyStarting:
		stop.Why = "karui starts just now."
	case proxyStopped, proxyEnded:
		stop.Why, stop.Class = "karui is down. Heal starts it.", "on"
	}
	slow := button{Name: string(actSlow), Label: "Make it slow", Text: fmt.Sprintf("All that karui sends arrives %s late. The edge waits %s.", seconds(slowness), seconds(responseTimeout))}
	slow.Why, slow.Class = inEffect(f.Slow, fmt.Sprintf("All that karui sends arrives %s late. Heal ends it.", seconds(slowness)))
	fill := button{Name: string(actFill), Label: "Fill its disk", Text: fmt.Sprintf("Fills the %s of karui’s cache disk to the last byte.", bytesWords(diskSize))}
	fill.Why, fill.Class = inEffect(f.DiskFull, "The disk of karui’s cache is full. Heal empties it.")
	switch {
	case d.diskWhy != "":
		fill.Why = "Not on this machine: " + d.diskWhy + "."
	case f.Proxy != proxyUp:
		fill.Why, fill.Class = "Its disk is gone while karui is down.", ""
	}
	broken := button{Name: string(actBreak), Label: "Break the origin", Text: "The site’s own server answers 500 to everybody."}
	broken.Why, broken.Class = inEffect(f.OriginBroken, "The origin answers 500 to everybody. Heal mends it.")
	heal := button{Name: string(actHeal), Label: "Heal everything", Text: "Undoes all of it, and starts karui if it is down.", Class: "primary"}
	if f.Proxy == proxyStarting {
		heal.Why = "karui starts just now."
	} else if f.Proxy == proxyUp && !f.Slow && !f.DiskFull && !f.OriginBroken {
		heal.Why = "Nothing is broken."
	}
	rehearse := button{Name: string(actRehearse), Label: "Rehearse", Text: "The watchdog’s own checklist: would a swap go through?"}
	if d.rehearse.now() {
		rehearse.Why = "A rehearsal is under way."
	}
	return []button{stop, slow, fill, broken, heal, rehearse}
}

// do carries out an action. What takes longer goes on in the background.
func (d *demo) do(a action) error {
	buttons := d.buttons(d.facts())
	i := slices.IndexFunc(buttons, func(b button) bool { return b.Name == string(a) })
	if i < 0 {
		return refusal(fmt.Sprintf("There is no button %q.", a))
	}
	if why := buttons[i].Why; why != "" {
		return refusal(why)
	}
	switch a {
	case actStop:
		if !d.proxy.kill() {
			return refusal("karui is down already.")
		}
		d.setDisk(false) // it went with the process
		d.journal.note(toneBad, "You killed karui (SIGKILL).")
	case actSlow:
		d.line.setDelay(slowness)
		d.journal.note(toneBad, fmt.Sprintf("You made karui slow: all it sends arrives %s late.", seconds(slowness)))
	case actFill:
		_, c := d.proxy.now()
		if c == nil {
			return refusal("Its disk is gone while karui is down.")
		}
		if err := fill(diskOf(c.pid(), d.cache)); err != nil {
			return err
		}
		d.setDisk(true)
		d.journal.note(toneBad, "You filled the disk of karui's cache.")
	case actBreak:
		d.origin.broken.Store(true)
		d.journal.note(toneBad, "You broke the origin: it answers 500 to everybody.")
	case actHeal:
		return d.heal()
	case actRehearse:
		d.startRehearsal()
	}
	return nil
}

func (d *demo) setDisk(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.diskFull = full
}

// heal undoes everything. karui takes a moment to start.
func (d *demo) heal() error {
	d.line.setDelay(0)
	d.origin.broken.Store(false)
	var failed error
	if _, c := d.proxy.now(); c != nil && d.diskWhy == "" {
		failed = empty(diskOf(c.pid(), d.cache))
	}
	d.setDisk(false)
	if s, _ := d.proxy.now(); s == proxyUp {
		d.journal.note(toneGood, "You healed everything.")
		return failed
	}
	d.journal.note(toneGood, "You healed everything. karui starts.")
	d.begin(func(ctx context.Context) {
		if err := d.proxy.start(ctx); err == nil {
			d.journal.note(toneGood, "karui serves again.")
		} else if !errors.Is(err, context.Canceled) {
			d.journal.note(toneBad, "karui does not start: "+err.Error())
		}
	})
	return failed
}

// begin runs f in the background; the demonstration waits for it in the end.
func (d *demo) begin(f func(context.Context)) { d.work.Go(func() { f(d.ctx) }) }

func (d *demo) startRehearsal() {
	if !d.rehearse.begin(time.Now()) {
		return
	}
	d.journal.note(tonePlain, "You asked the watchdog for a rehearsal.")
	how := d.guard.how
	how.name = "the rehearsal"
	how.args = slices.Concat(d.options.Commands.Rehearse, how.args[len(d.options.Commands.Watchdog):])
	d.begin(func(ctx context.Context) {
		if d.rehearse.run(ctx, d.starter, how) {
			d.journal.note(toneGood, "The rehearsal passed.")
		} else if ctx.Err() == nil {
			d.journal.note(toneBad, "The rehearsal did not pass.")
		}
	})
}

// askNew asks for an image that nobody has asked for, in the background.
func (d *demo) askNew(k kind) {
	pictures := d.paths()
	if len(pictures) == 0 || d.options.Site != nil {
		return
	}
	target := d.cold.address(pictures[0].Path)
	d.setAsked(words{Tone: tonePlain, Text: fmt.Sprintf("Asked for %s ...", target)})
	d.begin(func(ctx context.Context) {
		a := d.viewer.visit(ctx, k, target)
		if ctx.Err() != nil {
			return
		}
		d.fates.add(target, a)
		took := a.Took.Round(time.Millisecond)
		if a.Fate == fateGood {
			d.setAsked(words{Tone: toneGood, Text: fmt.Sprintf("%s came %s, as %s of %s, in %s.", target, wayWords(a.Way), formatWords(a.Format), bytesWords(a.Bytes), took)})
			return
		}
		d.setAsked(words{Tone: toneBad, Text: fmt.Sprintf("%s did not come: %s, after %s.", target, a.Why, took)})
	})
}

func (d *demo) setAsked(w words) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = &w
}

// setLanguage is for mails to come.
func (d *demo) setLanguage(language string) error {
	if language != "en" && language != "ja" {
		return refusal("Mails are written in English (en) or Japanese (ja).")
	}
	d.mu.Lock()
	d.language, d.watching.language = language, language
	_, err := d.writeWatchdog()
	d.mu.Unlock()
	if err != nil {
		return err
	}
	d.guard.reload()
	return nil
}

// addPicture adds an image of a real site.
func (d *demo) addPicture(target string) error {
	if d.options.Site == nil {
		return refusal("The sample site has no other images.")
	}
	p, err := newPicture(target, "")
	if err != nil {
		return refusal(err.Error())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(d.pictures, func(q picture) bool { return q.Path == p.Path }) {
		return nil
	}
	if len(d.pictures) >= 2*maxPictures {
		return refusal(fmt.Sprintf("There are %d images already; that is enough.", len(d.pictures)))
	}
	d.pictures = append([]picture{p}, d.pictures...)
	return nil
}
