package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"karui/proxy/dial"
	"karui/proxy/origin"
	"karui/proxy/stress"
)

// stateDir is the folder for what karui must remember over a restart besides the
// cache's entries. It lies on the first volume's disk, whose lock is held.
func (s *server) stateDir() string { return filepath.Join(s.inForce().Cache.Volumes[0].Path, "state") }

// switchesFile holds what operators set: about places, retries, the dial and
// shedding.
const switchesFile = "switches.json"

// maxSwitches is far more than a thousand sites with a dozen places need.
const maxSwitches = 4 << 20

// operated is everything that operators have set, in the form of the file.
type operated struct {
	origin.SwitchState
	// Dial and Shed are by site, "" for all.
	Dial map[string]dial.Pin     `json:"dial,omitempty"`
	Shed map[string]stress.Share `json:"shed,omitempty"`
}

// restoreSwitches reads back what operators had set before the restart. What
// cannot be read is not in force: karui starts all the same.
func (s *server) restoreSwitches() {
	name := filepath.Join(s.stateDir(), switchesFile)
	state, err := readSwitches(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.log.Warn("what operators had set about places, retries, the dial and shedding is lost: set it again", "error", err)
	default:
		s.clients.switches.Restore(state.SwitchState)
		s.proxy.Dial().Restore(state.Dial)
		s.proxy.Shares().Restore(state.Shed)
	}
}

func readSwitches(name string) (state operated, err error) {
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
		return operated{}, fmt.Errorf("read %s: %w", name, err)
	}
	return state, nil
}

// keepSwitches writes what is set, so that a restart in an outage or at a festival
// does not undo it. It is in force even where it cannot be written.
func (s *server) keepSwitches() {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	b, err := json.MarshalIndent(operated{
		SwitchState: s.clients.switches.State(), Dial: s.proxy.Dial().Pins(), Shed: s.proxy.Shares().State(),
	}, "", "  ")
	if err == nil {
		err = os.MkdirAll(s.stateDir(), 0o700)
	}
	if err == nil {
		err = renameio.WriteFile(filepath.Join(s.stateDir(), switchesFile), b, 0o600)
	}
	if err != nil {
		s.log.Warn("what operators have set holds only until the next restart", "error", err)
	}
}
