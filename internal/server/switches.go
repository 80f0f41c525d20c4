package server

import (
	"encoding/json"
	"path/filepath"

	"karui/internal/statefile"
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

func (s *server) switchesPath() string { return filepath.Join(s.stateDir(), switchesFile) }

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
	if err := statefile.Read(s.switchesPath(), maxSwitches, func(b []byte) error {
		var state operated
		if err := json.Unmarshal(b, &state); err != nil {
			return err
		}
		s.clients.switches.Restore(state.SwitchState)
		s.proxy.Dial().Restore(state.Dial)
		s.proxy.Shares().Restore(state.Shed)
		return nil
	}); err != nil {
		s.log.Warn("what operators had set about places, retries, the dial and shedding is lost: set it again", "error", err)
	}
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
		err = statefile.Write(s.switchesPath(), b)
	}
	if err != nil {
		s.log.Warn("what operators have set holds only until the next restart", "error", err)
	}
}
