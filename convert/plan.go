package convert

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"karui/convert/header"
)

// Plan is what is to be done with one image, from its header alone.
type Plan struct {
	// Keep: the original is answered, for the reason in Decision.
	Keep bool
	// Decision says why the original is kept; the zero value when it is to be converted.
	Decision Decision
	// Outcomes has each format of [Options.Formats] once, in that order: those before Target with the reason why they
	// cannot be made, Target and those behind it as [NotTried]. When Keep, each has its reason.
	Outcomes []Outcome `json:"-"`

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
	// CPU is the estimated CPU time of the conversion, decoding included, on the machine on which the costs in quality.go were measured.
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
	if d, keep := refuse(info, true, size, opt, cfg); keep {
		return keepFor(info, d, opt)
	}
	if info.Format == header.GIF {
		if d, keep := refuseWholeGIF(info); keep {
			return keepFor(info, d, opt)
		}
	}
	return chooseTarget(info, opt, cfg)
}

// PlanWhole reads the header of a whole original and decides. A header that is cut off is [Truncated], an invalid
// one [Broken].
func PlanWhole(body []byte, opt Options, cfg Config) (header.Info, Plan) {
	info, err := header.Parse(body)
	return info, planWhole(info, err, int64(len(body)), opt, cfg)
}

func planWhole(info header.Info, err error, size int64, opt Options, cfg Config) Plan {
	switch {
	case err == nil:
		return MakePlan(info, size, opt, cfg)
	case info.Format == header.Unknown, errors.Is(err, header.ErrUnsupported):
		return keepFor(info, notConvertible(info.Format), opt)
	case errors.Is(err, header.ErrShort):
		return keepFor(info, Decide(Truncated, fmt.Sprintf("cut off inside the header, after %d bytes", size)), opt)
	}
	return keepFor(info, Decide(Broken, err.Error()), opt)
}

// keepFor is the plan to keep an original for a reason that holds for every format.
func keepFor(info header.Info, d Decision, opt Options) Plan {
	outcomes := newPassing(opt.Formats)
	outcomes.all(d)
	return Plan{Keep: true, Decision: d, Outcomes: outcomes, Source: info.Format}
}

// chooseTarget takes the first of the viewer's formats that can hold the picture and is made in time.
func chooseTarget(info header.Info, opt Options, cfg Config) Plan {
	outcomes := newPassing(opt.Formats)
	for _, f := range outcomes.left() {
		e, ok := encoderOf(f)
		if !ok || !e.made || f == info.Format {
			outcomes.set(f, Decide(NotAccepted, fmt.Sprintf("the viewer takes no format that is made here: not %s", f)))
			continue
		}
		plan, refusal, fits := e.plan(info, opt, cfg)
		if fits {
			plan.Outcomes = outcomes
			return plan
		}
		outcomes.set(f, refusal)
	}
	return Plan{Keep: true, Decision: outcomes.sum(), Outcomes: outcomes, Source: info.Format}
}

// plan works out the conversion to one format, or why it cannot be.
func (e encoder) plan(info header.Info, opt Options, cfg Config) (plan Plan, refusal Decision, fits bool) {
	w, h := max(info.Width, info.ExtentWidth), max(info.Height, info.ExtentHeight)
	if w > e.maxSide || h > e.maxSide {
		return plan, Decide(TooWide, fmt.Sprintf("%d x %d px: %s holds at most %d px a side", w, h, e.name, e.maxSide)), false
	}
	if int64(w)*int64(h) > e.maxPixels {
		return plan, Decide(TooManyPixels, fmt.Sprintf("%d x %d px are %s: %s holds at most %s",
			w, h, megapixels(int64(w)*int64(h)), e.name, megapixels(e.maxPixels))), false
	}
	if info.Animated && !e.animates {
		return plan, Decide(CannotAnimate, fmt.Sprintf("an animation, and %s is made of still pictures only", e.name)), false
	}
	plan = Plan{Source: info.Format, Target: e.format, Dial: dialFor(info, opt.Quality), Effort: e.effortFor(opt)}
	plan.Quality = EncoderQuality(e.format, plan.Dial)
	plan.KeepCopyright = slices.Contains(opt.Keep, KeepCopyright)
	plan.CPU = e.cost(info, plan.Effort, plan.Quality, false)
	most := cfg.Timeout / 2
	if info.Format == header.PNG {
		plan.PNG = cmp.Or(opt.PNG, PNGAuto)
		if d, no := e.planPNG(&plan, info, most); no {
			return Plan{}, d, false
		}
	}
	if plan.CPU > most {
		return Plan{}, Decide(TooSlow, fmt.Sprintf("%s of pixels as %s would take about %s of CPU time, and at most %s is given",
			megapixels(info.Pixels()), e.name, roundDuration(plan.CPU), most)), false
	}
	if need := e.memory(info, plan.Quality); need > int64(cfg.WorkerMemory)/8*7 {
		return Plan{}, Decide(TooManyPixels, fmt.Sprintf("%s of pixels as %s would take about %d MiB of memory, and a worker has %s",
			megapixels(info.Pixels()), e.name, need>>20, cfg.WorkerMemory)), false
	}
	return plan, Decision{}, true
}

// planPNG adds what a lossless result would take, or refuses a format without one to pictures that want it.
func (e encoder) planPNG(plan *Plan, info header.Info, most time.Duration) (Decision, bool) {
	if len(e.lossless) == 0 {
		why, flat := flatByHeader(info)
		switch {
		case plan.PNG == PNGLossless:
			why, flat = "lossless, as the site wants it", true
		case plan.PNG == PNGLossy:
			flat = false
		case plan.Dial >= 100:
			why, flat = "the best quality", true
		}
		if flat {
			return notFlat(e.format, why), true
		}
		return Decision{}, false
	}
	plan.LosslessCPU = e.cost(info, plan.Effort, plan.Quality, true)
	plan.LosslessTooSlow = plan.LosslessCPU > most
	if plan.PNG == PNGLossless {
		plan.CPU = plan.LosslessCPU
	}
	return Decision{}, false
}

// notFlat is why a format without a lossless form is not made of a flat drawing. Of 83 such PNGs of a corpus, WebP
// without loss makes half the bytes; AVIF at a quality at which edges do not show blurred yet (85) is smaller than that
// for 21 of them, and at one at which flat areas stay flat (95) needs most of the bytes of the PNGs for a picture that
// still is another one. So these go to the next format, or stay what they are.
func notFlat(f header.Format, why string) Decision {
	return Decide(Graphic, fmt.Sprintf("%s: WebP keeps its pixels, %s would not", why, f))
}

// roundDuration drops what no estimate knows.
func roundDuration(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
