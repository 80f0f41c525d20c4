package server

import (
	"io"
	"log/slog"

	"karui/internal/logging"
)

// newLogger writes JSON lines. The level can be changed while it is in use.
func newLogger(w io.Writer, level *slog.LevelVar) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// levelOf gives the level of a valid configuration.
func levelOf(c logging.Config) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return slog.LevelInfo
	}
	return level
}
