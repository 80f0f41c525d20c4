// Package statefile keeps what must outlive a restart in small files.
//
// Guaranteed: a reader gets the whole of one Write or of the one before, also after a
// crash of the machine. No more of a file is read than the caller says, and what is no
// file, such as a pipe, is not waited for. A file with contents that cannot be taken over,
// because they are damaged or of another version of karui, is moved aside, so that the
// next Write does not destroy what somebody may still want to read.
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
	"golang.org/x/sys/unix"
)

// Aside is what the name of a file that was moved aside ends in; MoveAside tells of the
// next ones.
const Aside = ".unreadable"

// asideMost bounds the files of one name that were moved aside. The next one takes the
// place of the last: the first ones tell how the trouble began.
const asideMost = 5

// Open opens a file, by flags as those of os.OpenFile without os.O_CREATE, and waits for
// nobody: what is no regular file is an error.
func Open(name string, flags int) (*os.File, error) {
	f, err := os.OpenFile(name, flags|unix.O_NONBLOCK, 0) // opening a pipe waits for its other end
	if errors.Is(err, unix.ENXIO) {
		return nil, fmt.Errorf("open %s: %w", name, errNoFile) // a pipe that nobody reads, or a socket
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("open %s: %w", name, errNoFile)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

var errNoFile = errors.New("it is no regular file: remove it")

// MoveAside gives a file a name that ends in suffix, and in a number from the second on:
// things.json.unreadable, things.json.unreadable.2. It gives the new name.
func MoveAside(name, suffix string) (string, error) {
	aside := name + suffix
	for i := 2; i <= asideMost; i++ {
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		}
		aside = fmt.Sprintf("%s%s.%d", name, suffix, i)
	}
	return aside, os.Rename(name, aside)
}

// Read hands a file's contents, of at most so many bytes, to take, which takes over all
// or, with an error, nothing. A file that is not there is no error, and take is not
// called.
func Read(name string, most int64, take func([]byte) error) error {
	f, err := Open(name, os.O_RDONLY)
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
	aside, moved := MoveAside(name, Aside)
	if moved != nil {
		return fmt.Errorf("read %s: %w (it cannot be moved aside, and is written anew: %w)", name, err, moved)
	}
	return fmt.Errorf("read %s: %w (it is now %s)", name, err, aside)
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
