package flight

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
)

// complete waits for the end of the body and gives it in one piece: without a
// copy if it lies so in memory.
func (s *spool) complete(ctx context.Context, most int64) ([]byte, error) {
	if _, err := s.ended(ctx, most); err != nil {
		return nil, err
	}
	return s.assembled(ctx)
}

// section waits for the end of the body and gives a reader of it.
func (s *spool) section(ctx context.Context) (*io.SectionReader, error) {
	size, err := s.ended(ctx, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(finished{s, size}, 0, size), nil
}

// ended waits until the whole body is there, of which most bytes are taken, and
// gives its size.
func (s *spool) ended(ctx context.Context, most int64) (int64, error) {
	for {
		s.mu.Lock()
		size, done, err, paced := s.size, s.done, s.err, s.paced
		wait := s.more()
		s.mu.Unlock()
		switch expected := max(size, s.declared); {
		case done && err != nil:
			return 0, err
		case paced:
			return 0, ErrNotKept
		case expected > most:
			return 0, fmt.Errorf("%w: %d bytes, %d are taken", ErrTooLarge, expected, most)
		case done:
			return size, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// finished is a body that is whole, for io.SectionReader.
type finished struct {
	spool *spool
	size  int64
}

// ReadAt implements io.ReaderAt.
func (b finished) ReadAt(p []byte, at int64) (int, error) {
	n := max(0, min(int64(len(p)), b.size-at))
	if at < 0 || n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	if err := b.spool.copyAt(p[:n], at); err != nil {
		return 0, err
	}
	if int(n) < len(p) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// assembled gives the finished body in one piece. Bodies that have to be copied
// together wait for their turn at a part of the memory budget that spools cannot
// take, so that no two wait for one another.
func (s *spool) assembled(ctx context.Context) ([]byte, error) {
	s.assembling.Lock()
	defer s.assembling.Unlock()
	s.mu.Lock()
	size, whole := s.size, s.whole
	if whole == nil {
		whole = s.held(0, int(size))
	}
	s.mu.Unlock()
	if int64(len(whole)) == size {
		return s.fitted(whole), nil
	}
	charge := min(size, s.store.assemble)
	if err := s.store.assembly.Acquire(ctx, charge); err != nil {
		return nil, context.Cause(ctx)
	}
	whole = make([]byte, size)
	if err := s.copyAt(whole, 0); err != nil {
		s.store.assembly.Release(charge)
		return nil, err
	}
	s.mu.Lock()
	s.whole, s.charged = whole, charge
	s.mu.Unlock()
	return whole, nil
}

// fitted gives a body that lies in one piece in memory of about its own size. Who gets
// it may keep it for long, as a cache does: a small body would hold on to the whole
// chunk that it was read into, and nobody could see that from the slice.
func (s *spool) fitted(whole []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole != nil || len(s.parts) == 0 || cap(s.parts[0].data)-len(whole) <= len(whole)/8+512 {
		return whole
	}
	s.whole = bytes.Clone(whole) // a chunk's worth at most: charged with the chunk
	return s.whole
}

// forgetWhole gives the memory of assembled back. The lock is held.
func (s *spool) forgetWhole() {
	if s.whole != nil {
		s.whole = nil
		s.store.assembly.Release(s.charged)
		s.charged = 0
	}
}
