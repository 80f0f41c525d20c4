package server

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"karui/convert"
	"karui/internal/statefile"
	"karui/proxy"
)

// quarantineFile holds the originals in quarantine, and those that were let out of it
// while the cache may still note that they were in.
const quarantineFile = "quarantine.json"

// quarantineEvery is how often it is written if anything has changed: what a killed
// process loses at most.
const quarantineEvery = 3 * time.Second

// maxQuarantine is more than ten thousand of both take.
const maxQuarantine = 8 << 20

func (s *server) quarantinePath() string { return filepath.Join(s.stateDir(), quarantineFile) }

// quarantineState is the form of the file. Digests are in hexadecimal digits.
type quarantineState struct {
	Quarantine []quarantinedOriginal `json:"quarantine"`
	Pardoned   []pardonedOriginal    `json:"pardoned"`
}

type quarantinedOriginal struct {
	Digest  string        `json:"digest"`
	Cause   convert.Cause `json:"cause"`
	Until   time.Time     `json:"until"`
	Strikes int           `json:"strikes"`
}

type pardonedOriginal struct {
	Digest string    `json:"digest"`
	At     time.Time `json:"at"`
}

// restoreQuarantine reads back what was in quarantine before the restart. What cannot
// be read is tried again, which ends a worker at worst.
func (s *server) restoreQuarantine() {
	if err := statefile.Read(s.quarantinePath(), maxQuarantine, func(b []byte) error {
		items, pardons, err := readQuarantine(b)
		if err != nil {
			return err
		}
		s.pool.RestoreQuarantine(items)
		s.proxy.RestorePardons(pardons)
		return nil
	}); err != nil {
		s.log.Warn("the originals that were in quarantine are tried again", "error", err)
	}
}

func readQuarantine(b []byte) ([]convert.Quarantine, []proxy.Pardoned, error) {
	var state quarantineState
	if err := json.Unmarshal(b, &state); err != nil {
		return nil, nil, err
	}
	var items []convert.Quarantine
	for _, q := range state.Quarantine {
		item := convert.Quarantine{Cause: q.Cause, Until: q.Until, Strikes: q.Strikes}
		if err := readDigest(item.Digest[:], q.Digest); err != nil {
			return nil, nil, err
		}
		items = append(items, item)
	}
	var pardons []proxy.Pardoned
	for _, p := range state.Pardoned {
		pardon := proxy.Pardoned{At: p.At}
		if err := readDigest(pardon.Digest[:], p.Digest); err != nil {
			return nil, nil, err
		}
		pardons = append(pardons, pardon)
	}
	return items, pardons, nil
}

func readDigest(to []byte, text string) error {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(to) {
		return fmt.Errorf("%.100q is no digest of %d hexadecimal digits", text, 2*len(to))
	}
	copy(to, b)
	return nil
}

// quarantineNow gives the file as it should be.
func (s *server) quarantineNow() ([]byte, error) {
	state := quarantineState{Quarantine: []quarantinedOriginal{}, Pardoned: []pardonedOriginal{}}
	for _, q := range s.pool.Quarantine() {
		state.Quarantine = append(state.Quarantine, quarantinedOriginal{
			Digest: q.Digest.String(), Cause: q.Cause, Until: q.Until.UTC(), Strikes: q.Strikes,
		})
	}
	for _, p := range s.proxy.Pardons() {
		state.Pardoned = append(state.Pardoned, pardonedOriginal{Digest: hex.EncodeToString(p.Digest[:]), At: p.At.UTC()})
	}
	return json.Marshal(state)
}

// saveQuarantine writes the file unless it says the same already. The quarantine is in
// force even where it cannot be written.
func (s *server) saveQuarantine() {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	b, err := s.quarantineNow()
	if err == nil && bytes.Equal(b, s.quarantined) {
		return
	}
	if err == nil {
		err = statefile.Write(s.quarantinePath(), b)
	}
	switch {
	case err == nil:
		s.quarantined = b
	case s.quarantined != nil:
		s.quarantined = nil // it is tried again, and complained about once
		s.log.Warn("what is in quarantine is remembered only until the next restart", "error", err)
	}
}

// keepQuarantine writes the file whenever something has changed until ctx ends, and
// then for the last time.
func (s *server) keepQuarantine(ctx context.Context) {
	tick := time.NewTicker(quarantineEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.saveQuarantine()
		case <-ctx.Done():
			s.saveQuarantine()
			return
		}
	}
}
