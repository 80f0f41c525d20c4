package server

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Of the operators' listener.
const (
	// operatorsMost is how many connections it may have, far more than a team with its
	// dashboards needs; so many more are kept for this machine, from where an operator
	// may still command karui while others hold all of them.
	operatorsMost  = 256
	operatorsSpare = 32
	// operatorsTime is what a request has to arrive whole. A purge's body, the largest
	// there is with 2 MiB, takes as much over a line of 1 Mbit/s.
	operatorsTime = 20 * time.Second
)

// complaintEvery is the time between two lines about connections that could not be
// taken.
const complaintEvery = time.Minute

// complaint is a line of the log that is written once in a while at most.
type complaint struct {
	log  *slog.Logger
	now  func() time.Time
	last atomic.Int64 // in nanoseconds since 1970, 0 for never
}

func (c *complaint) say(message string, args ...any) {
	now, last := c.now().UnixNano(), c.last.Load()
	if last != 0 && now >= last && now-last < int64(complaintEvery) || !c.last.CompareAndSwap(last, now) {
		return
	}
	c.log.Warn(message, args...)
}

// telling is a listener that says when connections cannot be taken, which net/http
// tries again for ever.
type telling struct {
	net.Listener
	complaint complaint
}

func newTelling(inner net.Listener, log *slog.Logger) *telling {
	return &telling{Listener: inner, complaint: complaint{log: log, now: time.Now}}
}

func (l *telling) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if isTemporary(err) {
		l.complaint.say("connections cannot be taken, and whoever asks waits", "address", l.Addr().String(), "error", err)
	}
	return c, err
}

// isTemporary tells whether net/http goes on after an error of Accept.
func isTemporary(err error) bool {
	e, ok := err.(interface{ Temporary() bool }) //nolint:errorlint // it is asked so by net/http
	return ok && e.Temporary()
}

// gate bounds the connections of the operators' listener, which share the process's
// files with those of viewers. One over the bound is closed at once: it would wait for
// others to end, and whoever holds these is in no hurry.
type gate struct {
	net.Listener
	most, spare int64
	held        atomic.Int64
	near        func(net.Addr) bool
	full        complaint
}

func newGate(inner net.Listener, log *slog.Logger) *gate {
	return &gate{Listener: inner, most: operatorsMost, spare: operatorsSpare, near: fromHere, full: complaint{log: log, now: time.Now}}
}

// fromHere tells whether a peer is on this machine.
func fromHere(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		most := g.most
		if g.near(c.RemoteAddr()) {
			most += g.spare
		}
		if g.held.Add(1) <= most {
			return &gated{Conn: c, free: sync.OnceFunc(func() { g.held.Add(-1) })}, nil
		}
		g.held.Add(-1)
		_ = c.Close() // nothing was said on it
		g.full.say("the operators' listener has all the connections it may have, and closes new ones", "most", most, "peer", c.RemoteAddr().String())
	}
}

// gated is one of its connections.
type gated struct {
	net.Conn
	free func()
}

func (c *gated) Close() error {
	defer c.free()
	return c.Conn.Close()
}

// filesBeside is what karui may have open besides what viewers' connections take:
// operators, workers' pipes, logs, the cache's writes.
const filesBeside = operatorsMost + operatorsSpare + 256

// filesEach is what a connection may take: itself, and a file of the cache or the
// connection to an origin.
const filesEach = 2

// openFiles gives how many files this process may have open. Go has raised that to the
// most that the system allows.
func openFiles() (uint64, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	return limit.Cur, nil
}

// connectionsWithin gives how many of the configured connections the process's files
// suffice for. Where they do not, those over that wait for others to end, as those over
// the configured number do, and nobody who is in fails for want of a file.
func connectionsWithin(files uint64, configured int) int {
	need := uint64(configured)*filesEach + filesBeside //nolint:gosec // it is valid, and so above 0
	if files >= need {
		return configured
	}
	if files < 2*filesBeside {
		return int(max(files/(2*filesEach), 1)) //nolint:gosec // below need
	}
	return int((files - filesBeside) / filesEach) //nolint:gosec // below need
}

// fitFiles lowers limits.connections to what the process may have open, and says so.
func (s *server) fitFiles() {
	files, err := openFiles()
	if err != nil {
		s.log.Warn("it is not known how many files karui may have open", "error", err)
		return
	}
	configured := s.config.Limits.Connections
	s.connections = connectionsWithin(files, configured)
	if s.connections < configured {
		s.log.Warn("limits.connections is more than karui may have open, and viewers beyond what fits wait for others to end: raise the limit (LimitNOFILE in systemd, ulimit -n), or lower limits.connections",
			"limits.connections", configured, "in force", s.connections, "open files", files, "needed", configured*filesEach+filesBeside)
	}
}

// fitting is the configuration with as many connections as karui may have open.
func (s *server) fitting(c Config) Config {
	if s.connections > 0 {
		c.Limits.Connections = min(c.Limits.Connections, s.connections)
	}
	return c
}
