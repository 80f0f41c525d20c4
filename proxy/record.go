package proxy

import (
	"encoding/binary"
	"errors"
	"net/http"
	"slices"
	"time"

	"karui/convert"
	"karui/proxy/rules"
)

// kind tells what an entry of the cache stands for.
type kind uint8

const (
	// original: the body is the file as the origin gave it.
	original kind = iota + 1
	// variant: the body is a converted form.
	variant
	// marker: no body; the original is kept instead of this format.
	marker
	// gone: the origin said 404 or 410, the body is what it said with it.
	gone
	// foreign: the origin answered something that is no image; no body. Only
	// kept for sites with extensionless names.
	foreign
)

// record is what the proxy keeps beside a body. It is written in the attributes
// of a cache entry, and holds all that an answer needs, so that a hit is one
// look into the cache.
type record struct {
	kind   kind
	status int
	// source names the fetch that the bytes came from, so that variants of an
	// older original are told from those of the present one.
	source int64
	// digest is of the original's bytes; zero where they were not at hand.
	digest rules.Digest
	// saved is what a variant has less than its original, in bytes.
	saved int64
	// code says why the original is kept, for a marker, and noted when that was
	// decided, for one that does not hold for ever.
	code  convert.Code
	noted time.Time
	// transformable is whether the origin allows a variant.
	transformable bool
	// level is that of the dial at which a variant was made.
	level int
	// sawOrigin is whether the fetch carried the viewer's Origin header.
	sawOrigin bool
	freshness rules.Freshness
	// etag is that of the body, "" for none.
	etag string
	// lastModified is the origin's, for revalidation; it is never sent.
	lastModified string
	// header are the fields to answer with, less those that each answer computes.
	header http.Header
}

// recordVersion changes with the form below. Version 1 lacks noted and level, and
// version 2 level; both are read: entries of any other version are misses.
const recordVersion = 3

var errRecord = errors.New("not a record of this version")

const (
	flagTransformable = 1 << iota
	flagSawOrigin
	flagExplicit
	flagNoCache
	flagMustRevalidate
)

// encode writes the record: varints and length-prefixed strings, because a hit
// decodes one and reflection would cost more than the rest of the hit.
func (r *record) encode() []byte {
	b := make([]byte, 0, 512)
	b = append(b, recordVersion, byte(r.kind))
	b = append(b, flag(flagTransformable, r.transformable)|
		flag(flagSawOrigin, r.sawOrigin)|
		flag(flagExplicit, r.freshness.Explicit)|
		flag(flagNoCache, r.freshness.NoCache)|
		flag(flagMustRevalidate, r.freshness.MustRevalidate))
	b = append(b, r.digest[:]...)
	b = binary.AppendVarint(b, int64(r.status))
	b = binary.AppendVarint(b, r.source)
	b = binary.AppendVarint(b, r.saved)
	b = binary.AppendVarint(b, r.freshness.Base.UnixNano())
	b = binary.AppendVarint(b, int64(r.freshness.Lifetime))
	b = appendText(b, string(r.code))
	b = appendText(b, r.etag)
	b = appendText(b, r.lastModified)
	noted := int64(0)
	if !r.noted.IsZero() {
		noted = r.noted.UnixNano()
	}
	b = binary.AppendVarint(b, noted)
	b = binary.AppendVarint(b, int64(r.level))
	names := make([]string, 0, len(r.header))
	for name := range r.header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range r.header[name] {
			b = appendText(b, name)
			b = appendText(b, value)
		}
	}
	return b
}

func flag(bit byte, set bool) byte {
	if set {
		return bit
	}
	return 0
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodeRecord reads what encode wrote. The cache has verified the bytes, so
// what does not read well was written by another version.
func decodeRecord(attributes []byte) (*record, error) {
	d := decoder{rest: string(attributes)} // the one copy that all texts are parts of
	version := d.byte()
	if version < 1 || version > recordVersion {
		return nil, errRecord
	}
	r := &record{kind: kind(d.byte())}
	flags := d.byte()
	r.transformable = flags&flagTransformable != 0
	r.sawOrigin = flags&flagSawOrigin != 0
	r.freshness.Explicit = flags&flagExplicit != 0
	r.freshness.NoCache = flags&flagNoCache != 0
	r.freshness.MustRevalidate = flags&flagMustRevalidate != 0
	copy(r.digest[:], d.bytes(len(r.digest)))
	r.status = int(d.varint())
	r.source = d.varint()
	r.saved = d.varint()
	r.freshness.Base = time.Unix(0, d.varint())
	r.freshness.Lifetime = time.Duration(d.varint())
	r.code = convert.Code(d.text())
	r.etag = d.text()
	r.lastModified = d.text()
	if version >= 2 {
		if noted := d.varint(); noted != 0 {
			r.noted = time.Unix(0, noted)
		}
	}
	if version >= 3 {
		r.level = int(d.varint())
	}
	r.header = make(http.Header, 8)
	values := make([]string, 0, 12)
	for len(d.rest) > 0 && !d.failed {
		name, value := d.text(), d.text()
		if more := r.header[name]; more != nil {
			r.header[name] = append(more, value)
			continue
		}
		values = append(values, value)
		r.header[name] = values[len(values)-1 : len(values) : len(values)]
	}
	if d.failed || r.kind < original || r.kind > foreign {
		return nil, errRecord
	}
	return r, nil
}

// decoder reads from the front of rest; after the first failure everything is zero.
type decoder struct {
	rest   string
	failed bool
}

func (d *decoder) bytes(n int) string {
	if d.failed || n < 0 || n > len(d.rest) {
		d.failed = true
		return ""
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

// number gives the bytes that a number at the front may take.
func (d *decoder) number() []byte {
	return []byte(d.rest[:min(len(d.rest), binary.MaxVarintLen64)])
}

func (d *decoder) varint() int64 {
	n, size := binary.Varint(d.number())
	if size <= 0 {
		d.failed = true
	}
	d.bytes(size)
	if d.failed {
		return 0
	}
	return n
}

func (d *decoder) text() string {
	n, size := binary.Uvarint(d.number())
	if size <= 0 || n > uint64(len(d.rest)) {
		d.failed = true
		return ""
	}
	d.bytes(size)
	return d.bytes(int(n))
}
