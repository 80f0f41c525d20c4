package main

import (
	"os"
	"os/exec"
	"path/filepath"
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

// Minutes in which nothing is said look like a fault: the first build says so before.
func TestFirstBuildSaysThatItTakesTime(t *testing.T) {
	rules, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"Makefile": string(rules), "go": "#!/bin/sh\necho compiling\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := func() string {
		cmd := exec.Command("make", "bin/karui")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "MAKEFLAGS=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	before, _, compiled := strings.Cut(build(), "go build")
	if !compiled || !strings.Contains(before, "some minutes on a fresh machine") {
		t.Errorf("before the first build: %q", before)
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "karui"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if again := build(); strings.Contains(again, "minutes") || !strings.Contains(again, "compiling") {
		t.Errorf("before later builds: %q", again)
	}
}
