package main

import (
	"testing"

	"karui/internal/command/commandtest"
)

// program is what every command of karui-watchdog is held to.
var program = commandtest.Program{New: newRoot}

func TestEveryCommandTeaches(t *testing.T)           { program.Teaches(t) }
func TestEveryCommandRefusesWrongUsage(t *testing.T) { program.RefusesWrongUsage(t) }
func TestEveryCommandRefusesWrongFiles(t *testing.T) { program.RefusesWrongFiles(t) }
func TestEveryCommandCompletes(t *testing.T)         { program.Completes(t) }

func TestSitesAreCompleted(t *testing.T) {
	for line, want := range map[string][]string{
		"status --config " + example:         {"shop"},
		"degrade --config " + example:        {"shop"},
		"restore --config " + example:        {"shop"},
		"rehearse --config " + example:       {"shop"},
		"rehearse --config /nowhere":         nil,
		"degrade --config " + example + " x": nil,
	} {
		program.Offers(t, line, want...)
	}
}
