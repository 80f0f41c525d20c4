package convert

import (
	"context"

	"karui/convert/header"
)

// Convert makes the variant that opt asks for, or says why the original is to be answered. The source must be whole
// and must not change until the call returns, whatever it returns: a caller who leaves early leaves its source to
// others who want the same conversion.
//
// The formats of opt are tried in their order, in this one call, until one is made: a format that is not smaller, would
// take too long, cannot hold the picture or finds no free worker is passed over for the next one. What concerns the
// picture itself, or ends a worker, ends the call, and is the outcome of every format that is left.
// [Result.Outcomes] says for each format what was decided.
//
// The error is that of ctx, or [ErrClosed]; everything else is a [Decision]. A conversion outlives its callers: one
// that all of them have left is finished all the same, within the pool's limits, though no further format is tried.
func (p *Pool) Convert(ctx context.Context, source []byte, opt Options) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	info, parseErr := header.Parse(source)
	outcomes := newPassing(opt.Formats)
	r := Result{Info: info}
	for tries := 0; ; tries++ {
		opt.Formats = outcomes.left()
		plan := planWhole(info, parseErr, int64(len(source)), opt, p.cfg)
		for _, o := range plan.Outcomes {
			outcomes.set(o.Format, o.Decision)
		}
		if tries > 0 && plan.Keep {
			break
		}
		r.Plan = plan
		if plan.Keep {
			r.Decision, r.Outcomes = plan.Decision, outcomes
			p.tally.decided(r, len(source))
			return r, nil
		}
		one, err := p.attempt(ctx, source, info, plan)
		if err != nil {
			return Result{}, err
		}
		one.CPU += r.CPU
		r = one
		r.Plan = plan // with the outcomes for this caller
		outcomes.learn(plan.Target, r.Decision)
		if r.Decision.Code == Converted {
			r.Outcomes = outcomes
			return r, nil
		}
	}
	r.Decision, r.Outcomes = outcomes.sum(), outcomes
	return r, nil
}
