package proxy

import (
	"io"

	"karui/cache"
	"karui/convert/header"
)

// formOriginal is the Form of a key for the original, and for what stands in its
// place: a 404, or the word that it is no image. A variant's Form is its format.
const formOriginal = "original"

// found is an entry of the cache with its record. Close it.
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
	r, err := decodeRecord(entry.Meta.Attributes)
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

// resolved tells whether every list of formats would be answered from the cache
// without converting: past markers, up to a variant or the end. All must be made
// from the fetch that source names.
func (p *Proxy) resolved(f fetch, wanted []header.Format, source int64) bool {
	for _, format := range wanted {
		e, ok := p.find(f.form(format.String()))
		if !ok {
			return false
		}
		closeEntry(e.Entry)
		if e.record.source != source {
			return false
		}
		if e.record.kind == variant {
			return true
		}
	}
	return true
}
