package demo

import (
	"path/filepath"
	"slices"
	"strings"
)

// handView is what a person needs to go on by hand.
type handView struct {
	// Karui and Watchdog are the addresses of their own pages, empty while they have none.
	Karui, Watchdog string
	// Exports are for a shell, so that programs ask the double and not AWS; Copy is
	// the watchdog's file for a shell, to begin with. Both are empty where there is none.
	Exports []string
	Copy    string
}

// hand gives what there is now. The keys are the double's own and open nothing else.
func (d *demo) hand() handView {
	var v handView
	if page := d.proxy.page(); page != "" {
		v.Karui = page + "/status"
	}
	if d.guard == nil {
		return v
	}
	if page := d.guard.page(); page != "" {
		v.Watchdog = page + "/status"
	}
	for _, one := range d.edge.env() {
		name, value, _ := strings.Cut(one, "=")
		v.Exports = append(v.Exports, "export "+name+"="+shellWord(value))
	}
	v.Copy = shellWord(filepath.Join(d.dir, "watchdog.yaml"))
	return v
}

// shellWord quotes a value for a shell where that is needed.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@", r)
	}
	if s != "" && !slices.ContainsFunc([]rune(s), func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
