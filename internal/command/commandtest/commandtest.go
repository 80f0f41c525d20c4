// Package commandtest holds the tests that the command lines of both programs pass,
// command by command, so that one that is added has to pass them too: help that
// teaches, and exit codes that say the same everywhere.
//
// It walks the tree of commands. What it runs are the examples of their help, which
// must be command lines that the program takes, with what is wrong put into them.
package commandtest

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/internal/manual"
)

// Program is the one that is tested.
type Program struct {
	// New makes its tree of commands, which is good for one run.
	New func() *cobra.Command
	// Lines are command lines, less the program's name, to use for a command instead of
	// its examples, by its path below the program. Those that need a file name it $FILE,
	// which exists and holds a line, and those that need a configuration beside --admin
	// have --config $CONFIG. $NOBODY is an address at which nobody listens.
	Lines map[string][]string
}

// each calls do for every command that people see, groups included.
func (p Program) each(do func(cmd *cobra.Command)) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
			return
		}
		do(cmd)
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(p.New())
}

// path is that of a command below the program.
func path(cmd *cobra.Command) []string { return strings.Fields(cmd.CommandPath())[1:] }

// run gives what one command line comes to.
func (p Program) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	root := p.New()
	root.SetIn(strings.NewReader(""))
	code = command.Run(context.Background(), root, args, &out, &errs)
	return code, out.String(), errs.String()
}

// examples gives the command lines of a command's help, less the program's name and
// what a shell does with them.
func (p Program) examples(cmd *cobra.Command) [][]string {
	var found [][]string
	for _, line := range p.Lines[strings.Join(path(cmd), " ")] {
		found = append(found, strings.Fields(line))
	}
	if found != nil {
		return found
	}
	page := manual.Page{Text: "```\n" + cmd.Example + "\n```\n"}
	typed, _ := page.Commands(cmd.Root().Name())
	for _, line := range typed {
		words := strings.Fields(line)
		if slices.Equal(words[1:min(len(words), 1+len(path(cmd)))], path(cmd)) {
			found = append(found, words[1:])
		}
	}
	return found
}

// without takes a flag and its value out of a command line.
func without(args []string, flags ...string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(args[i], "=")
		if slices.Contains(flags, name) {
			if !joined {
				i++
			}
			continue
		}
		kept = append(kept, args[i])
	}
	return kept
}

// Teaches checks the help of every command: a short line, for each that does something
// examples that are command lines of this program, and for a group the same help where
// no command of it is named.
func (p Program) Teaches(t *testing.T) {
	p.each(func(cmd *cobra.Command) {
		name := cmd.CommandPath()
		if cmd.Short == "" || len(cmd.Short) > 80 {
			t.Errorf("%s: short help of %d bytes, want 1 to 80", name, len(cmd.Short))
		}
		if !cmd.HasSubCommands() {
			page := manual.Page{Text: "```\n" + cmd.Example + "\n```\n"}
			typed, _ := page.Commands(cmd.Root().Name())
			if len(typed) == 0 {
				t.Errorf("%s has no example", name)
			}
			for _, line := range typed {
				if err := manual.Parse(p.New, line, false); err != nil {
					t.Errorf("%s: its example `%s` is wrong: %v", name, line, err)
				}
			}
		}
		code, stdout, stderr := p.run(t, append(path(cmd), "--help")...)
		if code != command.ExitGood || stderr != "" || !strings.Contains(stdout, "Usage:\n") || !cmd.HasSubCommands() && !strings.Contains(stdout, "Examples:\n") {
			t.Errorf("%s --help: %d %q %q", name, code, stdout, stderr)
		}
		if !strings.Contains(stdout, cmd.Short) && (cmd.Long == "" || !strings.Contains(stdout, cmd.Long)) {
			t.Errorf("%s --help does not say what it does: %q", name, stdout)
		}
		if cmd.HasSubCommands() {
			if code, bare, _ := p.run(t, path(cmd)...); code != command.ExitGood || bare != stdout {
				t.Errorf("%s: %d %q, want what --help says", name, code, bare)
			}
		}
		if strings.Contains(stdout, "\x1b") {
			t.Errorf("%s --help is coloured without a terminal", name)
		}
		for line := range strings.Lines(cmd.Long) {
			if len([]rune(line)) > 121 {
				t.Errorf("%s: a line of its help is %d characters long", name, len([]rune(line)))
			}
		}
	})
}

// RefusesWrongUsage checks that every command ends with 2, says on stderr what is
// wrong and where to read on, and writes nothing to stdout, when a flag, or an
// argument, is none of its own.
func (p Program) RefusesWrongUsage(t *testing.T) {
	refused := func(args ...string) {
		t.Helper()
		code, stdout, stderr := p.run(t, args...)
		if code != command.ExitUsage || stdout != "" || !strings.HasPrefix(stderr, p.New().Name()+": ") || !strings.Contains(stderr, "--help'.\n") {
			t.Errorf("%q: %d %q %q", args, code, stdout, stderr)
		}
	}
	p.each(func(cmd *cobra.Command) {
		refused(append(path(cmd), "--no-such-flag")...)
		if cmd.HasSubCommands() {
			refused(append(path(cmd), "no-such-command")...)
		}
		if cmd.Args != nil && cmd.ValidateArgs([]string{"one", "two", "three"}) != nil {
			refused(append(path(cmd), "one", "two", "three")...)
		}
		if flag := cmd.Flags().Lookup("config"); flag != nil {
			refused(append(path(cmd), "--config")...)
		}
	})
	// The first and the last letters of a name may be the wrong way round.
	for _, cmd := range p.New().Commands() {
		if n := len(cmd.Name()); !cmd.Hidden && n > 3 {
			typo := cmd.Name()[:n-2] + cmd.Name()[n-1:] + cmd.Name()[n-2:n-1]
			if typo == cmd.Name() {
				continue
			}
			if _, _, stderr := p.run(t, typo); !strings.Contains(stderr, "did you mean ") || !strings.Contains(stderr, cmd.Name()) {
				t.Errorf("%s: no hint at %s: %s", typo, cmd.Name(), stderr)
			}
		}
	}
}

