package flight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

var errBudget = errors.New("the limits of memory and of temporary files are reached")

// fill reads body into the spool until it ends, and says why it did: nil for a
// body that is whole. Called once, by the goroutine that owns the fetch.
func (s *spool) fill(ctx context.Context, body io.Reader) error {
	probe := s.store.probe()
	defer s.store.probes.Put(probe)
	var staging []byte
	for idle := 0; idle < 100; idle++ { // reads in a row that gave neither bytes nor an error
		var room []byte
		placed := true // room is part of the spool already
		switch s.state() {
		case inMemory:
			if room = s.tail(); room == nil {
				room, placed = probe[:], false
			}
		case inFile:
			if staging == nil {
				staging = make([]byte, fileBuffer)
			}
			room, placed = staging, false
		case paced:
			var err error
			if room, err = s.windowRoom(ctx); err != nil {
				return err
			}
		}
		n, err := body.Read(room)
		if n < 0 || n > len(room) {
			return fmt.Errorf("flight: a body returned %d bytes for a buffer of %d", n, len(room))
		}
		if n > 0 {
			idle = 0
			if placed {
				s.grow(n)
			} else {
				s.put(room[:n])
			}
		}
		switch {
		case err == nil:
		case err == io.EOF: //nolint:errorlint // a wrapped EOF is an error with that cause, not the end
			return nil
		default:
			return err
		}
	}
	return io.ErrNoProgress
}

type state uint8

const (
	inMemory state = iota
	inFile
	paced
)

// state says where the next bytes go. Only fill changes it.
func (s *spool) state() state {
	switch {
	case s.paced:
		return paced
	case s.file != nil:
		return inFile
	default:
		return inMemory
	}
}

// tail is the free space of the last part, nil if there is none.
func (s *spool) tail() []byte {
	if len(s.parts) == 0 {
		return nil
	}
	p := s.parts[len(s.parts)-1]
	if len(p.data) == cap(p.data) {
		return nil
	}
	return p.data[len(p.data):cap(p.data)]
}

// grow takes n bytes that were read into the tail or the window.
func (s *spool) grow(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.parts
	if s.paced {
		list = s.window
	}
	p := &list[len(list)-1]
	p.data = p.data[:len(p.data)+n]
	s.size += int64(n)
	if !s.paced {
		s.kept = s.size
	}
	s.wake()
}

// put finds a place for bytes that were read elsewhere: memory, else the file,
// else the window of a paced spool, which takes them in any case.
func (s *spool) put(data []byte) {
	if s.file == nil {
		if s.newPart(len(data)) {
			copy(s.tail(), data)
			s.grow(len(data))
			return
		}
		if err := s.spill(); err != nil {
			s.pace(err, data)
			return
		}
	}
	if err := s.write(s.file, data, s.size); err != nil {
		s.pace(err, data)
		return
	}
	s.mu.Lock()
	s.size += int64(len(data))
	s.kept = s.size
	s.wake()
	s.mu.Unlock()
}

// newPart reserves memory for at least n more bytes: all of a body whose length
// is declared, so that it lies in one piece, else a chunk.
func (s *spool) newPart(n int) bool {
	length := int64(firstChunk)
	switch {
	case s.declared >= int64(n) && s.size == 0:
		length = s.declared
	case len(s.parts) > 0:
		length = min(2*int64(cap(s.parts[len(s.parts)-1].data)), largestPart)
	}
	length = max(length, int64(n))
	if s.size+length > s.store.most {
		if length = s.store.most - s.size; length < int64(n) || s.declared > s.store.most {
			return false
		}
	}
	if !s.store.memory.reserve(length) {
		return false
	}
	data := make([]byte, 0, length)
	s.mu.Lock()
	s.memory += length
	s.parts = append(s.parts, part{at: s.size, data: data})
	s.mu.Unlock()
	return true
}

// spill moves what there is from memory to a new file.
func (s *spool) spill() error {
	f, err := s.store.open()
	if err != nil {
		return err
	}
	for _, p := range s.parts {
		if err := s.write(f, p.data, p.at); err != nil {
			_ = f.Close() // the first error says more
			s.mu.Lock()
			s.store.disk.release(s.disk)
			s.disk = 0
			s.mu.Unlock()
			return err
		}
	}
	s.store.spilled.Add(1)
	s.mu.Lock()
	s.file, s.parts = f, nil
	s.store.memory.release(s.memory)
	s.memory = fileBuffer
	s.store.memory.force(s.memory)
	s.mu.Unlock()
	return nil
}

func (s *spool) write(f file, data []byte, at int64) error {
	if !s.store.disk.reserve(int64(len(data))) {
		return errBudget
	}
	s.mu.Lock()
	s.disk += int64(len(data))
	s.mu.Unlock()
	if _, err := f.WriteAt(data, at); err != nil {
		return fmt.Errorf("write spool file: %w", err)
	}
	return nil
}

// pace ends the keeping of bytes, beginning with data.
func (s *spool) pace(err error, data []byte) {
	s.mu.Lock()
	s.paced = true
	// A reader may be in the midst of a large write from the bytes before.
	grace := time.Now().Add(2 * s.store.stall)
	for r := range s.readers {
		r.since = grace
	}
	s.mu.Unlock()
	s.store.paced.Add(1)
	s.store.refused(err)
	for len(data) > 0 {
		s.mu.Lock()
		n := copy(s.windowTail(), data)
		s.mu.Unlock()
		data = data[n:]
		s.grow(n)
	}
}

// windowTail is the free space at the window's end, a new part if need be. The
// memory is taken whether it is free or not: without it a viewer would get half
// an image. The lock is held.
func (s *spool) windowTail() []byte {
	if i := len(s.window) - 1; i < 0 || len(s.window[i].data) == cap(s.window[i].data) {
		s.store.memory.force(windowPart)
		s.memory += windowPart
		s.window = append(s.window, part{at: s.size, data: make([]byte, 0, windowPart)})
	}
	p := s.window[len(s.window)-1]
	return p.data[len(p.data):cap(p.data)]
}

// windowRoom waits until the window of a paced spool has room.
func (s *spool) windowRoom(ctx context.Context) ([]byte, error) {
	for {
		s.mu.Lock()
		if len(s.readers) == 0 {
			s.mu.Unlock()
			return nil, errAbandoned
		}
		if s.size-max(s.slowest(), s.kept) < windowBytes {
			room := s.windowTail()
			s.mu.Unlock()
			return room, nil
		}
		due := s.cutStalled(time.Now())
		if s.moved == nil {
			s.moved = make(chan struct{})
		}
		moved := s.moved
		s.mu.Unlock()
		timer := time.NewTimer(due)
		select {
		case <-moved:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
		timer.Stop()
	}
}

// cutStalled cuts the readers that hold the window back and have not moved for
// the stall time, if another one waits for what they hold back. It gives the time
// until it should look again. The lock is held.
func (s *spool) cutStalled(now time.Time) time.Duration {
	due := s.store.stall
	waiting := false
	for r := range s.readers {
		waiting = waiting || r.idle && r.pos == s.size
	}
	for r := range s.readers {
		// One who waits, or was woken and has not run yet, is not to blame.
		if r.idle || s.size-max(r.pos, s.kept) < windowBytes {
			continue
		}
		left := s.store.stall - now.Sub(r.since)
		switch {
		case left > 0:
			due = min(due, left)
		case waiting:
			r.cut = true
			delete(s.readers, r)
			due = 0
		}
	}
	s.trim()
	return due
}
