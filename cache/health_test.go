package cache

import (
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"
)

func TestHealth(t *testing.T) {
	h := health{state: StateOK}
	step := func(err error, write bool, want State, worse bool) {
		t.Helper()
		if got := h.fault(fmt.Errorf("write: %w", err), write, base); got != worse || h.state != want {
			t.Fatalf("%v (write %v): state %s, worse %v; want %s, %v", err, write, h.state, got, want, worse)
		}
	}
	step(syscall.ENOSPC, true, StateOK, false)
	step(syscall.EMFILE, true, StateOK, false)
	step(io.ErrUnexpectedEOF, true, StateOK, false)
	step(syscall.EACCES, false, StateOK, false) // one file that cannot be read
	step(syscall.EROFS, true, StateReadOnly, true)
	step(syscall.EROFS, true, StateReadOnly, false)
	step(syscall.EIO, false, StateOut, true)
	step(syscall.EROFS, true, StateOut, false) // never better by an error
	step(syscall.EIO, true, StateOut, false)
	if h.due(base.Add(retryAfter - 1)) {
		t.Error("tried too early")
	}
	if !h.due(base.Add(retryAfter)) {
		t.Error("not tried after a minute")
	}
	if h.due(base.Add(retryAfter + time.Second)) {
		t.Error("tried again at once")
	}
	if !h.due(base.Add(2 * retryAfter)) {
		t.Error("not tried after another minute")
	}
	h.well()
	if h.state != StateOK || h.due(base.Add(time.Hour)) {
		t.Error("well, and still tried")
	}
}

func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		u            usage
		percent      float64
		bytes, files int64 // to go at high 90, low 85
	}{
		"empty":                  {usage{}, 0, 0, 0},
		"under":                  {usage{bytesUsed: 89, bytesFree: 11}, 89, 0, 0},
		"at high":                {usage{bytesUsed: 900, bytesFree: 100}, 90, 50, 0},
		"nothing available":      {usage{bytesUsed: 900, bytesFree: -20}, 100, 135, 0},
		"reserved for root":      {usage{bytesUsed: 90, bytesFree: 5}, 100 * 90.0 / 95, 10, 0},
		"inodes":                 {usage{bytesUsed: 1, bytesFree: 99, filesUsed: 95, filesFree: 5}, 95, 0, 10},
		"no count of the inodes": {usage{bytesUsed: 50, bytesFree: 50}, 50, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.u.percent(); got != c.percent {
				t.Errorf("used %v %%, want %v", got, c.percent)
			}
			if b, f := c.u.excess(90, 85); b != c.bytes || f != c.files {
				t.Errorf("%d bytes and %d files to go, want %d and %d", b, f, c.bytes, c.files)
			}
		})
	}
}
