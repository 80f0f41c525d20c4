package warm

import (
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stateVersion is the form of the state file.
const stateVersion = 2

// The bounds of the state file, in bytes, and of the images of all pages together in
// it. Pages beyond them are read again by the next run. Images at the limit of a run are
// well below.
const (
	maxState   = 512 << 20
	maxPageURL = 64 << 20
	maxNamed   = 10_000_000
)

// State is the memory of one job, a site with its sources, in a file. It is not for
// several goroutines.
type State struct {
	file  string
	lock  *os.File
	head  stateHead
	dirty bool
	// moved says why the file's contents were moved aside, empty if they were not.
	moved string
	most  int64 // maxState but in tests

	// targets are the images by number, and index the number of each.
	targets []string
	index   map[string]uint32
	// done says for each form when each image was settled in it, in seconds of Unix time,
	// 0 for never.
	done map[string][]int64
	// pages are those that were read, with the images on them. Their addresses take
	// pageBytes, and they name so many images.
	pages     map[string]statePage
	pageBytes int64
	named     int
}

type statePage struct {
	read   int64
	images []uint32
}

func newState(site string, sources []Source) *State {
	return &State{
		head: stateHead{stateVersion, site, names(sources)}, most: maxState,
		index: map[string]uint32{}, done: map[string][]int64{}, pages: map[string]statePage{},
	}
}

// StateName is the usual name of a job's state file.
func StateName(site string, sources []Source) string {
	return stateHead{Site: site, Sources: names(sources)}.name()
}

func (h stateHead) name() string {
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, strings.Join(h.Sources, "\n")) // it cannot fail
	return h.Site + "-" + strconv.FormatUint(sum.Sum64(), 36) + ".json"
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
// A file of another job, or of somebody else, is an error and left alone; one of this
// job that cannot be read, as by another version, is moved aside. Close it.
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
	s := newState(site, sources)
	s.file, s.lock = file, lock
	if err := s.load(anew); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return s, nil
}

// Memory is a state without a file.
func Memory(site string, sources []Source) *State { return newState(site, sources) }

// Moved says, in a sentence, that the file could not be taken over and where it is now;
// it is empty in the usual case.
func (s *State) Moved() string { return s.moved }

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

// forget drops what is older: it would be asked for again, if it is still named.
func (s *State) forget(then time.Time) {
	old := then.Unix()
	for _, at := range s.done {
		for n, when := range at {
			if when != 0 && when < old {
				at[n], s.dirty = 0, true
			}
		}
	}
	for url, p := range s.pages {
		if p.read < old {
			s.drop(url)
		}
	}
}

// number gives the number of an image.
func (s *State) number(target string) uint32 {
	n, known := s.index[target]
	if !known {
		n = uint32(len(s.targets))
		s.targets, s.index[target] = append(s.targets, target), n
	}
	return n
}

// settledSince tells whether the image was settled in the form not before then.
func (s *State) settledSince(target string, form Form, then time.Time) bool {
	n, known := s.index[target]
	at := s.done[form.String()]
	return known && int(n) < len(at) && at[n] != 0 && at[n] >= then.Unix()
}

// settle notes that the image is settled in the form.
func (s *State) settle(target string, form Form, now time.Time) {
	s.settleAt(s.number(target), form.String(), now.Unix())
	s.dirty = true
}

func (s *State) settleAt(n uint32, form string, at int64) {
	if missing := int(n) + 1 - len(s.done[form]); missing > 0 {
		s.done[form] = append(s.done[form], make([]int64, missing)...)
	}
	s.done[form][n] = at
}

// pageSince gives the images of a page that was read not before then.
func (s *State) pageSince(url string, then time.Time) ([]string, bool) {
	p, ok := s.pages[url]
	if !ok || p.read < then.Unix() {
		return nil, false
	}
	images := make([]string, len(p.images))
	for i, n := range p.images {
		images[i] = s.targets[n]
	}
	return images, true
}

// readPage notes the images of a page, if there is room for it.
func (s *State) readPage(url string, images []string, now time.Time) {
	numbers := make([]uint32, 0, len(images))
	seen := make(map[uint32]bool, len(images))
	for _, target := range images {
		if n := s.number(target); !seen[n] {
			seen[n] = true
			numbers = append(numbers, n)
		}
	}
	s.keep(url, statePage{now.Unix(), numbers})
}

func (s *State) keep(url string, p statePage) {
	s.drop(url)
	if s.pageBytes+int64(len(url)) > maxPageURL || s.named+len(p.images) > maxNamed {
		return
	}
	s.pages[url], s.dirty = p, true
	s.pageBytes, s.named = s.pageBytes+int64(len(url)), s.named+len(p.images)
}

func (s *State) drop(url string) {
	if p, ok := s.pages[url]; ok {
		delete(s.pages, url)
		s.pageBytes, s.named, s.dirty = s.pageBytes-int64(len(url)), s.named-len(p.images), true
	}
}
