package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"karui/proxy/origin"
)

// stateDir is the folder for what karui must remember over a restart besides the
// cache's entries. It lies on the first volume's disk, whose lock is held.
func (s *server) stateDir() string { return filepath.Join(s.inForce().Cache.Volumes[0].Path, "state") }

// switchesFile holds what operators set about places and retries.
const switchesFile = "switches.json"

// maxSwitches is far more than a thousand sites with a dozen places need.
const maxSwitches = 4 << 20

// restoreSwitches reads back what operators had set before the restart. What
// cannot be read is not in force: karui starts all the same.
func (s *server) restoreSwitches() {
	name := filepath.Join(s.stateDir(), switchesFile)
	state, err := readSwitches(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.log.Warn("what operators had set about places and retries is lost: set it again", "error", err)
	default:
		s.clients.switches.Restore(state)
	}
}

func readSwitches(name string) (state origin.SwitchState, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return state, err
	}
	if info.Size() > maxSwitches {
		return state, fmt.Errorf("%s has %d bytes, over %d", name, info.Size(), maxSwitches)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return state, err
	}
	if err := json.Unmarshal(b, &state); err != nil {
		return origin.SwitchState{}, fmt.Errorf("read %s: %w", name, err)
	}
	return state, nil
}

// keepSwitches writes what is set, so that a restart in an outage or at a festival
// does not undo it. It is in force even where it cannot be written.
func (s *server) keepSwitches() {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	b, err := json.MarshalIndent(s.clients.switches.State(), "", "  ")
	if err == nil {
		err = os.MkdirAll(s.stateDir(), 0o700)
	}
	if err == nil {
		err = renameio.WriteFile(filepath.Join(s.stateDir(), switchesFile), b, 0o600)
	}
	if err != nil {
		s.log.Warn("what was set about places and retries holds only until the next restart", "error", err)
	}
}
