package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"karui/convert/header"
)

// MissingEncoder is the error for a format that the libraries of this machine cannot write.
type MissingEncoder struct {
	Format header.Format
	// Reason is what the library said.
	Reason string
}

func (m MissingEncoder) Error() string {
	remedy := "libheif must have an encoder for it"
	switch m.Format {
	case header.AVIF:
		remedy += ": on Debian 13 and later install the package libheif-plugin-aomenc"
	case header.HEIC:
		remedy += ": on Debian 13 and later install the package libheif-plugin-x265"
	}
	return fmt.Sprintf("%s cannot be written on this machine (%s); %s", m.Format, m.Reason, remedy)
}

// CheckEncoders tells which of the formats this machine cannot write, each with a [MissingEncoder] in the joined error;
// nil when it can write all of them. The pool works all the same: such a format is passed over as [NoEncoder].
//
// Only for AVIF and HEIC a worker is started, asked and ended: these encoders are parts that a system may lack. The
// error is that of ctx, [ErrClosed], or what kept the worker from starting.
func (p *Pool) CheckEncoders(ctx context.Context, formats []header.Format) error {
	var unknown []error
	ask := false
	for _, f := range formats {
		ask = ask || CanMake(f) && classOf(f) == Slow
		if !CanMake(f) {
			unknown = append(unknown, MissingEncoder{f, "not in this version"})
		}
	}
	if !ask {
		return errors.Join(unknown...)
	}
	if !p.enter() {
		return ErrClosed
	}
	answers := make(chan launched, 1)
	go func() {
		defer p.leave()
		proc, r, err := p.launch(seat{class: Slow})
		if err == nil {
			proc.stop(CauseUnused)
			p.tally.lost(CauseUnused)
		}
		answers <- launched{ready: r, err: err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			if p.ctx.Err() != nil {
				return ErrClosed
			}
			return fmt.Errorf("ask a worker for its encoders: %w", a.err)
		}
		for _, f := range slices.Compact(slices.Sorted(slices.Values(formats))) {
			if reason := a.ready.NoEncoder[f.String()]; reason != "" {
				unknown = append(unknown, MissingEncoder{f, reason})
			}
		}
		return errors.Join(unknown...)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// probe finds out whether this machine can write a format, by writing a small picture with it. It also makes the
// library load what it needs, while files can still be opened.
func (e *engine) probe(f header.Format) {
	j, source := pingJob(0, pingTimeout)
	j.Plan.Target, j.Plan.PNG = f, PNGLossy
	j.Plan.Quality, j.Plan.Effort = EncoderQuality(f, j.Plan.Quality), DefaultEffort(f)
	r, _ := e.convert(j, append(make([]byte, 0, len(source)+spare), source...))
	if r.Code != Converted && r.Code != NotSmaller {
		e.missing[f] = r.Reason
	}
}

// lacking names the formats that probe found missing, with the reasons.
func (e *engine) lacking() map[string]string {
	m := map[string]string{}
	for f, reason := range e.missing {
		m[f.String()] = reason
	}
	return m
}
