package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"karui/watchdog/event"
	"karui/watchdog/machine"
)

// How much of a site is remembered for the status page: ten hours of rounds at the
// usual interval, and the last mails.
const (
	maxMarks = 120
	maxTold  = 20
)

// maxHistory bounds what is read of a history, in bytes.
const maxHistory = 1 << 20

// History is what happened at a site lately, for people to look at. No decision rests
// on it: one that is lost or broken begins anew.
type History struct {
	Version int    `json:"version"`
	Target  string `json:"target"`
	// Rounds and Told are the last ones, oldest first.
	Rounds []Mark `json:"rounds,omitempty"`
	Told   []Told `json:"told,omitempty"`
}

// Mark is one round.
type Mark struct {
	At      time.Time       `json:"at"`
	Took    time.Duration   `json:"took"`
	Verdict machine.Verdict `json:"verdict"`
	Order   event.Order     `json:"order,omitempty"`
	// Unread: the order could not be read, and Order is what was known before.
	Unread bool `json:"unread,omitempty"`
	// Failed of Asked requests for the ping failed, the last one by Kind.
	Asked  int    `json:"asked"`
	Failed int    `json:"failed,omitempty"`
	Kind   string `json:"kind,omitempty"`
}

// Told is one event that operators were told of.
type Told struct {
	ID     string      `json:"id"`
	Kind   event.Kind  `json:"kind"`
	At     time.Time   `json:"at"`
	Actor  event.Actor `json:"actor,omitempty"`
	Person string      `json:"person,omitempty"`
	Want   event.Order `json:"want,omitempty"`
	Before event.Order `json:"before,omitempty"`
	After  event.Order `json:"after,omitempty"`
}

// Mark adds a round, and lets the oldest go.
func (h *History) Mark(m Mark) { h.Rounds = last(append(h.Rounds, m), maxMarks) }

// Tell adds an event, once.
func (h *History) Tell(t Told) {
	for _, old := range h.Told {
		if old.ID == t.ID {
			return
		}
	}
	h.Told = last(append(h.Told, t), maxTold)
}

func last[T any](all []T, n int) []T {
	// Copied, so that the array does not grow for ever, and readers of the old one are
	// left alone.
	return append([]T(nil), all[max(len(all)-n, 0):]...)
}

func (s *Site) historyPath() string { return filepath.Join(s.dir, "history.json") }

// History reads what happened at the target; one that cannot be read, or is about
// another target, is empty.
func (s *Site) History(target string) History {
	fresh := History{Version: version, Target: target}
	data, err := readBounded(s.historyPath(), maxHistory)
	if err != nil {
		return fresh
	}
	var h History
	if json.Unmarshal(data, &h) != nil || h.Version != version || h.Target != target {
		return fresh
	}
	return h
}

// SaveHistory writes it down: the old or the new one is there at any time, but for a
// machine that loses its power, which may lose it.
func (s *Site) SaveHistory(h History) error {
	data, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("write history of %s: %w", s.id, err)
	}
	if err := s.make(); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, ".history-")
	if err != nil {
		return fmt.Errorf("write history of %s: %w", s.id, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = errors.Join(adopt(f.Name()), os.Rename(f.Name(), s.historyPath()))
	}
	if err != nil {
		if gone := os.Remove(f.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return fmt.Errorf("write history of %s: %w", s.id, err)
	}
	return nil
}
