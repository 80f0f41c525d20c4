package convert

import (
	"errors"

	"karui/convert/header"
)

// PlanPrefix decides about a body that is still arriving, of size bytes in all (-1: unknown).
//
// Decided with Keep: no further bytes can change that. Decided without Keep: the whole header has been read, and
// [MakePlan] will say the same about the whole body. It is never [Truncated] while bytes may follow. For repeated
// calls on one body [Prefix] is cheaper.
func PlanPrefix(prefix []byte, size int64, opt Options, cfg Config) (plan Plan, decided bool) {
	return NewPrefix(size, opt, cfg).Decide(prefix)
}

// Prefix is [PlanPrefix] for one body that grows: all calls together cost as much as one over the whole body. It is
// for one goroutine.
type Prefix struct {
	size int64
	opt  Options
	cfg  Config
	scan header.Scanner
}

// NewPrefix starts with a body of size bytes (-1: unknown) of which nothing has arrived.
func NewPrefix(size int64, opt Options, cfg Config) *Prefix {
	return &Prefix{size: size, opt: opt, cfg: cfg}
}

// Decide is [PlanPrefix]; prefix begins with all the bytes of the call before.
func (p *Prefix) Decide(prefix []byte) (plan Plan, decided bool) {
	info, err := p.scan.Scan(prefix)
	size := max(p.size, int64(len(prefix)))
	if p.size >= 0 && int64(len(prefix)) >= p.size {
		return planWhole(info, err, size, p.opt, p.cfg), true
	}
	if err != nil && !errors.Is(err, header.ErrShort) {
		return planWhole(info, err, size, p.opt, p.cfg), true
	}
	if d, keep := refuse(info, err == nil, size, p.opt, p.cfg); keep {
		return keepFor(info, d, p.opt), true
	}
	if info.Width == 0 || info.Height == 0 {
		return Plan{Source: info.Format}, false
	}
	opt := p.opt
	if err != nil {
		opt.Quality = 1 // the source's own may still turn out to be low, and then less memory is needed
	}
	plan = chooseTarget(info, opt, p.cfg)
	switch {
	case plan.Keep: // sizes and costs only grow
		return plan, true
	case err != nil, info.MPFPending:
		return plan, false
	case info.Format == header.GIF, info.Format == header.JPEG && !info.OnePass:
		return plan, info.Whole // frames or scans are still to be counted
	}
	return plan, true
}
