package main

import (
	"strings"
	"testing"
)

func TestDemoRefusesAddressesThatAreNone(t *testing.T) {
	for _, args := range [][]string{
		{"demo", "--origin", "www.example.com"},
		{"demo", "--origin", "ftp://www.example.com"},
		{"demo", "--origin", "https://user@www.example.com"},
		{"demo", "--origin", "https://www.example.com/?a=b"},
		{"demo", "now"},
	} {
		if code, stdout, stderr := karui(t, args...); code != 2 || stdout != "" || !strings.HasPrefix(stderr, "karui: ") {
			t.Errorf("%q: %d %q %q", args, code, stdout, stderr)
		}
	}
}

// The demonstration's children are commands that nobody should meet.
func TestDemoHidesItsChildren(t *testing.T) {
	_, stdout, _ := karui(t, "--help")
	if !strings.Contains(stdout, "\n  demo ") || strings.Contains(stdout, demoWatchdog) || strings.Contains(stdout, demoDisk) || strings.Contains(stdout, demoJanitor) {
		t.Error(stdout)
	}
	for _, args := range [][]string{{demoWatchdog, "run", "--config", "/nonexistent"}, {demoWatchdog, "rehearse", "--config", "/nonexistent"}, {demoJanitor, "/etc"}, {demoJanitor}, {demoDisk}} {
		if code, stdout, stderr := karui(t, args...); code == 0 || stdout != "" || stderr == "" {
			t.Errorf("%q: %d %q %q", args, code, stdout, stderr)
		}
	}
}
