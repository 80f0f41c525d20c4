package convert

import (
	"slices"

	"karui/convert/header"
)

// Outcome is what was decided about one of the formats that a viewer takes. The code says which of these it is:
//
//   - [Converted]: the variant was made.
//   - [NotTried]: an earlier format was made. Nothing is known about this one, and no marker may be kept for it.
//   - every other code: the original is better than this format, or it could not be made. Where Decision.Settled, a
//     marker may be kept for the format, whoever asks next and whatever else they take: nothing that is decided about
//     one format depends on which others were asked for.
type Outcome struct {
	Format   header.Format
	Decision Decision
}

// passing is a list of formats on the way to the first that is made.
type passing []Outcome

// newPassing lists each format once, in the order given, with nothing known about any.
func newPassing(formats []header.Format) passing {
	var list passing
	for _, f := range formats {
		if !slices.ContainsFunc(list, func(o Outcome) bool { return o.Format == f }) {
			list = append(list, Outcome{f, Decide(NotTried, "nothing was decided about it")})
		}
	}
	return list
}

// set notes what was decided about one format.
func (p passing) set(f header.Format, d Decision) {
	for i := range p {
		if p[i].Format == f {
			p[i].Decision = d
		}
	}
}

// left lists the formats of which nothing is known.
func (p passing) left() []header.Format {
	var formats []header.Format
	for _, o := range p {
		if o.Decision.Code == NotTried {
			formats = append(formats, o.Format)
		}
	}
	return formats
}

// all notes one decision about every format of which nothing is known yet.
func (p passing) all(d Decision) {
	for _, f := range p.left() {
		p.set(f, d)
	}
}

// learn notes how the attempt at one format ended, and what follows from that for those that are left.
func (p passing) learn(f header.Format, d Decision) {
	p.set(f, d)
	switch {
	case d.Code == Converted:
	case !d.Code.aboutFormat():
		p.all(d)
	case d.Code == QueueFull, d.Code == Unavailable: // so it is for all that need the same workers
		for _, other := range p.left() {
			if classOf(other) == classOf(f) {
				p.set(other, d)
			}
		}
	}
}

// sum is the decision about the picture when no format was made: that of the last format, which is the one that was
// left when all others were ruled out. While one of them is not settled, the whole is not, and has that one's code.
func (p passing) sum() Decision {
	if len(p) == 0 {
		return Decide(NotAccepted, "the viewer takes no lighter format")
	}
	d := p[len(p)-1].Decision
	reason := ""
	said := map[string]bool{}
	for _, o := range slices.Backward(p) {
		if d.Settled && !o.Decision.Settled {
			d = o.Decision
		}
	}
	for _, o := range p {
		if !said[o.Decision.Reason] {
			said[o.Decision.Reason] = true
			if reason != "" {
				reason += "; "
			}
			reason += o.Decision.Reason
		}
	}
	d.Reason = reason
	return d
}

// aboutFormat reports whether another format may do better with the same picture.
func (c Code) aboutFormat() bool {
	switch c {
	case NotSmaller, TooSlow, Graphic, NoEncoder, EncodeFailed, Mismatch, QueueFull, Unavailable:
		return true
	}
	return false
}
