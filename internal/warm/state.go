package warm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// stateVersion is the form of the state file.
const stateVersion = 1

// maxState bounds the file that is read, in bytes; what a run writes at the limit of
// images is smaller.
const maxState = 512 << 20

// State is the memory of one job, a site with its sources, in a file. It is not for
// several goroutines.
type State struct {
	file    string
	lock    *os.File
	content stateFile
	dirty   bool
}

// stateFile is what the file holds.
type stateFile struct {
	Version int      `json:"karui_warm"`
	Site    string   `json:"site"`
	Sources []string `json:"sources"`
	// Pages are those that were read, with the images on them.
	Pages map[string]statePage `json:"pages,omitempty"`
	// Done says when an image was settled in a form, in seconds of Unix time.
	Done map[string]map[string]int64 `json:"done"`
}

type statePage struct {
	Read   int64    `json:"read"`
	Images []string `json:"images"`
}

// StateName is the usual name of a job's state file.
func StateName(site string, sources []Source) string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, strings.Join(names(sources), "\n")) // it cannot fail
	return site + "-" + strconv.FormatUint(h.Sum64(), 36) + ".json"
}

func names(sources []Source) []string {
	var out []string
	for _, s := range sources {
		name := s.String()
		if _, fetched := s.url(); !fetched && s.Name != "-" {
			if whole, err := filepath.Abs(s.Name); err == nil {
				name = Source{s.Kind, whole}.String()
			}
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OpenState opens or begins the state of a job. With anew, what it held is forgotten.
// A file of another job, or of somebody else, is an error and left alone. Close it.
func OpenState(file, site string, sources []Source, anew bool) (*State, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the state file: %w (--state names another place)", err)
	}
	lock, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the state file: %w (--state names another place)", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("%s is in use: another karui warm is at the same work (--state names another file)", file)
	}
	s := &State{file: file, lock: lock, content: stateFile{Version: stateVersion, Site: site, Sources: names(sources), Done: map[string]map[string]int64{}}}
	if err := s.load(anew); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return s, nil
}

// Memory is a state without a file.
func Memory(site string, sources []Source) *State {
	return &State{content: stateFile{Version: stateVersion, Site: site, Sources: names(sources), Done: map[string]map[string]int64{}}}
}

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
	b, err := readAll(f, maxState)
	if err != nil {
		return fmt.Errorf("read the state file %s: %w", s.file, err)
	}
	var held stateFile
	d := json.NewDecoder(bytes.NewReader(b))
	switch err := d.Decode(&held); {
	case err != nil:
		return fmt.Errorf("%s is not a state file of karui warm (%w): name another one with --state, or remove it", s.file, err)
	case held.Version != stateVersion:
		return fmt.Errorf("%s is not a state file that this version reads: name another one with --state, or remove it", s.file)
	case held.Site != s.content.Site || !slices.Equal(held.Sources, s.content.Sources):
		return fmt.Errorf("%s is the state of another work (site %s: %s): name another file with --state, or remove it",
			s.file, held.Site, strings.Join(held.Sources, ", "))
	}
	if anew {
		s.dirty = true
		return nil
	}
	if held.Done == nil {
		held.Done = map[string]map[string]int64{}
	}
	s.content = held
	return nil
}

// File is where the state lies.
func (s *State) File() string { return s.file }

// Close lets go of the file. It does not save.
func (s *State) Close() error {
	if s.lock == nil {
		return nil
	}
	// The lock's file stays: who removes it may remove one that somebody just took.
	return s.lock.Close()
}

// Save writes the file anew if anything changed. It is whole at any time: the old one
// or the new one.
func (s *State) Save() error {
	if !s.dirty || s.file == "" {
		return nil
	}
	b, err := json.Marshal(s.content)
	if err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	if err := renameio.WriteFile(s.file, b, 0o600); err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	s.dirty = false
	return nil
}

// forget drops what is older: it would be asked for again, if it is still named.
func (s *State) forget(then time.Time) {
	old := then.Unix()
	for target, forms := range s.content.Done {
		maps.DeleteFunc(forms, func(_ string, at int64) bool { return at < old })
		if len(forms) == 0 {
			delete(s.content.Done, target)
			s.dirty = true
		}
	}
	maps.DeleteFunc(s.content.Pages, func(_ string, p statePage) bool { return p.Read < old })
}

// settledSince tells whether the image was settled in the form not before then.
func (s *State) settledSince(target string, form Form, then time.Time) bool {
	at, ok := s.content.Done[target][form.String()]
	return ok && at >= then.Unix()
}

// settle notes that the image is settled in the form.
func (s *State) settle(target string, form Form, now time.Time) {
	forms := s.content.Done[target]
	if forms == nil {
		forms = map[string]int64{}
		s.content.Done[target] = forms
	}
	forms[form.String()], s.dirty = now.Unix(), true
}

// pageSince gives the images of a page that was read not before then.
func (s *State) pageSince(url string, then time.Time) ([]string, bool) {
	p, ok := s.content.Pages[url]
	return p.Images, ok && p.Read >= then.Unix()
}

// readPage notes the images of a page.
func (s *State) readPage(url string, images []string, now time.Time) {
	if s.content.Pages == nil {
		s.content.Pages = map[string]statePage{}
	}
	s.content.Pages[url], s.dirty = statePage{now.Unix(), images}, true
}
