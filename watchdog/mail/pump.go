package mail

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"
)

// pump is what is remembered between passes, in memory only: after a restart
// everything is tried at once.
type pump struct {
	epoch int               // of the settings that the rest belongs to
	way   trial             // of the way to the server
	mails map[string]*trial // of mails that the server refused or put off
	told  map[string]string // by recipient, the refusal that was logged last
	// unsaved are mails whose state could not be written down: a disk that is full
	// must not make them go out again and again.
	unsaved map[string]entry
	// known are the mails that the last pass left, for which there is nothing to
	// do before next.
	known  map[string]bool
	from   time.Time // of the last pass
	next   time.Time
	disk   trial
	pruned time.Time
}

func newPump() pump {
	return pump{mails: map[string]*trial{}, told: map[string]string{}, unsaved: map[string]entry{}}
}

// Run sends what lies in the outbox, and what comes, until ctx ends. A mail under
// way has some seconds then. See event.Outbox.
func (m *Mailer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		next := m.turn(ctx)
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-m.wake:
		}
		timer.Stop()
	}
}

// turn sends what is due, if anything is and nobody else sends. It returns when
// the next one is due.
func (m *Mailer) turn(ctx context.Context) time.Duration {
	select {
	case m.sending <- struct{}{}:
	default:
		return lockPoll
	}
	defer func() { <-m.sending }()
	if next, nothing := m.nothingNew(); nothing {
		return next
	}
	unlock, ok, err := m.store.lock()
	switch {
	case err != nil:
		m.logDisk(err)
		return pollEvery
	case !ok:
		return lockPoll
	}
	defer unlock()
	next, _ := m.pass(ctx, false) // the errors are logged
	return next
}

// Flush tries everything once, due or not. See event.Outbox. Waiting for another
// process that is sending lasts as long as ctx allows.
func (m *Mailer) Flush(ctx context.Context) error {
	for {
		unlock, ok, err := m.acquire()
		if err != nil {
			return fmt.Errorf("lock the outbox: %w", err)
		}
		if ok {
			defer unlock()
			_, err := m.pass(ctx, true)
			return err
		}
		timer := time.NewTimer(lockPoll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("another process is sending the outbox's mails: %w", context.Cause(ctx))
		case <-timer.C:
		}
	}
}

// acquire makes the caller the only one who sends.
func (m *Mailer) acquire() (unlock func(), ok bool, err error) {
	select {
	case m.sending <- struct{}{}:
	default:
		return nil, false, nil
	}
	free, ok, err := m.store.lock()
	if err != nil || !ok {
		<-m.sending
		return nil, false, err
	}
	return func() { free(); <-m.sending }, true, nil
}

// pass sends what is due, or everything, and returns when to come back and the
// errors of what stays.
func (m *Mailer) pass(ctx context.Context, everything bool) (time.Duration, error) {
	c, epoch := m.config()
	p := &m.pump
	if p.epoch != epoch {
		p.epoch, p.way.failures, p.known = epoch, 0, nil
		clear(p.mails)
		clear(p.told)
	}
	now := m.opt.Now()
	m.prune(now)
	p.known = nil
	entries, err := m.load(now)
	if err != nil {
		m.logDisk(err)
		return pollEvery, err
	}
	m.forget(entries)
	switch {
	case len(entries) == 0:
		p.known, p.from, p.next = map[string]bool{}, now, now.Add(lastRetry)
		return pollEvery, nil
	case !c.Mail.Enabled():
		m.giveUpOld(entries, now)
		return pollEvery, fmt.Errorf("%s, and mail.smtp.host and mail.ses.region are empty", countWaiting(len(entries)))
	}
	// Something new is tried soon even while the server is thought to be away.
	fresh := now.Sub(p.way.last) >= firstRetry && slices.ContainsFunc(entries, func(e entry) bool { return e.Queued.After(p.way.last) })
	if !everything && !fresh && !p.way.ready(now) {
		return min(pollEvery, p.way.due.Sub(now)), nil
	}
	patient, end := afterGrace(ctx, grace)
	defer end()
	r := round{Mailer: m, config: c, ctx: patient, over: ctx.Done(), everything: everything, blocked: map[string][]string{}}
	defer r.close()
	left, errs := r.deliverAll(entries)
	now = m.opt.Now()
	m.giveUpOld(left, now)
	next := lastRetry
	if len(p.unsaved) > 0 {
		next = pollEvery
	}
	if p.way.failures > 0 {
		next = min(next, p.way.due.Sub(now))
	} else {
		for _, e := range left {
			if t := p.mails[e.Event.ID]; t != nil {
				next = min(next, t.due.Sub(now))
			}
		}
	}
	next = max(next, time.Second)
	p.known, p.from, p.next = make(map[string]bool, len(left)), now, now.Add(next)
	for _, e := range left {
		p.known[e.Event.ID] = true
	}
	return min(pollEvery, next), errors.Join(errs...)
}

