// Package stress judges whether karui should be used just now: by how long
// requests take to their first byte (Latency), by how full the disks are (Disk),
// and by what operators said (Shares).
//
// Guaranteed: nothing here reads a clock, a disk or the network, or starts a
// goroutine; time comes with each call. A request costs a fixed amount of work, and
// memory does not grow with requests: a group of Latency takes about 2 KiB. All
// types are safe for use by many goroutines.
//
// Not guaranteed: exact means. Times are counted in slots of 1/64 of the window,
// and a judgement is up to 1/512 of the window old.
package stress
