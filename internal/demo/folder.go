package demo

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// folderPrefix begins the name of the folder with everything that is written.
const folderPrefix = "karui-demo-"

// makeFolder makes the folder, and a process that removes it when this one is
// gone, however it went. done removes it and ends that process.
func makeFolder(s *starter, executable string, janitor []string) (dir string, done func(), err error) {
	dir, err = os.MkdirTemp("", folderPrefix+"*")
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for what is written: %w", err)
	}
	alive, hold, err := os.Pipe()
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, fmt.Errorf("make a pipe: %w", err)
	}
	c, err := s.janitor(executable, append(janitor, dir), alive)
	alive.Close() // the janitor has its own by now
	if err != nil {
		hold.Close()
		os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, func() {
		os.RemoveAll(dir)
		hold.Close()
		<-c.ended
	}, nil
}

func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	return nil
}

// janitor starts the process that outlives this one by a moment.
func (s *starter) janitor(executable string, args []string, alive *os.File) (*child, error) {
	c := &child{name: "the janitor", log: &logTail{}, ended: make(chan struct{})}
	c.cmd = command(executable, args...)
	c.cmd.Stdin, c.cmd.Stderr = alive, nil
	c.cmd.Env, c.cmd.Dir = cleanEnv(), "/"
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no signal of a terminal or a group reaches it
	if err := s.start(c.cmd); err != nil {
		return nil, fmt.Errorf("start the janitor: %w", err)
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait()
	}()
	return c, nil
}

// janitorLimit is how long a janitor tries to remove a folder in which children
// of a killed demonstration may still write for a moment.
const janitorLimit = 10 * time.Second

// Janitor waits until alive ends, which is when the demonstration is gone, and
// removes its folder, which it refuses for any that no demonstration made.
func Janitor(dir string, alive io.Reader) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	if !strings.HasPrefix(filepath.Base(dir), folderPrefix) || !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
		return fmt.Errorf("%q is not a folder of a demonstration", dir)
	}
	_, _ = io.Copy(io.Discard, alive)
	deadline := time.Now().Add(janitorLimit)
	for {
		err := os.RemoveAll(dir)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}
