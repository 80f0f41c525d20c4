package proxy

import (
	"io"
	"time"

	"karui/cache"
	"karui/convert"
	"karui/convert/header"
)

// formOriginal is the Form of a key for the original, and for what stands in its
// place: a 404, or the word that it is no image. A variant's Form is its format.
const formOriginal = "original"

// found is an entry of the cache with its record, which is shared and not to be
// changed. Close it.
type found struct {
	*cache.Entry
	record *record
}

// find looks a key up. An entry of another version is a miss.
func (p *Proxy) find(key cache.Key) (found, bool) {
	entry, ok := p.store.Get(key)
	if !ok {
		return found{}, false
	}
	r, err := p.decoded.of(entry.Meta.Attributes)
	if err != nil {
		closeEntry(entry)
		return found{}, false
	}
	return found{Entry: entry, record: r}, true
}

// closeEntry gives an entry back. The file was only read, so closing it can lose
// nothing.
func closeEntry(e *cache.Entry) { _ = e.Close() }

// body gives the whole body of the entry, which is not closed.
func (e found) body() ([]byte, error) {
	if b, ok := e.Bytes(); ok {
		return b, nil
	}
	b := make([]byte, e.Size())
	_, err := io.ReadFull(e.Reader(), b)
	return b, err
}

// section gives a part of the body.
func (e found) section(offset, _ int64) io.Reader {
	r := e.Reader()
	if _, err := r.Seek(offset, io.SeekStart); err != nil {
		return failing{err}
	}
	return r
}

// failing is a reader that gives nothing but an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// resolved tells whether the formats would be answered from the cache without
// converting: past markers, up to a variant or the end. All must be made from the
// fetch that source names.
func (p *Proxy) resolved(set *settings, f fetch, wanted []header.Format, source int64) bool {
	s := p.search(set, f, wanted)
	of := s.source
	if s.variant.Entry != nil {
		of = s.variant.record.source
		closeEntry(s.variant.Entry)
	}
	return !s.unknown && (of == source || of == 0)
}

// punishment is how long a marker holds that says what an original did to a
// worker: as long as its quarantine. The origin's word that the picture is still
// the same does not make it longer.
const punishment = 24 * time.Hour

// lapsed tells whether a marker no longer holds: its original has served its time
// in quarantine, or was let out of it; or the machine lacked an encoder, which it
// may have since the last start.
func (p *Proxy) lapsed(r *record) bool {
	if r.kind != marker || r.noted.IsZero() {
		return false
	}
	if r.code == convert.NoEncoder {
		return r.noted.Before(p.began)
	}
	return !p.now().Before(r.noted.Add(punishment)) || p.pardoned.since(r.digest, r.noted)
}
