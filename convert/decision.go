package convert

import "karui/convert/header"

// Code is the stable word for what was decided about one image. It is a label in metrics and a field in JSON, so the
// words never change and their number is small.
type Code string

// What can be decided. Of these, only Converted comes with a variant; all others mean that the original is answered.
const (
	Converted Code = "converted"
	// NotSmaller: the variant would not have been smaller by at least 2 %.
	NotSmaller Code = "not_smaller"
	// NotTried stands only in an [Outcome]: an earlier format was made, so that nothing is known about this one.
	NotTried Code = "not_tried"

	// From the header alone, by [MakePlan].
	NotConvertible  Code = "not_convertible"  // no JPEG, PNG or GIF
	NotAccepted     Code = "not_accepted"     // the viewer takes no lighter format
	AnimatedPNG     Code = "animated_png"     // the animation would be lost
	GainMap         Code = "gain_map"         // the HDR rendition would be lost
	OddColor        Code = "odd_color"        // colours described in a way that decoders ignore
	OddCanvas       Code = "odd_canvas"       // frames on a canvas that decoders and browsers take differently
	UnsupportedJPEG Code = "unsupported_jpeg" // a kind of JPEG that the decoder cannot read
	TooWide         Code = "too_wide"         // over the longest side that the target formats hold
	TooManyPixels   Code = "too_many_pixels"  // over convert.max_pixels
	TooManyFrames   Code = "too_many_frames"  // more than the decoder reads
	TooLarge        Code = "too_large"        // over convert.max_bytes
	TooSlow         Code = "too_slow"         // would take over half of convert.timeout
	CannotAnimate   Code = "cannot_animate"   // an animation, and the format is made of still pictures only
	Empty           Code = "empty"            // no pixels, or no frames
	Broken          Code = "broken"           // the header, or later the pixel data, is not valid
	Truncated       Code = "truncated"        // cut off

	// From the attempt.
	DecodeFailed Code = "decode_failed" // the decoder refused it, and not for being cut off
	EncodeFailed Code = "encode_failed"
	// Graphic: a flat drawing with sharp edges, which the format would blur or not make smaller.
	Graphic Code = "graphic"
	// NoEncoder: the libraries of this machine cannot write the format.
	NoEncoder   Code = "no_encoder"
	Mismatch    Code = "mismatch"      // the result is not the picture that the header announced
	Crashed     Code = "crashed"       // the worker died on it
	OutOfMemory Code = "out_of_memory" // the worker outgrew convert.worker_memory
	Timeout     Code = "timeout"       // the worker ran out of convert.timeout
	Quarantined Code = "quarantined"   // crashed or timed out before, within the last day
	QueueFull   Code = "queue_full"    // no worker became free within convert.queue_wait
	Unavailable Code = "unavailable"   // no worker could be started

	// Deferred: whoever asks the pool did not, since the dial makes nothing of the kind just now.
	Deferred Code = "deferred"
)

// Settled reports whether an outcome of this kind would be the same tomorrow, so that a marker may be kept. The
// passing troubles are a timeout (one more attempt is made), a full queue, missing workers and the
// dial; and what was not tried settles nothing.
func (c Code) Settled() bool {
	return c != Timeout && c != QueueFull && c != Unavailable && c != NotTried && c != Deferred
}

// Decision is what was decided about one image, and why.
type Decision struct {
	Code Code `json:"code"`
	// Reason is one sentence for people, with the numbers that mattered.
	Reason string `json:"reason"`
	// Settled: a marker may be kept, and the answer may live long. Not settled: passing trouble.
	Settled bool `json:"settled"`
}

// Decide makes a Decision that is settled as its code says.
func Decide(code Code, reason string) Decision {
	return Decision{Code: code, Reason: reason, Settled: code.Settled()}
}

// The modes of Options.PNG.
const (
	PNGAuto     = "auto"
	PNGLossy    = "lossy"
	PNGLossless = "lossless"
)

// KeepCopyright in Options.Keep asks for the copyright and artist texts in the variant.
const KeepCopyright = "copyright"

// Options is what the site and its viewer want.
type Options struct {
	// Formats are those that this viewer may get, best first.
	Formats []header.Format
	// Quality is the dial, 1..100; other values are taken as the nearest of these.
	Quality int
	// Effort is how hard WebP's encoder tries, 0..6; nil means [DefaultEffort]. Other formats have theirs.
	Effort *int
	// PNG is how PNG originals are compressed: PNGAuto (also for ""), PNGLossy or PNGLossless.
	PNG string
	// Keep names the metadata that variants keep; today only KeepCopyright.
	Keep []string
}
