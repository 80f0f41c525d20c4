package cache

import (
	"errors"
	"syscall"
	"time"
)

// retryAfter is how long a volume that failed is left alone before the next try.
const retryAfter = time.Minute

// verdict is what an error says about the volume as a whole.
type verdict uint8

const (
	// unharmed: the error concerns one operation (no space, no descriptor, one file).
	unharmed verdict = iota
	// unwritable: nothing can be written, what is there can be read.
	unwritable
	// failed: the device or the file system gives errors.
	failed
)

// judge looks at an error from a read or a write.
func judge(err error, write bool) verdict {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return unharmed
	}
	switch no {
	case syscall.EIO, syscall.ENXIO, syscall.ENODEV, syscall.EREMOTEIO, syscall.ESTALE,
		syscall.EUCLEAN,                                        // "structure needs cleaning": ext4, xfs and btrfs found themselves corrupt
		syscall.EBADMSG,                                        // xfs: checksum of a metadata block
		syscall.ENOTCONN, syscall.ESHUTDOWN, syscall.ETIMEDOUT: // FUSE and network file systems
		return failed
	case syscall.EROFS, syscall.EACCES, syscall.EPERM:
		if write {
			return unwritable
		}
	}
	return unharmed
}

// noSpace is a disk or a quota that is full.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// health is the state of a volume. It only ever gets worse by a fault, and well
// only by a successful try.
type health struct {
	state State
	cause error
	retry time.Time // when to try next; meaningless while the state is ok
}

// fault notes an error; true if it made the state worse.
func (h *health) fault(err error, write bool, now time.Time) bool {
	to := h.state
	switch judge(err, write) {
	case failed:
		to = StateOut
	case unwritable:
		if h.state == StateOK {
			to = StateReadOnly
		}
	case unharmed:
	}
	if to == h.state {
		return false
	}
	h.state, h.cause, h.retry = to, err, now.Add(retryAfter)
	return true
}

// due says whether to try now, and puts the next try off.
func (h *health) due(now time.Time) bool {
	if h.state == StateOK || now.Before(h.retry) {
		return false
	}
	h.retry = now.Add(retryAfter)
	return true
}

func (h *health) well() { h.state, h.cause = StateOK, nil }
