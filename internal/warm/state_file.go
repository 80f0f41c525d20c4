package warm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"karui/internal/statefile"
)

// The state file is one JSON value a line, so that neither reading nor writing needs
// all of it in memory: the head, then every image with the forms in which it is
// settled, in the order of their numbers, then the pages with the numbers of their
// images.

// stateHead is the first line.
type stateHead struct {
	Version int      `json:"karui_warm"`
	Site    string   `json:"site"`
	Sources []string `json:"sources"`
}

// stateLine is any other line: an image or a page.
type stateLine struct {
	Image string           `json:"i,omitempty"`
	Done  map[string]int64 `json:"done,omitempty"`
	Page  string           `json:"p,omitempty"`
	Read  int64            `json:"read,omitempty"`
	Has   []uint32         `json:"has,omitempty"`
}

// headMark is what every version of the file begins with.
const headMark = `{"karui_warm":`

// maxLine bounds one line, in bytes: a page with its images.
const maxLine = 1 << 20

// maxForms bounds the names of forms in a file; there are fewer formats.
const maxForms = 16

// load takes over what the file holds.
func (s *State) load(anew bool) error {
	f, err := os.Open(s.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the state file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open the state file: %w", err)
	}
	in := bufio.NewReader(f)
	mark, err := in.Peek(len(headMark))
	ours := bytes.Equal(mark, []byte(headMark)) || filepath.Base(s.file) == s.head.name()
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("read the state file %s: %w", s.file, err)
	case !ours || !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a state file of karui warm: name another one with --state, or remove it", s.file)
	case info.Size() > s.most:
		return s.aside(fmt.Errorf("it is over %d bytes", s.most))
	}
	lines := bufio.NewScanner(io.LimitReader(in, s.most))
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var head stateHead
	lines.Scan()
	switch err := json.Unmarshal(lines.Bytes(), &head); {
	case lines.Err() != nil || err != nil:
		return s.aside(errors.Join(lines.Err(), err))
	case head.Version != stateVersion:
		return s.aside(fmt.Errorf("it is of version %d, and not %d", head.Version, stateVersion))
	case head.Site != s.head.Site || !slices.Equal(head.Sources, s.head.Sources):
		return fmt.Errorf("%s is the state of another work (site %s: %s): name another file with --state, or remove it",
			s.file, head.Site, strings.Join(head.Sources, ", "))
	case anew:
		s.dirty = true
		return nil
	}
	for lines.Scan() {
		if err := s.takeOver(lines.Bytes()); err != nil {
			return s.aside(err)
		}
	}
	if err := lines.Err(); err != nil {
		return s.aside(err)
	}
	s.dirty = false
	return nil
}

// takeOver reads one line.
func (s *State) takeOver(b []byte) error {
	var l stateLine
	if err := json.Unmarshal(b, &l); err != nil {
		return err
	}
	switch {
	case l.Page != "":
		for _, n := range l.Has {
			if int64(n) >= int64(len(s.targets)) {
				return fmt.Errorf("page %s has image %d of %d", cut(l.Page, 200), n, len(s.targets))
			}
		}
		s.keep(l.Page, statePage{l.Read, l.Has})
	case l.Image != "":
		if _, known := s.index[l.Image]; known {
			return fmt.Errorf("image %s is there twice", cut(l.Image, 200))
		}
		n := s.number(l.Image)
		for form, at := range l.Done {
			if len(s.done) >= maxForms && s.done[form] == nil {
				return fmt.Errorf("it has more than %d formats", maxForms)
			}
			s.settleAt(n, form, at)
		}
	default:
		return errors.New("it has a line that is neither an image nor a page")
	}
	return nil
}

// aside moves a file away that cannot be taken over, and begins anew.
func (s *State) aside(why error) error {
	fresh := newState(s.head.Site, nil)
	s.targets, s.index, s.done, s.pages, s.pageBytes, s.named = nil, fresh.index, fresh.done, fresh.pages, 0, 0
	if err := os.Rename(s.file, s.file+statefile.Aside); err != nil {
		return fmt.Errorf("the state file cannot be read (%w), nor moved aside: %w", why, err)
	}
	s.moved = fmt.Sprintf("the state file cannot be read, so that this run begins anew: %v (it is now %s)", why, s.file+statefile.Aside)
	return nil
}

// Save writes the file anew if anything changed. It is whole at any time: the old one
// or the new one. What would be too large to be read again is written without its
// pages.
func (s *State) Save() error {
	if !s.dirty || s.file == "" {
		return nil
	}
	err := s.write(s.pages)
	if errors.Is(err, errTooLarge) {
		err = s.write(nil)
	}
	if err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	s.dirty = false
	return nil
}

var errTooLarge = errors.New("it would be too large to be read again")

func (s *State) write(pages map[string]statePage) error {
	file, err := renameio.NewPendingFile(s.file, renameio.WithPermissions(0o600))
	if err != nil {
		return err
	}
	defer func() { _ = file.Cleanup() }() // nothing is left of it once it was put in place
	out := &bounded{w: bufio.NewWriterSize(file, 256<<10), left: s.most}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := s.encode(e, pages); err != nil {
		return err
	}
	if err := out.w.Flush(); err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}

func (s *State) encode(e *json.Encoder, pages map[string]statePage) error {
	if err := e.Encode(s.head); err != nil {
		return err
	}
	// Images that no page has any more and that are not done are left out.
	used := make([]bool, len(s.targets))
	for _, p := range pages {
		for _, n := range p.images {
			used[n] = true
		}
	}
	number, next := make([]uint32, len(s.targets)), uint32(0)
	for n, target := range s.targets {
		l := stateLine{Image: target}
		for form, at := range s.done {
			if n < len(at) && at[n] != 0 {
				if l.Done == nil {
					l.Done = map[string]int64{}
				}
				l.Done[form] = at[n]
			}
		}
		if l.Done == nil && !used[n] {
			continue
		}
		number[n] = next
		next++
		if err := e.Encode(l); err != nil {
			return err
		}
	}
	for _, url := range slices.Sorted(maps.Keys(pages)) {
		p := pages[url]
		l := stateLine{Page: url, Read: p.read, Has: make([]uint32, len(p.images))}
		for i, n := range p.images {
			l.Has[i] = number[n]
		}
		if err := e.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// bounded refuses what is beyond so many bytes.
type bounded struct {
	w    *bufio.Writer
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errTooLarge
	}
	return b.w.Write(p)
}
