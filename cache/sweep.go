package cache

import (
	"encoding/binary"
	"strconv"

	"golang.org/x/sys/unix"
)

// sweep removes, during a load, the files that a program with another file format
// wrote. Each of them would be a miss when it is asked for and be removed then; but
// nobody may ever ask, and until then they take the room of files that are of use.
//
// A folder is swept once: its file `format` then holds the version, and the next
// load need not open a single file.
type sweep struct {
	v       *volume
	needed  bool
	removed int
}

func newSweep(v *volume) *sweep {
	// Whatever cannot be read is as good as another version.
	return &sweep{v: v, needed: v.readNote("format", 64) != formatText(formatVersion)}
}

func formatText(version uint32) string { return strconv.FormatUint(uint64(version), 10) + "\n" }

// foreign tells whether a file is surely not of this version. One that cannot be
// read now is left for its next read to judge.
func (s *sweep) foreign(name string) bool {
	if !s.needed {
		return false
	}
	f, err := s.v.files.Open(name, unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	var b [12]byte
	if err := readFull(f, b[:], 0); err != nil {
		return false
	}
	return string(b[:8]) != magic || binary.LittleEndian.Uint32(b[8:]) != formatVersion
}

// end notes that every file has been looked at. Without the note, the next load
// looks again; that is all, so errors are left.
func (s *sweep) end() {
	if !s.needed || s.v.working() != nil {
		return
	}
	if s.removed > 0 {
		s.v.log.Info("cache files of another format version have been removed", "files", s.removed)
	}
	s.v.note("format", formatText(formatVersion))
}
