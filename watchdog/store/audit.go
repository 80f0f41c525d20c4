package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"karui/watchdog/event"
)

// Entry is one line of the audit log.
type Entry struct {
	Time   time.Time `json:"time"`
	Site   string    `json:"site"`
	Action string    `json:"action"` // "degrade", "restore", "deployed", "invalidate", ...
	// By is auto, person or rehearsal; Person their name.
	By     event.Actor `json:"by"`
	Person string      `json:"person,omitempty"`
	Why    string      `json:"why,omitempty"`
	// Event is the ID under which it is told.
	Event      string       `json:"event,omitempty"`
	Was        event.Order  `json:"was,omitempty"`
	Want       event.Order  `json:"want,omitempty"`
	Changed    bool         `json:"changed"`
	ETagBefore string       `json:"etag_before,omitempty"`
	ETagAfter  string       `json:"etag_after,omitempty"`
	As         string       `json:"as,omitempty"` // the role
	Calls      []event.Call `json:"calls,omitempty"`
	Documents  []string     `json:"documents,omitempty"`
	// Difference is where what was read back differs from what was sent.
	Difference string `json:"difference,omitempty"`
	Details    string `json:"details,omitempty"`
	Outcome    string `json:"outcome"` // "ok" or the error in words
}

// AuditFile is the log's path.
func (s *Store) AuditFile() string { return filepath.Join(s.dir, "audit.jsonl") }

// Audit appends one line. Lines of several processes do not mix: each is one
// write to a file that is only appended to.
func (s *Store) Audit(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	f, err := os.OpenFile(s.AuditFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	err = adopt(s.AuditFile())
	if _, writing := f.Write(append(line, '\n')); writing != nil {
		err = writing
	}
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

// Audit appends a line about the site.
func (s *Site) Audit(e Entry) error {
	e.Site = s.id
	return s.store.Audit(e)
}
