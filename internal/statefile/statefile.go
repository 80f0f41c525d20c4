// Package statefile keeps what must outlive a restart in small files.
//
// Guaranteed: a reader gets the whole of one Write or of the one before, also after a
// crash of the machine. No more of a file is read than the caller says. A file with
// contents that cannot be taken over, because they are damaged or of another version of
// karui, is moved aside, so that the next Write does not destroy what somebody may still
// want to read.
//
// Not guaranteed: that two processes can write one file; whoever calls holds a lock on
// the folder.
package statefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Aside is what the name of a file that was moved aside ends in. There is one at most:
// the latest.
const Aside = ".unreadable"

// Read hands a file's contents, of at most so many bytes, to take, which takes over all
// or, with an error, nothing. A file that is not there is no error, and take is not
// called.
func Read(name string, most int64, take func([]byte) error) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what was kept: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return fmt.Errorf("read what was kept: %w", err)
	}
	if int64(len(b)) > most {
		err = fmt.Errorf("it has over %d bytes", most)
	} else {
		err = take(b)
	}
	if err == nil {
		return nil
	}
	if moved := os.Rename(name, name+Aside); moved != nil {
		return fmt.Errorf("read %s: %w (it cannot be moved aside, and is written anew: %w)", name, err, moved)
	}
	return fmt.Errorf("read %s: %w (it is now %s)", name, err, name+Aside)
}

// Write puts contents into a file, which only karui's user may read, in a folder that
// it makes if need be.
func Write(name string, contents []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := renameio.WriteFile(name, contents, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
