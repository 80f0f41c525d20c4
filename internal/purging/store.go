package purging

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// stateFile holds the purges that are remembered, with what is left to do at the edge.
const stateFile = "purges.json"

// maxState is more than the bounds of what is remembered come to.
const maxState = 256 << 20

// state is the form of the file.
type state struct {
	Purges []*record `json:"purges"` // oldest first
}

func (s *Service) file() string { return filepath.Join(s.dir, stateFile) }

// restore reads what was there before the restart, and goes on with it. What cannot be
// read is said; the service starts all the same.
func (s *Service) restore() {
	kept, err := readState(s.file())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.log.Warn("purges that were not finished at the edge are lost: purge once more what was purged last", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range kept.Purges {
		s.records = append(s.records, r)
		if r.State == Running {
			s.start(r)
		}
	}
}

func readState(name string) (kept state, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return kept, err
	}
	if info.Size() > maxState {
		return kept, fmt.Errorf("%s has %d bytes, over %d", name, info.Size(), maxState)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return kept, err
	}
	if err := json.Unmarshal(b, &kept); err != nil {
		return state{}, fmt.Errorf("read %s: %w", name, err)
	}
	for i, r := range kept.Purges {
		if r == nil || r.ID == "" || r.State == Running && len(r.Parts) == 0 {
			return state{}, fmt.Errorf("read %s: purge %d is not whole", name, i)
		}
		for _, p := range r.Parts {
			if p == nil || len(p.Paths) == 0 {
				return state{}, fmt.Errorf("read %s: a part of purge %s is not whole", name, r.ID)
			}
		}
	}
	return kept, nil
}

// save writes what is remembered, and gives why that could not be done.
func (s *Service) save() error {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	b, err := json.Marshal(state{Purges: s.records})
	s.mu.Unlock()
	if err == nil {
		err = os.MkdirAll(s.dir, 0o700)
	}
	if err == nil {
		err = renameio.WriteFile(s.file(), b, 0o600)
	}
	if err != nil {
		err = fmt.Errorf("write %s: %w", s.file(), err)
		s.log.Warn("what is left of purges at the edge is lost if karui ends before it is done", "error", err)
	}
	return err
}
