package convert

import (
	"time"

	"karui/convert/header"
)

// Plan is what is to be done with one image, from its header alone.
type Plan struct {
	// Keep: the original is answered, for the reason in Decision.
	Keep bool
	// Decision says why the original is kept; the zero value when it is to be converted.
	Decision Decision

	// Source is the format of the original.
	Source header.Format
	// Target is the format to make; never Source. Unknown when Keep.
	Target header.Format
	// Dial is the quality on the dial after the source's own quality limited it, 1..100.
	Dial int
	// Quality is the number that the target's encoder takes for Dial.
	Quality int
	// Effort is the number that the target's encoder takes, see [DefaultEffort].
	Effort int
	// CPU is the estimated CPU time of the conversion, decoding included, on the machine of libraries.md.
	CPU time.Duration
	// PNG is how to compress a PNG original: PNGAuto, PNGLossy or PNGLossless; "" for other originals.
	PNG string
	// LosslessCPU is the estimate for a lossless result; 0 for originals that are not PNG.
	LosslessCPU time.Duration
	// LosslessTooSlow: with PNGAuto, a picture that should be lossless must be kept as the original instead,
	// with the code [TooSlow].
	LosslessTooSlow bool
	// KeepCopyright: the variant carries Copyright and Artist of the header.
	KeepCopyright bool
}

// MakePlan decides from the header of a whole original of size bytes. It is pure.
//
// The info must come without an error from [header.Parse]; [PlanWhole] does both.
func MakePlan(info header.Info, size int64, opt Options, cfg Config) Plan {
	return Plan{Keep: true, Source: info.Format, Decision: Decide(NotConvertible, "nothing is converted yet")}
}

// PlanWhole reads the header of a whole original and decides. A header that is cut off is [Truncated], an invalid
// one [Broken].
func PlanWhole(body []byte, opt Options, cfg Config) (header.Info, Plan) {
	info, _ := header.Parse(body)
	return info, MakePlan(info, int64(len(body)), opt, cfg)
}

// PlanPrefix decides about a body that is still arriving, of size bytes in all (-1: unknown). Decided means that no
// further bytes can change the plan's Keep and Target; a body that ends early is found out by whoever decodes it.
// For repeated calls on one body [Prefix] is cheaper.
func PlanPrefix(prefix []byte, size int64, opt Options, cfg Config) (plan Plan, decided bool) {
	return NewPrefix(size, opt, cfg).Decide(prefix)
}

// Prefix is [PlanPrefix] for one body that grows: all calls together cost as much as one over the whole body.
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
	info, _ := p.scan.Scan(prefix)
	return MakePlan(info, p.size, p.opt, p.cfg), false
}
