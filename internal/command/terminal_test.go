package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// terminal opens a terminal: what is written to slave is read from master.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be opened here: %v", err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}

func TestColoursAreForTerminals(t *testing.T) {
	_, tty := terminal(t)
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, test := range []struct {
		name          string
		out           io.Writer
		term, noColor string
		moving, paint bool
	}{
		{"terminal", tty, "xterm-256color", "", true, true},
		{"NO_COLOR", tty, "xterm", "1", true, false},
		{"NO_COLOR, empty", tty, "xterm", "", true, true},
		{"dumb", tty, "dumb", "", false, false},
		{"no TERM", tty, "", "", false, false},
		{"file", file, "xterm", "", false, false},
		{"buffer", &bytes.Buffer{}, "xterm", "", false, false},
	} {
		t.Setenv("TERM", test.term)
		t.Setenv("NO_COLOR", test.noColor)
		if got := Terminal(test.out); got != test.moving {
			t.Errorf("%s: progress %v", test.name, got)
		}
		if got := Paint(test.out, Bad, "x"); (got != "x") != test.paint {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// What a command line says of itself is coloured on a terminal, and the same words
// everywhere else.
func TestErrorsInColour(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	master, slave := terminal(t)
	run := func(stderr io.Writer) {
		root := Group(&cobra.Command{Use: "program"})
		root.AddCommand(&cobra.Command{Use: "try", RunE: func(cmd *cobra.Command, _ []string) error {
			Warn(cmd, "the disk is %s", "slow")
			return errors.New("disk is gone")
		}})
		if code := Run(context.Background(), root, []string{"try"}, io.Discard, stderr); code != ExitFailed {
			t.Errorf("exit code %d", code)
		}
	}
	run(slave)
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	seen := make([]byte, 4096)
	n, err := master.Read(seen)
	if err != nil {
		t.Fatal(err)
	}
	var plain bytes.Buffer
	run(&plain)
	coloured := strings.ReplaceAll(string(seen[:n]), "\r\n", "\n")
	if want := "\x1b[33mwarning:\x1b[0m the disk is slow\n\x1b[1;31mprogram:\x1b[0m disk is gone\n"; coloured != want {
		t.Errorf("%q", coloured)
	}
	if want := "warning: the disk is slow\nprogram: disk is gone\n"; plain.String() != want {
		t.Errorf("%q", plain.String())
	}
}