// countWaiting says how many mails wait.
func countWaiting(n int) string {
	if n == 1 {
		return "1 mail waits"
	}
	return fmt.Sprintf("%d mails wait", n)
}

// nothingNew tells, without reading a file, that there is nothing to do yet, and
// until when.
func (m *Mailer) nothingNew() (time.Duration, bool) {
	p, now := &m.pump, m.opt.Now()
	_, epoch := m.config()
	if p.known == nil || p.epoch != epoch || now.Before(p.from) || !now.Before(p.next) {
		return 0, false
	}
	ids, err := m.store.list()
	if err != nil || slices.ContainsFunc(ids, func(id string) bool { return !p.known[id] }) {
		return 0, false
	}
	return min(pollEvery, p.next.Sub(now)), true
}

// load reads what waits, in the order in which it goes out.
func (m *Mailer) load(now time.Time) ([]entry, error) {
	_ = m.store.sweep(now) // leftovers take room and harm nobody
	ids, err := m.store.list()
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	var entries []entry
	for _, id := range ids {
		if e, ok := m.pump.unsaved[id]; ok {
			entries = append(entries, e)
			continue
		}
		e, err := m.store.read("", id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, errCorrupt):
			m.opt.Log.Error("a mail in the outbox cannot be read and is set aside; what it told is in the audit log",
				"file", m.store.path(placeCorrupt, id), "error", err)
			if err := m.store.move(placeCorrupt, id); err != nil {
				m.logDisk(err)
			}
		case err != nil: // the others can go
			m.logDisk(fmt.Errorf("read a mail of the outbox: %w", err))
		default:
			// Beside the same in sent it is the loser of a race (see store.add).
			if sent, err := m.store.has(placeSent, id); err != nil {
				return nil, fmt.Errorf("read the outbox: %w", err)
			} else if sent {
				m.logDisk(m.store.drop(id))
				continue
			}
			entries = append(entries, e)
		}
	}
	entries = inOrder(entries)
	for len(entries) > m.most {
		m.giveUp(entries[0], "more than "+countWaiting(m.most))
		entries = entries[1:]
	}
	return entries, nil
}

// forget drops what is remembered of mails that are gone.
func (m *Mailer) forget(entries []entry) {
	here := make(map[string]bool, len(entries))
	for _, e := range entries {
		here[e.Event.ID] = true
	}
	for id := range m.pump.mails {
		if !here[id] {
			delete(m.pump.mails, id)
		}
	}
	for id := range m.pump.unsaved {
		if !here[id] {
			delete(m.pump.unsaved, id)
		}
	}
}

// giveUpOld ends the waiting of what has waited too long. It is called after a
// try, so that a machine that was off for a week still sends what it has.
func (m *Mailer) giveUpOld(entries []entry, now time.Time) {
	for _, e := range entries {
		if now.Sub(e.Queued) > maxAge {
			m.giveUp(e, fmt.Sprintf("it could not be sent for %d days", int(maxAge.Hours()/24)))
		}
	}
}

func (m *Mailer) giveUp(e entry, reason string) {
	place := placeFailed
	if e.Served > 0 {
		place = placeSent
	}
	m.opt.Log.Error("a mail is given up", "reason", reason, "event", e.Event.ID, "kind", e.Event.Kind, "site", e.Event.Site,
		"file", m.store.path(place, e.Event.ID))
	m.logDisk(m.store.move(place, e.Event.ID))
}

// prune forgets, once in a while, what was told long ago.
func (m *Mailer) prune(now time.Time) {
	if since := now.Sub(m.pump.pruned); since >= 0 && since < 24*time.Hour {
		return
	}
	m.pump.pruned = now
	for _, place := range []string{placeSent, placeFailed, placeCorrupt} {
		m.logDisk(m.store.prune(place, now, keepSent, maxKept))
	}
}

// logDisk logs trouble with the outbox's directory when it is another than
// before.
func (m *Mailer) logDisk(err error) {
	if err == nil {
		return
	}
	if m.pump.disk.changed(err.Error()) {
		m.opt.Log.Error("the outbox is not as it should be; is the disk full or state_dir read-only?", "dir", m.store.dir, "error", err)
	}
}

// setTrouble notes how the way to the server is, and logs when that changes.
func (m *Mailer) setTrouble(e *Error) {
	key, text := "", ""
	if e != nil {
		key, text = e.key(), e.Error()
	}
	if m.pump.way.changed(key) {
		if e != nil {
			m.opt.Log.Error("mails do not go out; they wait and are tried again", "error", text)
		} else {
			m.opt.Log.Info("mails go out again")
		}
	}
	m.mu.Lock()
	m.trouble = text
	m.mu.Unlock()
}
