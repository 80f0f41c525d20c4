// Package store keeps on disk what the watchdog must not forget: each site's
// state, the audit log, the documents before and after each change, and the
// locks.
//
// Guaranteed: a state file is the old one or the new one, whole, whatever happens
// in between. One that cannot be read is kept aside, and the site begins anew with
// the distribution as the truth. The audit log is only ever appended to. One
// process at a time holds a site's lock; a process that dies lets go of it.
//
// Not guaranteed: locks between machines. The directory belongs to one.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"karui/watchdog/event"
	"karui/watchdog/machine"
)

// version is of the state files' form.
const version = 1

// maxState bounds what is read of a state file.
const maxState = 16 << 20

// Store is a state directory.
type Store struct{ dir string }

// At is a directory as it is, for those who only look, and for those who have to
// go on without one that can be written to. It touches nothing.
func At(dir string) *Store { return &Store{dir: dir} }

// Open makes the directory if need be and checks that it can be written to.
func Open(dir string) (*Store, error) {
	for _, d := range []string{dir, filepath.Join(dir, "sites")} {
		if err := makeDir(d); err != nil {
			return nil, fmt.Errorf("state_dir %s cannot be made: %w", dir, err)
		}
	}
	probe, err := os.CreateTemp(dir, ".writable-")
	if err != nil {
		return nil, fmt.Errorf("state_dir %s cannot be written to: %w", dir, err)
	}
	probe.Close()
	os.Remove(probe.Name())
	return At(dir), nil
}

// Outbox is the directory for mails that wait.
func (s *Store) Outbox() string { return filepath.Join(s.dir, "outbox") }

// Site is the part of the store that belongs to a site. The id has the form of
// settings (letters, digits, dots, dashes, underscores).
func (s *Store) Site(id string) *Site {
	// Ids differ in more than case, but a file system may not.
	return &Site{store: s, id: id, dir: filepath.Join(s.dir, "sites", strings.ToLower(id))}
}

// Site keeps what belongs to one site.
type Site struct {
	store *Store
	id    string
	dir   string
}

// Record is what a site's state file holds.
type Record struct {
	Version int `json:"version"`
	// Target is the distribution, group and origins that State is about.
	Target string        `json:"target"`
	State  machine.State `json:"state"`
	// Pending are events that are not known to be in the outbox yet.
	Pending []event.Event `json:"pending,omitempty"`
	// Deploying is a change that has not been seen at the whole edge yet.
	Deploying *Deploying `json:"deploying,omitempty"`
	// Last is the last round.
	Last *Round `json:"last,omitempty"`
}

// Deploying is a change on its way to the edge.
type Deploying struct {
	Order event.Order `json:"order"`
	ETag  string      `json:"etag"`
	Since time.Time   `json:"since"`
	By    string      `json:"by"`
	// Invalidate tells that paths are to be invalidated once it has arrived.
	Invalidate bool `json:"invalidate,omitempty"`
}

// Round is what a round found, for status.
type Round struct {
	At       time.Time       `json:"at"`
	Took     time.Duration   `json:"took"`
	Verdict  machine.Verdict `json:"verdict"`
	Probes   []event.Probe   `json:"probes,omitempty"`
	Origin   *event.Probe    `json:"origin,omitempty"`
	Controls []event.Probe   `json:"controls,omitempty"`
	ETag     string          `json:"etag,omitempty"`
	// OrderError is why the order could not be read; empty if it was, or was not
	// asked for.
	OrderError string `json:"order_error,omitempty"`
	// OrderHint is what to do about it.
	OrderHint string `json:"order_hint,omitempty"`
}

func (s *Site) path() string { return filepath.Join(s.dir, "state.json") }

// Load reads the site's record. A target other than the recorded one begins
// anew. note says in words what was not as it should be, empty for nothing.
func (s *Site) Load(target string) (rec Record, note string, err error) {
	fresh := Record{Version: version, Target: target}
	data, err := readBounded(s.path(), maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, "", nil
	}
	if err != nil {
		return fresh, "", fmt.Errorf("read state of %s: %w", s.id, err)
	}
	if err := json.Unmarshal(data, &rec); err != nil || rec.Version != version {
		aside := s.path() + ".broken"
		why := fmt.Sprintf("it has version %d, this program knows %d", rec.Version, version)
		if err != nil {
			why = err.Error()
		}
		if err := os.Rename(s.path(), aside); err != nil {
			return fresh, "", fmt.Errorf("set broken state of %s aside: %w", s.id, err)
		}
		return fresh, fmt.Sprintf("the state file cannot be used (%s); it is kept as %s, and the distribution is taken as the truth", why, aside), nil
	}
	if rec.Target != target {
		// Mails about the former target still have to go out.
		fresh.Pending = rec.Pending
		return fresh, fmt.Sprintf("the state was about %s and now the site is %s; it begins anew", rec.Target, target), nil
	}
	return rec, "", nil
}

// Peek reads the record as Load does, without setting anything aside, for those
// who only look. A record about another target is as none.
func (s *Site) Peek(target string) (Record, error) {
	var rec Record
	data, err := readBounded(s.path(), maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &rec)
	}
	if err != nil {
		return Record{}, fmt.Errorf("read state of %s: %w", s.id, err)
	}
	if rec.Version != version || rec.Target != target {
		return Record{}, nil
	}
	return rec, nil
}

// Save writes the record; when it returns nil, a crash cannot undo it.
func (s *Site) Save(rec Record) error {
	rec.Version = version
	data, err := json.MarshalIndent(rec, "", " ")
	if err != nil {
		return fmt.Errorf("write state of %s: %w", s.id, err)
	}
	if err := s.make(); err != nil {
		return err
	}
	if err := replace(s.path(), data); err != nil {
		return fmt.Errorf("write state of %s: %w", s.id, err)
	}
	return nil
}

func (s *Site) make() error {
	if err := makeDir(s.dir); err != nil {
		return fmt.Errorf("make directory of %s: %w", s.id, err)
	}
	return nil
}

// replace writes a file atomically, and durably: the rename too.
func replace(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := adopt(f.Name()); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no plain file but %s", path, info.Mode()) // a pipe would be waited at
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, info.Size(), limit)
	}
	return os.ReadFile(path)
}

// maxDocuments is how many documents of a site are kept: the last 50 changes.
const maxDocuments = 100

// KeepDocuments keeps the XML before and after a change and returns the files'
// names. Older ones go.
func (s *Site) KeepDocuments(id string, before, after []byte) ([]string, error) {
	dir := filepath.Join(s.dir, "documents")
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("keep documents of %s: %w", s.id, err)
	}
	var names []string
	for _, d := range []struct {
		what string
		xml  []byte
	}{{"before", before}, {"after", after}} {
		if d.xml == nil {
			continue
		}
		name := filepath.Join(dir, id+"-"+d.what+".xml")
		if err := replace(name, d.xml); err != nil {
			return names, fmt.Errorf("keep documents of %s: %w", s.id, err)
		}
		names = append(names, name)
	}
	// IDs begin with the time, so that names sort by age.
	entries, err := os.ReadDir(dir)
	if err != nil {
		return names, fmt.Errorf("keep documents of %s: %w", s.id, err)
	}
	kept := slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return filepath.Ext(e.Name()) != ".xml" })
	for i := range max(len(kept)-maxDocuments, 0) {
		os.Remove(filepath.Join(dir, kept[i].Name()))
	}
	return names, nil
}
