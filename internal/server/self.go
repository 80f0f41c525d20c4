package server

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"karui/internal/logging"
)

// accessLog makes the logger of the access log; nil means the same as all else.
func (s *server) accessLog() *slog.Logger {
	if s.lines == nil {
		return nil
	}
	return logging.NewAccess(s.lines)
}

// endAccessLog writes what is left of the access log, unless nobody takes it.
func (s *server) endAccessLog() {
	limited, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := s.lines.Close(limited); err != nil {
		s.log.Warn("the last lines of the access log are not written", "error", err)
	}
}

// reloads remembers how reading the configuration went.
type reloads struct {
	mu   sync.Mutex
	good bool
	at   time.Time
}

// note takes down one attempt.
func (r *reloads) note(at time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.good = err == nil; r.good {
		r.at = at
	}
}

// last tells whether the last attempt was good, and when the last good one was.
func (r *reloads) last() (good bool, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.good, r.at
}

// self is what metrics say of the process as a whole.
type self struct {
	version, compiler string
	// reloaded is whether the configuration in force is the one that was read last,
	// since when it is in force.
	reloaded bool
	since    time.Time
	// dropped counts lines of the access log that nobody took.
	dropped uint64
}

func (s *server) self() self {
	now := self{version: cmp.Or(s.options.Version, "unknown"), compiler: runtime.Version()}
	now.reloaded, now.since = s.reloaded.last()
	if s.lines != nil {
		now.dropped = s.lines.Dropped()
	}
	return now
}

func collectSelf(s self, counter, gauge send) {
	gauge(describe("build_info", "1; the labels are the versions of karui and of the Go it was built with.", "version", "go"), 1, s.version, s.compiler)
	gauge(describe("config_last_reload_successful", "1 while the configuration in force is the one that was read last."), truth(s.reloaded))
	gauge(describe("config_last_reload_success_timestamp_seconds", "When the configuration in force was read."), float64(s.since.UnixMilli())/1000)
	counter(describe("access_log_dropped_total", "Lines of the access log that were given up, since whoever takes the log was too slow."), float64(s.dropped))
}
