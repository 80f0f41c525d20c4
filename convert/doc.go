// Package convert decides what becomes of an original image, and makes its variant in worker processes.
//
// [MakePlan] and its relatives decide from the header alone and are pure. [Pool] converts: [New] starts this very
// program as so many workers (the hidden command `worker`, [WorkerMain]), [Pool.Convert] hands originals to them.
//
// Guaranteed:
//
//   - The process that uses a Pool decodes no pixel and never starts libvips. An image that crashes its decoder, never
//     ends or eats all memory costs one worker, and that image keeps its original for a day.
//   - A variant is a whole file that says the same size, frames and duration as its original, upright, in sRGB or with
//     the profile its pixels need, without metadata but the copyright, and smaller by at least 2 %. Everything else
//     is a [Decision] to keep the original, with its reason.
//   - What is decided about one format does not depend on which others were asked for, so that a marker for it holds
//     for everybody ([Outcome]).
//   - What is cut off or damaged is not converted, as far as the format lets it be known: JPEG and GIF have no check
//     sums, so that a change which leaves good codes behind goes unseen, as it does in a browser.
//   - Every wait has an end: in the queue convert.queue_wait, in a worker convert.timeout of CPU time and three times
//     that on the clock. Close returns when all workers and goroutines are gone.
//   - AVIF and HEIC have workers and a queue of their own, as [Slow] codecs: whatever is asked of them, a conversion to
//     WebP starts as if they were not there. Each of those workers has one processor, however many threads its encoder
//     starts, and an eighth of what a worker for WebP gets of it when both want it.
//   - An image is blamed (left alone for a day) only for what its own conversion did: not when its worker was gone
//     before it had read it, was stopped from outside, or got too little of a busy machine.
//   - A worker may not open files, use the network, start programs or signal others, where the kernel has seccomp; it
//     ends with the process that started it, killed or not.
//
// Not guaranteed: that two runs make the same bytes (versions of libvips, libwebp, libaom and x265 differ), that an image shows all
// its colours where its profile was of look-up tables (it is made sRGB), and that a source is converted only once
// (only those that overlap in time are).
package convert