// RefusesWrongFiles checks that every command that reads a configuration ends with 2,
// and names the file, when it is not there, no file, not YAML, or has a wrong key.
func (p Program) RefusesWrongFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	wrong := []string{filepath.Join(dir, "none.yaml"), dir, write("no.yaml", "a: [b\n"), write("unknown.yaml", "no_such_key: 1\n")}
	some := write("some.txt", "/a.jpg\n")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	tried := 0
	p.each(func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("config") == nil {
			return
		}
		lines := p.examples(cmd)
		if len(lines) == 0 {
			t.Errorf("%s: no line to try", cmd.CommandPath())
		}
		for _, line := range lines {
			args := without(line, "--config", "-c", "--admin", "--token-file")
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "$FILE", some)
			}
			for _, file := range wrong {
				tried++
				code, stdout, stderr := p.run(t, append(slices.Clone(args), "--config", file)...)
				// Some lines do not go with --config at all, which is wrong usage too.
				if code != command.ExitUsage || stdout != "" || !strings.Contains(stderr, file) && !strings.Contains(stderr, "--help'.\n") {
					t.Errorf("%q: %d %q %q", append(args, "--config", file), code, stdout, stderr)
				}
			}
		}
	})
	if tried == 0 {
		t.Error("no command reads a configuration")
	}
}

// SaysWhoDoesNotAnswer checks that every command that asks a running process ends with
// 1 when nobody listens there, names the address, and says what to do. The file is a
// configuration that is right.
func (p Program) SaysWhoDoesNotAnswer(t *testing.T, file string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	some := filepath.Join(t.TempDir(), "some.txt")
	if err := os.WriteFile(some, []byte("/a.jpg\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // some remember there what they did
	tried := 0
	p.each(func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("admin") == nil {
			return
		}
		lines := p.examples(cmd)
		if len(lines) == 0 {
			t.Errorf("%s: no line to try", cmd.CommandPath())
		}
		for _, line := range lines {
			if !slices.Contains(line, "$CONFIG") {
				line = without(line, "--config", "-c")
			}
			args := append(without(line, "--admin", "--token-file"), "--admin", "http://"+address)
			for i := range args {
				args[i] = strings.NewReplacer("$FILE", some, "$CONFIG", file, "$NOBODY", "http://"+address).Replace(args[i])
			}
			tried++
			code, stdout, stderr := p.run(t, args...)
			if code != command.ExitFailed || !strings.Contains(stderr, address) || !strings.Contains(stderr, "nothing listens there") || !strings.Contains(stderr, "--admin") {
				t.Errorf("%q: %d %q %q", args, code, stdout, stderr)
			}
		}
	})
	if tried == 0 {
		t.Error("no command asks a process")
	}
}

// Completes checks that the shells get scripts, and that of every command the name and
// the flags are completed.
func (p Program) Completes(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, stdout, stderr := p.run(t, "completion", shell)
		if code != command.ExitGood || stderr != "" || !strings.Contains(stdout, p.New().Name()) {
			t.Errorf("%s: %d %s", shell, code, stderr)
		}
	}
	p.each(func(cmd *cobra.Command) {
		// Nothing that a shell asks for may end in an error that people would see.
		code, stdout, _ := p.run(t, append(append([]string{"__complete"}, path(cmd)...), "--")...)
		if code != command.ExitGood || !strings.Contains(stdout, "--help") {
			t.Errorf("%s: %d %q", cmd.CommandPath(), code, stdout)
		}
		if !cmd.HasParent() {
			return
		}
		half := path(cmd)
		half[len(half)-1] = cmd.Name()[:(len(cmd.Name())+1)/2]
		code, stdout, _ = p.run(t, append([]string{"__complete"}, half...)...)
		if code != command.ExitGood || !strings.Contains("\n"+stdout, "\n"+cmd.Name()+"\t") {
			t.Errorf("%q: %d %q, want %s", half, code, stdout, cmd.Name())
		}
	})
}

// Offers checks what is completed after a command line.
func (p Program) Offers(t *testing.T, line string, want ...string) {
	t.Helper()
	code, stdout, _ := p.run(t, append(append([]string{"__complete"}, strings.Fields(line)...), "")...)
	var got []string
	for word := range strings.Lines(stdout) {
		word = strings.TrimSpace(word)
		if !strings.HasPrefix(word, ":") && word != "" {
			got = append(got, word)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if code != command.ExitGood || !slices.Equal(got, want) {
		t.Errorf("%s: %d %q, want %q", line, code, got, want)
	}
}
