package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// broken is one answer that no viewer should have got, with all that is known of it.
type broken struct {
	Reasons []string `json:"reasons"`
	Words   []string `json:"words"`
	Seed    uint64   `json:"seed"`
	// At is seconds since the start, when the request began; Took is until its end.
	At     float64     `json:"at_s"`
	Took   float64     `json:"took_s"`
	Viewer int         `json:"viewer"`
	Method string      `json:"method"`
	Target string      `json:"target"`
	File   string      `json:"file"`
	Sent   http.Header `json:"sent"`
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Error  string      `json:"error,omitempty"`
	Body   string      `json:"body_file,omitempty"`
	Faults []event     `json:"faults_before"`
}

// maxBroken bounds what is kept whole; all are counted.
const maxBroken = 50

// recorder counts what the viewers see.
type recorder struct {
	seed    uint64
	history *history
	// evidence is the folder for bodies of broken answers.
	evidence string
	// first is closed when the first broken answer is noted.
	first chan struct{}

	mu       sync.Mutex
	kinds    map[string]int
	ways     map[string]int
	statuses map[int]int
	outcomes map[outcome]int
	reasons  map[reason]int
	broken   []broken
	count    int
	cut      int
	repeated int // after a cut, until the answer was whole
	excluded int
	problems []string
	unknown  int // parts that nothing could be held against
	struck   map[string]int
	shares   []share
}

// share counts answers to clients that take WebP, in one slice of the time.
type share struct {
	At       float64 `json:"at_s"`
	Answers  int     `json:"answers"`
	Variants int     `json:"variants"`
}

// sliceLength is the step in which the share of variants is told.
const sliceLength = 5 * time.Second

func newRecorder(seed uint64, h *history, evidence string) *recorder {
	return &recorder{
		seed: seed, history: h, evidence: evidence, first: make(chan struct{}),
		kinds: map[string]int{}, ways: map[string]int{}, statuses: map[int]int{}, outcomes: map[outcome]int{}, reasons: map[reason]int{},
		struck: map[string]int{},
	}
}

// kindOf names what was asked for.
func (q request) kindOf() string {
	kind := strings.ToLower(q.method)
	switch {
	case q.private:
		kind = "personal"
	case q.missing:
		kind = "missing"
	case q.part != "":
		kind = "range"
	case len(q.tags) > 0:
		kind = "conditional"
	}
	return kind
}

// wayOf names the way on which an answer came.
func wayOf(a *answer) string {
	at, _, _ := strings.Cut(a.header.Get("X-Cache"), " ")
	if a.request.direct {
		at = "not asked"
	}
	from := "origin"
	if did := a.header.Get("X-Karui"); did != "" {
		from = "karui " + did
	} else if why := a.header.Get("X-Karui-Reason"); why != "" {
		from = "karui 503 " + why
	}
	return strings.ToLower(at) + ", " + from
}

// answered counts one answer.
func (r *recorder) answered(a *answer, got outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds[a.request.kindOf()]++
	r.statuses[a.status]++
	if a.status != 0 {
		r.ways[wayOf(a)]++
	}
	if got != "" {
		r.outcomes[got]++
	}
	probe := strings.HasPrefix(a.request.target, nearPath+probeID)
	if !probe && len(a.request.takes) > 0 && (got == gotOriginal || got == gotVariant) {
		i := int(a.began.Sub(r.history.start) / sliceLength)
		for len(r.shares) <= i {
			r.shares = append(r.shares, share{At: (time.Duration(len(r.shares)) * sliceLength).Seconds()})
		}
		r.shares[i].Answers++
		if got == gotVariant {
			r.shares[i].Variants++
		}
	}
}

func (r *recorder) noteCut()                      { r.note(func() { r.cut++ }) }
func (r *recorder) noteRepeat()                   { r.note(func() { r.repeated++ }) }
func (r *recorder) noteExcluded()                 { r.note(func() { r.excluded++ }) }
func (r *recorder) noteStruck(what string, n int) { r.note(func() { r.struck[what] += n }) }
func (r *recorder) noteUnknown()                  { r.note(func() { r.unknown++ }) }

func (r *recorder) note(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// problem notes what makes the run worthless or is wrong beside the answers.
func (r *recorder) problem(format string, args ...any) {
	words := fmt.Sprintf(format, args...)
	r.note(func() {
		if !slices.Contains(r.problems, words) {
			r.problems = append(r.problems, words)
		}
	})
}

// bad notes a broken answer.
func (r *recorder) bad(viewer int, a *answer, file string, found []finding) {
	b := broken{
		Seed: r.seed, At: r.history.since(a.began), Took: a.ended.Sub(a.began).Seconds(), Viewer: viewer,
		Method: a.request.method, Target: a.request.target, File: file, Sent: a.request.header(),
		Status: a.status, Header: a.header, Faults: r.history.recent(8),
	}
	if a.err != nil {
		b.Error = a.err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range found {
		if !slices.Contains(b.Reasons, string(f.reason)) {
			b.Reasons = append(b.Reasons, string(f.reason))
			r.reasons[f.reason]++
		}
		b.Words = append(b.Words, f.words)
	}
	if r.count == 0 {
		close(r.first)
	}
	r.count++
	if len(r.broken) >= maxBroken {
		return
	}
	name := filepath.Join(r.evidence, fmt.Sprintf("broken-%03d", r.count))
	b.Body = name + ".body"
	err := os.MkdirAll(r.evidence, 0o700)
	if err == nil {
		err = os.WriteFile(b.Body, a.body, 0o600)
	}
	if err != nil {
		b.Body = "not saved: " + err.Error()
	}
	r.broken = append(r.broken, b)
	if text, err := json.MarshalIndent(b, "", "  "); err == nil {
		_ = os.WriteFile(name+".json", text, 0o600) // it is in the report, too
	}
}

// brokenSoFar counts the broken answers.
func (r *recorder) brokenSoFar() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}
