// Package backlog keeps the conversions that were not made when they were wanted,
// since nothing new was being made or no worker was free, and has them made, one at a
// time of each site, when the workers have time. Their viewers have had the original
// meanwhile.
//
// Guaranteed: a conversion is on the list once, however often it is wanted. The list
// is bounded in entries and in bytes; when it is full, the coldest entry of the site
// with the most goes. Sites take turns, so that one with 100,000 entries delays one
// with three by three turns at most, and one with a slow origin waits for that without
// holding up the others; within a site, what was asked for most goes first,
// where an hour halves what an ask counts. What is older than Limits.Age without
// another ask, and what failed Limits.Tries times, is dropped and counted. Telling the
// list of a conversion costs a mutex that nobody holds for longer than it takes to add
// to a map, and never waits for a disk. On disk the list is a journal, written once a
// second: a killed process loses what came or went in the last second, and nothing
// that was there before.
//
// Measured with 100,000 entries of ten sites and keys of 57 bytes: 206 bytes of memory
// an entry, 0.5 µs to choose the next, 0.1 s to read the journal at a start, and 65 ns
// to tell the list of a conversion (go test -bench . ./proxy/backlog).
//
// Not guaranteed: that an entry is ever made. It is a favour to viewers to come, and
// whoever asks for the picture when the workers have time has it made at once. After a
// loss of power, more than the last second may be missing: the journal is not forced
// to the disk with each write.
package backlog
