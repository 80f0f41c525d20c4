// Package rules holds what HTTP says about images that pass through a cache, as
// pure functions: negotiation, freshness, sharing, conditions and names.
//
// It guarantees: nothing here looks at a clock, a disk or a network, every
// function ends in time linear to its input, and bytes that make no sense are
// read in the way that can break nothing (a format that was not clearly named is
// not accepted, a lifetime that cannot be read is over, a tag that cannot be
// read matches nothing). It does not guarantee that all of RFC 9110 and RFC 9111
// is covered: it covers what karui answers.
package rules
