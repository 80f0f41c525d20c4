package mail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

// store is the outbox on disk. A mail is the file ID.json, which is only ever
// made, replaced and moved as a whole:
//
//	outbox/ID.json          waits
//	outbox/sent/ID.json     went out to somebody
//	outbox/failed/ID.json   given up
//	outbox/corrupt/ID.json  cannot be read
//	outbox/.lock            held by the one process that sends
//
// A mail waits as long as its file is in the first place and counts as sent from
// the moment on that it is in the second, whatever the first holds.
type store struct {
	dir string
}

// Places a mail's file moves to.
const (
	placeSent    = "sent"
	placeFailed  = "failed"
	placeCorrupt = "corrupt"
)

// make makes the directories that are not there yet.
func (s store) make() error {
	for _, place := range []string{"", placeSent, placeFailed, placeCorrupt} {
		path := filepath.Join(s.dir, place)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("make the outbox: %w", err)
		}
		if err := adopt(path); err != nil {
			return fmt.Errorf("make the outbox: %w", err)
		}
	}
	return nil
}

// adopt gives what root made to the owner of the directory it is in, so that a
// command of root's leaves nothing that the daemon, as another user, cannot read.
func adopt(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
		return os.Lchown(path, int(owner.Uid), int(owner.Gid))
	}
	return nil
}

func (s store) path(place, id string) string { return filepath.Join(s.dir, place, id+".json") }

func (s store) has(place, id string) (bool, error) {
	_, err := os.Lstat(s.path(place, id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// add writes a new mail down, durably. It returns false if the id is taken. Of
// two processes that add the same id at the same time one wins, or the sender
// finds the other's file beside the one in sent.
func (s store) add(e entry) (bool, error) {
	for _, place := range []string{"", placeSent, placeFailed} {
		if taken, err := s.has(place, e.Event.ID); err != nil || taken {
			return false, err
		}
	}
	body, err := json.Marshal(e)
	if err != nil {
		return false, err
	}
	if _, err := os.Lstat(s.dir); errors.Is(err, fs.ErrNotExist) {
		if err := s.make(); err != nil {
			return false, err
		}
	}
	path := s.path("", e.Event.ID)
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(s.dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Cleanup() }()
	if _, err := f.Write(body); err != nil {
		return false, err
	}
	if err := errors.Join(adopt(f.Name()), f.Sync()); err != nil {
		return false, err
	}
	// A link, unlike a rename, never replaces.
	if err := os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, syncDir(s.dir)
}

// put replaces a mail that waits (or that is in another place already).
func (s store) put(place string, e entry) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, place)
	if err := renameio.WriteFile(s.path(place, e.Event.ID), body, 0o600, renameio.WithTempDir(dir)); err != nil {
		return err
	}
	return errors.Join(adopt(s.path(place, e.Event.ID)), syncDir(dir))
}

// move ends the waiting of a mail. The rename alone is what other processes, and
// this one after a crash, see.
func (s store) move(place, id string) error {
	if err := os.Rename(s.path("", id), s.path(place, id)); err != nil {
		return err
	}
	return errors.Join(syncDir(filepath.Join(s.dir, place)), syncDir(s.dir))
}

// drop removes a mail that waits.
func (s store) drop(id string) error {
	return errors.Join(os.Remove(s.path("", id)), syncDir(s.dir))
}

// list gives the ids of mails that wait, in no order. None wait in an outbox that
// was not made yet.
func (s store) list() ([]string, error) {
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, f := range files {
		if id, ok := strings.CutSuffix(f.Name(), ".json"); ok && !f.IsDir() && idForm.MatchString(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (s store) files() ([]fs.DirEntry, error) {
	files, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

// sweep removes what a crash left of files in the making.
func (s store) sweep(now time.Time) error {
	files, err := s.files()
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		if f.IsDir() || !strings.HasPrefix(f.Name(), ".") || f.Name() == lockName {
			continue
		}
		if info, err := f.Info(); err == nil && now.Sub(info.ModTime()) > time.Hour {
			errs = append(errs, os.Remove(filepath.Join(s.dir, f.Name())))
		}
	}
	return errors.Join(errs...)
}

var errCorrupt = errors.New("unreadable")

// read reads a mail. What cannot be understood, or is no plain file, is
// errCorrupt.
func (s store) read(place, id string) (entry, error) {
	info, err := os.Lstat(s.path(place, id))
	if err != nil {
		return entry{}, err
	}
	if !info.Mode().IsRegular() {
		return entry{}, fmt.Errorf("%w: it is no plain file but %s", errCorrupt, info.Mode())
	}
	// Not to wait at a pipe that took the file's place in between.
	f, err := os.OpenFile(s.path(place, id), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return entry{}, err
	}
	defer func() { _ = f.Close() }()
	body, err := io.ReadAll(io.LimitReader(f, maxEntry))
	if err != nil {
		return entry{}, err
	}
	e, err := decodeEntry(body)
	if err == nil && e.Event.ID != id {
		err = fmt.Errorf("holds event %q", e.Event.ID)
	}
	if err != nil {
		return entry{}, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	return e, nil
}

// prune removes from a place what is older than keep, and the oldest of more than
// most.
func (s store) prune(place string, now time.Time, keep time.Duration, most int) error {
	dir := filepath.Join(s.dir, place)
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	type aged struct {
		name string
		at   time.Time
	}
	var all []aged
	for _, f := range files {
		if info, err := f.Info(); err == nil && !f.IsDir() {
			all = append(all, aged{f.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b aged) int { return a.at.Compare(b.at) })
	var errs []error
	for i, f := range all {
		if now.Sub(f.at) > keep || len(all)-i > most {
			errs = append(errs, os.Remove(filepath.Join(dir, f.name)))
		}
	}
	return errors.Join(errs...)
}

const lockName = ".lock"

// lock becomes the one that sends; ok is false if another process, or another
// caller in this one, is.
func (s store) lock() (unlock func(), ok bool, err error) {
	f, err := os.OpenFile(filepath.Join(s.dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, err
	}
	if err := adopt(f.Name()); err != nil {
		_ = f.Close()
		return nil, false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, false, nil
		}
		return nil, false, err
	}
	return func() { _ = f.Close() }, true, nil
}

// syncDir makes names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
