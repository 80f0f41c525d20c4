package backlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"karui/internal/statefile"
)

const (
	// flushEvery is how often the journal is written: what a killed process loses at most.
	flushEvery = time.Second
	// sweepEvery is how often entries that are too old are looked for.
	sweepEvery = time.Minute
	// slack is how large a journal may be before it is written anew, besides twice what
	// its entries take, in bytes.
	slack = 1 << 20
	// recordFrame is about what a record takes besides its name, in bytes.
	recordFrame = 64
	// repairAfter is the time between two attempts to write a journal that could not be
	// written: each writes all of it.
	repairAfter = 10 * time.Second
)

// journal is the file behind a list. It is for one goroutine at a time.
type journal struct {
	name string
	file *os.File // nil while there is none that may be written on
	size int64
	// err is why the last attempt to write failed, nil where it did not, and retry is the
	// earliest time of the next one.
	err   error
	retry time.Time
}

// open reads what the file has, and makes it ready to be written on. An error says
// what of it was lost; the list goes on all the same.
func (j *journal) open(apply func(record)) error {
	if j.name == "" {
		return nil
	}
	f, err := statefile.Open(j.name, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the backlog: %w", err)
	}
	good, err := readJournal(f, apply)
	if errors.Is(err, ErrForeign) {
		// Whosever it is, it is not for karui to overwrite.
		aside, moved := statefile.MoveAside(j.name, ".foreign")
		err = fmt.Errorf("%s is %w, and is moved to %s", j.name, err, aside)
		return errors.Join(err, f.Close(), moved)
	}
	if err == nil || errors.Is(err, errDamaged) {
		// What follows is written behind the last good record.
		if cutErr := cutTo(f, good); cutErr != nil {
			return errors.Join(err, cutErr, f.Close())
		}
		j.file, j.size = f, good
		return err
	}
	return errors.Join(err, f.Close())
}

func cutTo(f *os.File, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	_, err := f.Seek(size, 0)
	return err
}

// append writes records behind the others.
func (j *journal) append(records []byte) error {
	if len(records) == 0 {
		return nil
	}
	n, err := j.file.Write(records)
	if err == nil {
		j.size += int64(n)
		return nil
	}
	// Part of it may be there, and nothing may be written behind half a record.
	j.drop()
	return fmt.Errorf("write the backlog: %w", err)
}

// replace puts a whole journal in the place of the one before, at once.
func (j *journal) replace(whole []byte) error {
	j.drop() // whatever comes of it: what is written next is the whole again
	if err := os.MkdirAll(filepath.Dir(j.name), 0o700); err != nil {
		return fmt.Errorf("write the backlog: %w", err)
	}
	if err := renameio.WriteFile(j.name, whole, 0o600); err != nil {
		return fmt.Errorf("write the backlog: %w", err)
	}
	f, err := statefile.Open(j.name, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return fmt.Errorf("write the backlog: %w", err)
	}
	j.file, j.size = f, int64(len(whole))
	return nil
}

// drop gives the file up, so that the next write is a whole one.
func (j *journal) drop() {
	if j.file != nil {
		_ = j.file.Close() // what it holds is written anew
		j.file = nil
	}
}
