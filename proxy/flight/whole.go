package flight

import (
	"context"
	"fmt"
)

// complete waits for the end of the body and gives it in one piece: without a
// copy if it lies so in memory.
func (s *spool) complete(ctx context.Context, most int64) ([]byte, error) {
	for {
		s.mu.Lock()
		size := max(s.size, s.declared)
		done, err, paced := s.done, s.err, s.paced
		wait := s.more()
		s.mu.Unlock()
		switch {
		case done && err != nil:
			return nil, err
		case paced:
			return nil, ErrNotKept
		case size > most:
			return nil, fmt.Errorf("%w: %d bytes, %d are taken", ErrTooLarge, size, most)
		case done:
			return s.assembled(ctx)
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
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
		return whole, nil
	}
	charge := min(size, s.store.assemble)
	if err := s.store.assembly.Acquire(ctx, charge); err != nil {
		return nil, context.Cause(ctx)
	}
	whole = make([]byte, size)
	if err := s.copyAll(whole); err != nil {
		s.store.assembly.Release(charge)
		return nil, err
	}
	s.mu.Lock()
	s.whole, s.charged = whole, charge
	s.mu.Unlock()
	return whole, nil
}

// forgetWhole gives the memory of assembled back. The lock is held.
func (s *spool) forgetWhole() {
	if s.whole != nil {
		s.whole = nil
		s.store.assembly.Release(s.charged)
		s.charged = 0
	}
}
