// Package logging makes the logger of a process: JSON, one line a record, in UTC,
// durations as text.
//
// It does not know what is secret: callers never log request targets with their
// query, header values or tokens.
package logging

import (
	"io"
	"log/slog"
	"time"
)

// New makes a logger that writes to w what is at least as important as level.
// A reload sets the level anew (see Config.SlogLevel); the logger stays.
func New(w io.Writer, level *slog.LevelVar) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: plain}))
}

// SlogLevel gives Level in slog's terms; a word that Validate refuses is info.
func (c Config) SlogLevel() slog.Level {
	switch c.Level {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}

// plain writes values as people and log stores read them.
func plain(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindTime:
		a.Value = slog.StringValue(a.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z"))
	case slog.KindDuration:
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Microsecond).String())
	}
	return a
}
