package flight

import (
	"errors"
	"fmt"
)

var (
	// ErrNotShared tells a viewer that the answer it waited for belongs to another
	// one alone: it has to fetch for itself, see [Group.Alone].
	ErrNotShared = errors.New("flight: the answer is not shareable: fetch it separately")
	// ErrNotKept means that the body is not there as a whole: it belongs to one
	// viewer, or there was neither memory nor disk for it.
	ErrNotKept = errors.New("flight: the body is not kept")
	// ErrTooLarge means that the body is larger than the caller of Whole takes.
	ErrTooLarge = errors.New("flight: the body is too large")
	// ErrTooSlow cuts a viewer that held the others up while the body could be
	// put nowhere.
	ErrTooSlow = errors.New("flight: the viewer read too slowly while neither memory nor disk was free")
	// ErrClosed means that the group or the handle is closed.
	ErrClosed = errors.New("flight: closed")
	// ErrStored is for Fetch to return when a second look into the cache finds
	// what was missing at the first. Without that look a viewer that looked just
	// before an entry was stored, and joined just after its flight ended, would
	// cause a second request. All viewers of the flight get it from Head and look
	// into the cache again.
	ErrStored = errors.New("flight: stored meanwhile: look into the cache again")

	errAbandoned = errors.New("flight: every viewer left and the body could not be kept")
)

// PanicError is a panic of Fetch or Shareable.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error. It leaves the stack out, which is for a log.
func (e *PanicError) Error() string { return fmt.Sprintf("flight: panic in a fetch: %v", e.Value) }
