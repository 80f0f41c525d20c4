package cache

import "errors"

// What Open, Put, PutFrom, Update and Delete return, wrapped with the particulars.
var (
	// ErrLocked: another process uses the volume's folder.
	ErrLocked = errors.New("in use by another process")
	// ErrSuperseded: something fetched later is stored, or the key was deleted by
	// a later fetch; nothing was changed. It is no failure.
	ErrSuperseded = errors.New("superseded by a later fetch")
	// ErrGone: there is no entry to update.
	ErrGone = errors.New("no such entry")
	// ErrTooLarge: the key, the attributes or the body are over what is ever kept.
	ErrTooLarge = errors.New("too large to be cached")
	// ErrUnavailable: no volume can be written just now, or too much waits for the one
	// that it would go to; volumes are tried again by themselves.
	ErrUnavailable = errors.New("volume unavailable")
	// ErrClosed: the cache was closed.
	ErrClosed = errors.New("cache is closed")
)

// errBad marks a file that is not a whole entry of its key.
var errBad = errors.New("not a whole entry")
