package origin

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"karui/proxy/origin/retry"
)

// peekBytes is what a first read of a body takes: enough that what follows is
// not one more small write to a viewer, and little beside what a connection holds.
const peekBytes = 2 << 10

// watched is a response's body that tells its place how the first read ended.
type watched struct {
	inner  io.ReadCloser
	ctx    context.Context // the caller's
	places *Places
	at     spot

	told   atomic.Bool
	close  sync.Once
	peeked []byte
	err    error // of the read that gave peeked
}

// peek reads the first bytes, and fails if there are none and should be.
func (b *watched) peek() error {
	buf := make([]byte, peekBytes)
	var n int
	var err error
	for n == 0 && err == nil {
		n, err = b.inner.Read(buf)
	}
	b.first(err, n)
	b.peeked, b.err = buf[:n], err
	if n == 0 && !isEnd(err) {
		return err
	}
	return nil
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) }

// first tells the place about the first read.
func (b *watched) first(err error, n int) {
	switch {
	case n > 0 || isEnd(err):
		b.tell(retry.Answered)
	case err != nil:
		fate := fateOf(b.ctx, err)
		b.places.failed(b.at, fate, why(err))
		b.tell(fate)
	}
}

// tell records the fate of the try, once.
func (b *watched) tell(f retry.Fate) {
	if b.told.CompareAndSwap(false, true) {
		b.places.record(b.at, f)
	}
}

func (b *watched) Read(p []byte) (int, error) {
	if len(b.peeked) > 0 {
		n := copy(p, b.peeked)
		if b.peeked = b.peeked[n:]; len(b.peeked) == 0 {
			b.peeked = nil
		}
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.inner.Read(p)
	if !b.told.Load() {
		b.first(err, n)
	}
	return n, err
}

func (b *watched) Close() error {
	var err error
	b.close.Do(func() {
		err = b.inner.Close()
		// Nobody waited for the first byte, so nothing is known but the head.
		b.tell(retry.Answered)
		b.places.places[b.at.place].active.Add(-1)
	})
	return err
}
