package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// line is the network between the edge and karui: a TCP relay whose way back can
// be made slow. While nobody is at its far end it refuses connections, as the
// address of a dead process does.
type line struct {
	address string // fixed once open was called first
	delay   atomic.Int64

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	running  sync.WaitGroup
}

// setDelay makes every byte from karui arrive so much later. 0 ends that, also
// for what is on its way.
func (l *line) setDelay(d time.Duration) { l.delay.Store(int64(d)) }

// open begins to relay to target. It listens on the same address every time.
func (l *line) open(target string) error {
	l.close()
	address := l.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("open the way to karui: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.address = listener.Addr().String()
	l.listener, l.conns = listener, make(map[net.Conn]bool)
	l.running.Go(func() { l.accept(listener, target) })
	return nil
}

// close refuses connections from now on and cuts those that are open.
func (l *line) close() {
	l.mu.Lock()
	listener := l.listener
	l.listener = nil
	if listener != nil {
		listener.Close()
	}
	for c := range l.conns {
		cut(c)
	}
	l.conns = nil
	l.mu.Unlock()
	l.running.Wait()
}

// keep remembers connections that close has to cut. False: it is closed already.
func (l *line) keep(listener net.Listener, conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != listener {
		return false
	}
	for _, c := range conns {
		l.conns[c] = true
	}
	return true
}

func (l *line) forget(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		delete(l.conns, c)
	}
}

func (l *line) accept(listener net.Listener, target string) {
	for {
		near, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file descriptors, for now
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if !l.keep(listener, near) {
			cut(near)
			continue
		}
		l.running.Go(func() {
			defer l.forget(near)
			defer near.Close()
			l.relay(listener, near, target)
		})
	}
}

func (l *line) relay(listener net.Listener, near net.Conn, target string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	far, err := new(net.Dialer).DialContext(ctx, "tcp", target)
	if err != nil {
		cut(near)
		return
	}
	defer far.Close()
	if !l.keep(listener, far) {
		return
	}
	defer l.forget(far)
	var forth sync.WaitGroup
	forth.Go(func() {
		_, err := io.Copy(far, near)
		if err != nil {
			cut(far)
			return
		}
		_ = far.(*net.TCPConn).CloseWrite() // the viewer's half-close goes on
	})
	if err := l.back(near, far); err != nil {
		cut(near) // as it came: never a clean end of half a body
	} else {
		_ = near.(*net.TCPConn).CloseWrite()
	}
	near.Close()
	forth.Wait()
}

// parcel is what was read at once, and when.
type parcel struct {
	data []byte
	read time.Time
	err  error
}

// parcels is how many parcels of at most 32 KiB are on a slow line at once.
const parcels = 32

// back carries karui's bytes to the edge, each parcel as late as the line is slow.
func (l *line) back(near, far net.Conn) error {
	way := make(chan parcel, parcels)
	gone := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(way)
		for {
			b := make([]byte, 32<<10)
			n, err := far.Read(b)
			select {
			case way <- parcel{b[:n], time.Now(), err}:
			case <-gone:
				return
			}
			if err != nil {
				return
			}
		}
	})
	defer reading.Wait()
	defer far.Close()
	defer close(gone)
	for p := range way {
		if err := l.wait(near, p.read); err != nil {
			return err
		}
		if _, err := near.Write(p.data); err != nil {
			return err
		}
		if p.err != nil && p.err != io.EOF {
			return p.err
		}
	}
	return nil
}

// wait waits until a parcel has been under way for as long as the line is slow now.
func (l *line) wait(near net.Conn, read time.Time) error {
	for {
		left := time.Duration(l.delay.Load()) - time.Since(read)
		if left <= 0 {
			return nil
		}
		time.Sleep(min(left, 50*time.Millisecond)) // the delay may be changed meanwhile
		l.mu.Lock()
		open := l.conns[near]
		l.mu.Unlock()
		if !open {
			return net.ErrClosed
		}
	}
}

// cut closes so that the other side sees a reset and takes nothing for whole.
func cut(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}
