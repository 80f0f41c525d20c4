// Package dial is the ordered ladder of conversion levels, from best-looking to
// cheapest, and decides which of them is in force: by an operator's pin, by the
// windows of a schedule, or by how busy the workers are.
//
// Guaranteed: it reads no clock, starts no goroutine and converts nothing; time and
// load come with each call. All types are safe for use by many goroutines, and
// asking for the level in force costs two atomic loads and, where pins are set, a
// look into a small map.
//
// Not guaranteed: that a level is enough. The last one makes nothing new at all.
package dial
