// Package flight lets any number of viewers share one fetch.
//
// A flight is one request to the origin and everybody who waits for its answer.
// Its body goes into a growing spool that each viewer reads from byte 0 at its
// own speed.
//
// Guaranteed:
//
//   - One fetch per key at a time, however many viewers ask, until the flight's
//     [Request.Task] has returned: a viewer that comes between the last byte and
//     the entry in the cache joins, too. (Together with a second look into the
//     cache, see [ErrStored].)
//   - The fetch has a context of its own. Viewers who leave do not end it, not
//     even the first one and not even all of them.
//   - Viewers attach only once the head proves the answer shareable. If it is
//     not, the first viewer alone gets it, at its own pace, and the fetch ends
//     with that viewer; the others get [ErrNotShared] and fetch for themselves.
//   - What has arrived is there for every viewer at once, late joiners too, and
//     nobody waits for a slower one.
//   - A body that fails gives every viewer the bytes so far, then the error;
//     never io.EOF.
//   - Memory: all spools together hold at most [Options].Memory, apart from 4 KiB
//     for each fetch under way and 32 KiB for each that goes to disk. What does
//     not fit goes to a temporary file without a name, whose pages the kernel
//     caches and drops as it sees fit.
//   - A panic in Fetch or Shareable becomes a [*PanicError] for its viewers; one
//     in Task is logged.
//
// # When there is neither memory nor disk
//
// A spool that can have neither more memory nor more disk (the disk is full, or
// [Options].Disk is used up) is paced from then on: new viewers get a flight of
// their own, those who are there share a window of 64 KiB, and the fetch goes
// at the pace of the slowest. One who reads nothing for [Options].Stall while
// others wait for it is cut with [ErrTooSlow]. The body is not kept, so
// [Flight.Whole] fails with [ErrNotKept] and the fetch ends when its viewers
// have left. Nobody gets a broken image because a disk is full.
//
// # Not guaranteed
//
// Limits of time: Fetch and the body it returns must have their own, as those
// of package origin do. A viewer that stops reading is the server's to end, by
// a deadline on its connection; all it costs here is its flight's spool. Headers
// and slices that are handed out are shared and must not be written to.
package flight
