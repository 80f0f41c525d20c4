package main

import (
	"testing"

	"karui/internal/command/commandtest"
)

// program is what every command of karui is held to. Lines are for those whose
// examples ask other machines, or need files that are there.
var program = commandtest.Program{New: newRoot, Lines: map[string][]string{
	"serve": {"serve"},
	"drill": {"drill --dry-run"},
	"warm":  {"warm --site shop --list $FILE --config $CONFIG --patience 1s --proxy $NOBODY"},
	"purge": {"purge --site shop /images/spring/", "purge --site shop --exact --file $FILE", "purge --list"},
}}

func TestEveryCommandTeaches(t *testing.T)           { program.Teaches(t) }
func TestEveryCommandRefusesWrongUsage(t *testing.T) { program.RefusesWrongUsage(t) }
func TestEveryCommandRefusesWrongFiles(t *testing.T) { program.RefusesWrongFiles(t) }
func TestEveryCommandCompletes(t *testing.T)         { program.Completes(t) }

func TestEveryCommandSaysWhoDoesNotAnswer(t *testing.T) { program.SaysWhoDoesNotAnswer(t, example) }

func TestNamesOfTheConfigurationAreCompleted(t *testing.T) {
	config := file(t, `sites:
  - { id: shop, hosts: [a.example], origins: [{ name: tokyo, urls: [http://127.0.0.1:1] }, { name: osaka, urls: [http://127.0.0.1:2] }] }
  - { id: blog, hosts: [b.example], origins: [{ name: paris, urls: [http://127.0.0.1:3] }, { name: tokyo, urls: [http://127.0.0.1:4] }] }
`)
	for line, want := range map[string][]string{
		"dial --config " + config + " --site":         {"shop", "blog"},
		"retry --config " + config + " --site":        {"shop", "blog"},
		"warm --config " + config + " --site":         {"shop", "blog"},
		"place --config " + config:                    {"tokyo", "osaka", "paris"},
		"place --config " + config + " --site blog":   {"tokyo", "paris"},
		"place --config " + config + " tokyo":         {"out", "in"},
		"place --config " + config + " tokyo out":     nil,
		"place --config " + file(t, "sites: [") + " ": nil,
		"retry":                         {"off", "auto"},
		"dial --config " + config:       {"auto", "full", "lean", "spare", "defer"},
		"dial --config /nowhere":        {"auto", "full", "lean", "spare", "defer"},
		"dial --config /nowhere --site": nil,
		"drill --fault":                 faultNames(),
		"convert --png":                 {"auto", "lossless", "lossy"},
	} {
		program.Offers(t, line, want...)
	}
}
