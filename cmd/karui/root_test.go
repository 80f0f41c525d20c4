package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
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

// Every command explains itself, with an example of every one that does something.
func TestHelpTeaches(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
			return
		}
		if cmd.Short == "" || len(cmd.Short) > 80 {
			t.Errorf("%s: short help of %d characters", cmd.CommandPath(), len(cmd.Short))
		}
		if !cmd.HasSubCommands() && !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(newRoot())
	code, stdout, stderr := karui(t, "--help")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "Examples:") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	if code, bare, _ := karui(t); code != 0 || bare != stdout {
		t.Errorf("without a command: %d %s", code, bare)
	}
}

func TestVersion(t *testing.T) {
	code, stdout, stderr := karui(t, "version")
	if code != 0 || stderr != "" || !strings.HasPrefix(stdout, "karui development\n") || !strings.Contains(stdout, "go1.") || !strings.Contains(stdout, "\nlibvips 8.") {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, stdout, stderr := karui(t, "completion", shell)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "karui") {
			t.Errorf("%s: %d %s", shell, code, stderr)
		}
	}
	if code, stdout, _ := karui(t, "__complete", "config", "ch"); code != 0 || !strings.HasPrefix(stdout, "check\t") {
		t.Errorf("%d %s", code, stdout)
	}
}
