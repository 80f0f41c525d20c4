package api

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A peer may send this many wrong tokens at once, and then one a second. Those beyond
// are refused and not logged, so that they cost neither the log nor anybody else
// anything. What keeps a token from being guessed is its length: 16 random characters
// (about 80 bits) hold out for longer than anybody asks.
const (
	attemptsAtOnce    = 10
	attemptsPerSecond = 1
)

// peersMost bounds the peers that are remembered. Those beyond it share one limit.
const peersMost = 4096

// attempts counts wrong tokens by peer.
type attempts struct {
	now    func() time.Time
	mu     sync.Mutex
	peers  map[netip.Prefix]*rate.Limiter
	others *rate.Limiter
	swept  time.Time // when peers were last looked through
}

func newAttempts(now func() time.Time) *attempts {
	return &attempts{now: now, peers: map[netip.Prefix]*rate.Limiter{}, others: newLimiter()}
}

func newLimiter() *rate.Limiter { return rate.NewLimiter(attemptsPerSecond, attemptsAtOnce) }

// wrong counts a wrong token, and tells whether the peer may send it.
func (a *attempts) wrong(remote string) (within bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, p := a.now(), peer(remote)
	l := a.peers[p]
	if l == nil && len(a.peers) >= peersMost && now.Sub(a.swept) >= time.Second {
		a.swept = now
		for p, l := range a.peers {
			if l.TokensAt(now) >= attemptsAtOnce {
				delete(a.peers, p)
			}
		}
	}
	switch {
	case l != nil:
	case len(a.peers) < peersMost:
		l = newLimiter()
		a.peers[p] = l
	default:
		l = a.others
	}
	return l.AllowN(now, 1)
}

// peer gives the network that one sender can choose its address from: its
// address, or 64 bits of it for IPv6.
func peer(remote string) netip.Prefix {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	ip = ip.Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
