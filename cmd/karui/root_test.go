package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"frobnicate"},
		{"--frobnicate"},
		{"version", "extra"},
		{"version", "--frobnicate"},
		{"config", "chekc"},
		{"config", "check", "extra"},
		{"completion", "tcsh"},
		{"help", "nosuch"},
		{"help", "config", "nosuch"},
		{"config", "check", "--config"},
	} {
		code, stdout, stderr := karui(t, args...)
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "karui: ") || !strings.Contains(stderr, "--help'.\n") {
			t.Errorf("%q: %d %q %q", args, code, stdout, stderr)
		}
	}
	if _, _, stderr := karui(t, "versio"); !strings.Contains(stderr, `unknown command "versio", did you mean version?`) {
		t.Errorf("no hint: %s", stderr)
	}
}

func TestVersion(t *testing.T) {
	code, stdout, stderr := karui(t, "version")
	if code != 0 || stderr != "" || !strings.HasPrefix(stdout, "karui development\n") || !strings.Contains(stdout, "go1.") || !strings.Contains(stdout, "\nlibvips 8.") {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
	for _, flag := range []string{"--version", "-v"} {
		if code, same, stderr := karui(t, flag); code != 0 || same != stdout || stderr != "" {
			t.Errorf("%s: %d %q %q", flag, code, same, stderr)
		}
	}
}

// A flag of any command that takes a form of its own says so without words of Go.
func TestFlagsOfAllCommandsSayWhatTheyTake(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if kind := f.Value.Type(); kind == "string" || kind == "stringSlice" || kind == "stringArray" || f.Name == "help" {
				return // they take anything
			}
			line := append(strings.Fields(cmd.CommandPath())[1:], "--"+f.Name+"=what")
			code, _, stderr := karui(t, line...)
			for _, raw := range []string{"invalid argument", "strconv", "time:"} {
				if code != 2 || !strings.Contains(stderr, `"what"`) || strings.Contains(stderr, raw) {
					t.Errorf("%q: %d %s", line, code, stderr)
				}
			}
		})
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(newRoot())
}

// Only sites have to be in a file: any other mistake is none of a file that is not there.
func TestAMissingFileIsNotBlamedForFlags(t *testing.T) {
	code, _, stderr := karui(t, "serve", "--origin", "http://127.0.0.1:1", "--listen", "80")
	if code != 2 || strings.Contains(stderr, "karui.yaml") || !strings.Contains(stderr, "--listen") {
		t.Errorf("%d %s", code, stderr)
	}
	if code, _, stderr := karui(t, "serve"); code != 2 || !strings.HasPrefix(stderr, "/etc/karui/karui.yaml is not there") {
		t.Errorf("%d %s", code, stderr)
	}
}
