package purging

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"karui/internal/statefile"
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
	var kept state
	if err := statefile.Read(s.file(), maxState, func(b []byte) (err error) {
		kept, err = readState(b)
		return err
	}); err != nil {
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

func readState(b []byte) (kept state, err error) {
	if err := json.Unmarshal(b, &kept); err != nil {
		return state{}, err
	}
	for i, r := range kept.Purges {
		if r == nil || r.ID == "" || r.State == Running && len(r.Parts) == 0 {
			return state{}, fmt.Errorf("purge %d is not whole", i)
		}
		for _, p := range r.Parts {
			if p == nil || len(p.Paths) == 0 {
				return state{}, fmt.Errorf("a part of purge %s is not whole", r.ID)
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
		err = statefile.Write(s.file(), b)
	}
	if err != nil {
		s.log.Warn("what is left of purges at the edge is lost if karui ends before it is done", "error", err)
	}
	return err
}
