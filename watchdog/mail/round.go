package mail

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"karui/watchdog/settings"
)

// round is one pass over the mails that wait, with one connection if the server
// keeps it.
type round struct {
	*Mailer
	config     settings.Config
	ctx        context.Context // ends some time after over
	over       <-chan struct{} // no new mail is begun then
	everything bool

	session session
	used    bool                // the session has handed over a mail
	blocked map[string][]string // by site, recipients for whom an earlier mail waits
}

func (r *round) close() {
	if r.session != nil {
		r.session.close()
	}
	r.session, r.used = nil, false
}

// deliverAll tries what is due, and returns what stays and why.
func (r *round) deliverAll(entries []entry) (left []entry, errs []error) {
	for i, e := range entries {
		select {
		case <-r.over:
			return append(left, entries[i:]...), append(errs, fmt.Errorf("%s: time is up", countWaiting(len(entries)-i)))
		default:
		}
		after, why, err := r.deliver(e)
		switch {
		case err != nil:
			r.pump.way.failed(r.opt.Now())
			r.setTrouble(err)
			return append(left, entries[i:]...), append(errs, fmt.Errorf("%s: %w", countWaiting(len(left)+len(entries)-i), err))
		case why != nil:
			left, errs = append(left, after), append(errs, fmt.Errorf("mail %s: %w", e.Event.ID, why))
			r.block(after)
		}
	}
	return left, errs
}

// deliver tries one mail if it is due, and writes down what came of it. why tells
// that it stays, err that the way to the server is closed, so that there is no
// point in trying others.
func (r *round) deliver(e entry) (after entry, why error, err *Error) {
	site := e.Event.Site
	all, language := r.recipients(r.config, site)
	pending := e.pending(all)
	to := slices.DeleteFunc(slices.Clone(pending), func(a string) bool { return slices.Contains(r.blocked[site], a) })
	t := r.pump.mails[e.Event.ID]
	switch {
	case len(all) == 0:
		r.logRefusal(errNoRecipients(site), site)
		return e, errNoRecipients(site), nil
	case len(pending) == 0:
		return e, r.finish(e), nil
	case len(to) == 0:
		return e, errors.New("waits behind an earlier mail of the site"), nil
	case !r.everything && !t.ready(r.opt.Now()):
		return e, errors.New("waits for its next try"), nil
	}
	got, trouble := r.send(e, all, to, language)
	if trouble != nil {
		return e, nil, trouble
	}
	for _, address := range got.taken {
		delete(r.pump.told, address)
	}
	for _, refusal := range got.refused {
		r.logRefusal(refusal, refusal.Recipient)
	}
	refused, done := maps.Clone(e.Refused), len(e.Done)
	for _, lost := range e.apply(got, r.opt.Now()) {
		r.opt.Log.Error("a recipient does not get a mail: refused for a day", "event", e.Event.ID, "kind", e.Event.Kind, "site", site, "error", lost)
	}
	if len(e.pending(all)) == 0 {
		return e, r.finish(e), nil
	}
	if len(e.Done) != done || !maps.Equal(e.Refused, refused) {
		r.save(e)
	}
	if len(got.refused) == 0 {
		return e, errors.New("waits behind an earlier mail of the site"), nil
	}
	if t == nil {
		t = new(trial)
		r.pump.mails[e.Event.ID] = t
	}
	t.failed(r.opt.Now())
	return e, joinRefusals(got.refused), nil
}

// send hands a mail over, connecting if need be. Errors are those of the way; a
// mail that cannot even be made is refused.
func (r *round) send(e entry, all, to []string, language string) (receipt, *Error) {
	l, err := r.letter(r.config, e, all, language)
	if err != nil {
		var refused []*Error
		for _, address := range to {
			about := *asError(err, StageCompose)
			about.Recipient, about.Permanent = address, true
			refused = append(refused, &about)
		}
		return receipt{refused: refused}, nil
	}
	for {
		if r.session == nil {
			s, err := r.way(r.config).transport().open(r.ctx)
			if err != nil {
				return receipt{}, asError(err, StageConnect)
			}
			r.session = s
		}
		got, err := r.session.send(r.ctx, l, to)
		if err == nil {
			r.used = true
			r.pump.way.failures = 0
			r.setTrouble(nil)
			return got, nil
		}
		again := r.used && r.ctx.Err() == nil
		r.close()
		if !again {
			return receipt{}, asError(err, StageSession)
		}
		// A server may end a connection after so many mails, or some time.
	}
}

// finish ends the waiting of a mail that all recipients have, or were given up
// for. The rename comes first: from there on it is not sent again.
func (r *round) finish(e entry) error {
	place := placeSent
	if e.Served == 0 {
		place = placeFailed
	}
	if err := r.store.move(place, e.Event.ID); err != nil {
		r.pump.unsaved[e.Event.ID] = e
		r.logDisk(err)
		return fmt.Errorf("it is out, which could not be noted: %w", err)
	}
	delete(r.pump.unsaved, e.Event.ID)
	if place == placeSent {
		r.opt.Log.Info("mail sent", "event", e.Event.ID, "kind", e.Event.Kind, "site", e.Event.Site, "recipients", e.Served)
	}
	if len(e.MessageIDs) > 0 || len(e.Refused) > 0 {
		r.logDisk(r.store.put(place, e)) // for replies and for whoever looks; it is out
	}
	return nil
}

// save writes down how far a mail is that goes on waiting.
func (r *round) save(e entry) {
	if err := r.store.put("", e); err != nil {
		r.pump.unsaved[e.Event.ID] = e
		r.logDisk(err)
		return
	}
	delete(r.pump.unsaved, e.Event.ID)
}

// block keeps later mails of the site from overtaking one that waits: for
// recipients that the server puts off, and not for ever.
func (r *round) block(e entry) {
	if r.opt.Now().Sub(e.Queued) > orderPatience {
		return
	}
	site := e.Event.Site
	all, _ := r.recipients(r.config, site)
	for _, address := range e.pending(all) {
		if _, refused := e.Refused[address]; !refused && !slices.Contains(r.blocked[site], address) {
			r.blocked[site] = append(r.blocked[site], address)
		}
	}
}

// logRefusal logs a refusal unless it is the last one told of the same.
func (r *round) logRefusal(e *Error, about string) {
	if r.pump.told[about] == e.key() {
		return
	}
	r.pump.told[about] = e.key()
	r.opt.Log.Warn("a mail is refused and tried again", "about", about, "permanent", e.Permanent, "error", e)
}

func joinRefusals(refused []*Error) error {
	var errs []error
	for _, e := range refused {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}
