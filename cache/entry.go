package cache

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
)

// Entry is what was stored under a key at one moment. It never changes. Its
// fields must not be written to. Its methods are for one goroutine at a time, Bytes
// apart. It must be closed; Key, Meta and Size stay readable after that.
type Entry struct {
	// Key is the key that was asked for.
	Key Key
	// Meta is what was stored with the body. The attributes may be shared with
	// other readers and must not be written to.
	Meta Meta

	size   int64
	sum    uint64 // of the body: with the size, what tells two bodies apart
	bytes  []byte // the body, when in memory
	inRAM  bool
	file   file // else the open file, nil once closed
	offset int64
	volume *volume // whose file it is
	hash   hash
}

// Size is the length of the body in bytes.
func (e *Entry) Size() int64 { return e.size }

// Bytes gives the body when it is in memory. It is shared and must not be written to.
func (e *Entry) Bytes() ([]byte, bool) { return e.bytes, e.inRAM }

// File gives the open file and where the body begins in it, for a body that is
// not in memory; the body goes on to the file's end. It belongs to the entry:
// Close closes it. WriteTo is the short way to sendfile.
func (e *Entry) File() (f *os.File, offset int64, ok bool) {
	f, ok = e.file.(*os.File)
	return f, e.offset, ok
}

// Reader gives a reader of the body that stands at its beginning, as
// http.ServeContent wants it. It is valid until the entry is closed.
func (e *Entry) Reader() io.ReadSeeker {
	if e.inRAM {
		return bytes.NewReader(e.bytes)
	}
	if e.file == nil {
		return bytes.NewReader(nil)
	}
	return io.NewSectionReader(reporting{e.file, e}, e.offset, e.size)
}

// WriteTo writes the whole body. To an http.ResponseWriter whose Content-Length
// is set, or to a *net.TCPConn, a body on disk goes by sendfile, without passing
// through this process's memory. The error is the writer's or the file's; less
// than Size bytes without an error does not happen.
func (e *Entry) WriteTo(w io.Writer) (int64, error) {
	if e.inRAM {
		n, err := w.Write(e.bytes)
		return int64(n), err
	}
	if e.file == nil {
		return 0, os.ErrClosed
	}
	f, ok := e.file.(*os.File)
	if !ok {
		return io.Copy(w, e.Reader())
	}
	if _, err := f.Seek(e.offset, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.Copy(w, &io.LimitedReader{R: f, N: e.size})
	if err == nil && n < e.size {
		err = io.ErrUnexpectedEOF
	}
	if errors.Is(err, syscall.EIO) { // of the file: a connection has other errors
		e.failed(err)
	}
	return n, err
}

// failed tells the volume about a disk that fails under an open entry.
func (e *Entry) failed(err error) {
	e.volume.fault(err, false)
	e.volume.ask(chore{what: choreBury, hash: e.hash})
}

// Close gives the file back. The second call does nothing.
func (e *Entry) Close() error {
	if e.file == nil {
		return nil
	}
	err := e.file.Close()
	e.file = nil
	return err
}

// reporting is a file whose errors come to its volume's ears.
type reporting struct {
	io.ReaderAt
	entry *Entry
}

func (r reporting) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	if judge(err, false) == failed {
		r.entry.failed(err)
	}
	return n, err
}
