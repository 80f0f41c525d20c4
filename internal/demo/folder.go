package demo

import (
	"crypto/rand"
	"errors"
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

// makeFolder makes the folder, and before it a process that removes it, and ends all
// children, when this one is gone, however it went. From then on the starter marks
// its children with the folder. done removes the folder and ends that process.
func makeFolder(s *starter, executable string, janitor []string) (dir string, done func(), err error) {
	parent, err := filepath.Abs(os.TempDir())
	if err != nil {
		return "", nil, fmt.Errorf("find the folder for temporary files: %w", err)
	}
	dir = filepath.Join(parent, folderPrefix+strings.ToLower(rand.Text()[:12]))
	alive, hold, err := os.Pipe()
	if err != nil {
		return "", nil, fmt.Errorf("make a pipe: %w", err)
	}
	c, err := s.janitor(executable, append(janitor, dir), alive)
	alive.Close() // the janitor has its own by now
	if err != nil {
		hold.Close()
		return "", nil, err
	}
	done = func() {
		os.RemoveAll(dir)
		_, _ = io.WriteString(hold, "done")
		hold.Close()
		<-c.ended
	}
	if err := makeDir(dir); err != nil {
		done()
		return "", nil, err
	}
	s.folder = dir
	return dir, done, nil
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

// Of the janitor.
const (
	// janitorLimit is how long it tries to end children and to remove the folder.
	janitorLimit = 10 * time.Second
	janitorPause = 50 * time.Millisecond
	// janitorCalm is how often in a row it finds nothing left before it believes it: a
	// child that was just being started shows its mark a moment later.
	janitorCalm = 5
)

// Janitor waits until alive ends (with a word before, if all went in order), which is when the demonstration is gone, ends the
// children that are left, and removes its folder, which it refuses for any that no
// demonstration made.
func Janitor(dir string, alive io.Reader) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	if !strings.HasPrefix(filepath.Base(dir), folderPrefix) || !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
		return fmt.Errorf("%q is not a folder of a demonstration", dir)
	}
	calm := 0
	if said, _ := io.Copy(io.Discard, alive); said > 0 {
		calm = janitorCalm - 1 // it ended in order, after its children: one look is enough
	}
	deadline := time.Now().Add(janitorLimit)
	for ; calm < janitorCalm; calm++ {
		left := killMarked(dir)
		_, err := os.Lstat(dir)
		if left > 0 || !errors.Is(err, os.ErrNotExist) {
			calm = 0
		}
		// Only after its last writer: a child makes again what it misses.
		err = os.RemoveAll(dir)
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(janitorPause)
	}
	return nil
}
