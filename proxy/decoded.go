package proxy

import (
	"hash/maphash"
	"sync/atomic"
)

// Bounds of what is decoded ahead: some megabytes for the hottest entries. What is
// larger, or falls on the place of another, is decoded at each hit.
const (
	decodedPlaces = 4096
	decodedMost   = 4 << 10
)

// decodedRecords keeps the records of entries that are in the cache's memory, for
// as long as the cache hands out the same attributes: then, and only then, it is
// the same entry. A hit decodes nothing so. Records are shared and never change.
type decodedRecords struct {
	seed   maphash.Seed
	places [decodedPlaces]atomic.Pointer[decodedRecord]
}

type decodedRecord struct {
	attributes []byte // kept, so that no others can come to lie there
	record     *record
}

func newDecodedRecords() *decodedRecords { return &decodedRecords{seed: maphash.MakeSeed()} }

// of gives the record of attributes.
func (d *decodedRecords) of(attributes []byte) (*record, error) {
	if len(attributes) == 0 || len(attributes) > decodedMost {
		return decodeRecord(attributes)
	}
	start := &attributes[0]
	place := &d.places[maphash.Comparable(d.seed, start)%decodedPlaces]
	if known := place.Load(); known != nil && &known.attributes[0] == start && len(known.attributes) == len(attributes) {
		return known.record, nil
	}
	r, err := decodeRecord(attributes)
	if err == nil {
		place.Store(&decodedRecord{attributes, r})
	}
	return r, err
}
