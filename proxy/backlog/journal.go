package backlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// magic begins a journal of this version. Each record after it is its length and its
// CRC-32C, four bytes each, and as many bytes.
const magic = "karui backlog 1\n"

// maxRecord bounds a record's bytes: over what any key within Limits.Key takes.
const maxRecord = 128 << 10

// maxJournal bounds what is read of a journal, in bytes: several times what the
// largest one has before it is written anew.
const maxJournal = 1 << 30

// ErrForeign says that a file is no journal of this version.
var ErrForeign = errors.New("no backlog of this version")

// errDamaged says that a record is cut off, or not what was written.
var errDamaged = errors.New("damaged record")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The kinds of records.
const (
	recordPut  = 1 // an entry as it is now
	recordGone = 2 // an entry that is not on the list any more
)

// record is one line of the journal.
type record struct {
	kind               byte
	site, name         string
	heat               float64
	first, last, after int64
	tries              uint8
}

func (it *item) record() record {
	if it.state == gone {
		return record{kind: recordGone, site: it.site.id, name: it.name}
	}
	return record{
		kind: recordPut, site: it.site.id, name: it.name, heat: it.heat,
		first: it.first, last: it.last, after: it.after, tries: it.tries,
	}
}

// appendRecord writes a record behind b.
func appendRecord(b []byte, r record) []byte {
	at := len(b)
	b = append(b, make([]byte, 8)...)
	b = append(b, r.kind)
	b = binary.AppendUvarint(b, uint64(len(r.site)))
	b = append(b, r.site...)
	b = binary.AppendUvarint(b, uint64(len(r.name)))
	b = append(b, r.name...)
	if r.kind == recordPut {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.heat))
		b = binary.AppendVarint(b, r.first)
		b = binary.AppendVarint(b, r.last)
		b = binary.AppendVarint(b, r.after)
		b = append(b, r.tries)
	}
	payload := b[at+8:]
	binary.LittleEndian.PutUint32(b[at:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[at+4:], crc32.Checksum(payload, castagnoli))
	return b
}

// decodeRecord reads the bytes of one record, whose checksum was right.
func decodeRecord(b []byte) (r record, err error) {
	bad := fmt.Errorf("%w: it is of another form", errDamaged)
	if len(b) == 0 {
		return r, bad
	}
	r.kind = b[0]
	rest := string(b[1:])
	var ok bool
	if r.site, rest, ok = cut(rest); !ok {
		return r, bad
	}
	if r.name, rest, ok = cut(rest); !ok {
		return r, bad
	}
	switch r.kind {
	case recordGone:
		if rest != "" {
			return r, bad
		}
		return r, nil
	case recordPut:
	default:
		return r, bad
	}
	tail := []byte(rest)
	if len(tail) < 8 {
		return r, bad
	}
	r.heat = math.Float64frombits(binary.LittleEndian.Uint64(tail))
	tail = tail[8:]
	for _, to := range []*int64{&r.first, &r.last, &r.after} {
		n, size := binary.Varint(tail)
		if size <= 0 {
			return r, bad
		}
		*to, tail = n, tail[size:]
	}
	if len(tail) != 1 || math.IsNaN(r.heat) || math.IsInf(r.heat, 0) || keyOf(r.site, r.name).Form == "" {
		return r, bad
	}
	r.tries = tail[0]
	return r, nil
}

// readJournal hands the records to apply, in order, and gives how many bytes of the
// journal are good. It ends without an error at the end of the journal, with
// ErrForeign where it is none, and with another error at the first damage: what is
// behind that was written before a crash had come to its end, or was changed since.
func readJournal(from io.Reader, apply func(record)) (good int64, err error) {
	in := bufio.NewReaderSize(io.LimitReader(from, maxJournal), 256<<10)
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(in, head); err != nil || string(head) != magic {
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, fmt.Errorf("read the backlog: %w", err)
		}
		return 0, ErrForeign
	}
	good = int64(len(magic))
	var frame [8]byte
	var payload []byte
	for {
		switch _, err := io.ReadFull(in, frame[:]); {
		case errors.Is(err, io.EOF):
			return good, nil
		case err != nil:
			return good, fmt.Errorf("%w at byte %d: %w", errDamaged, good, err)
		}
		n := binary.LittleEndian.Uint32(frame[:])
		if n > maxRecord {
			return good, fmt.Errorf("%w at byte %d: it claims %d bytes", errDamaged, good, n)
		}
		if cap(payload) < int(n) {
			payload = make([]byte, n)
		}
		payload = payload[:n]
		if _, err := io.ReadFull(in, payload); err != nil {
			return good, fmt.Errorf("%w at byte %d: %w", errDamaged, good, err)
		}
		if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(frame[4:]) {
			return good, fmt.Errorf("%w at byte %d: its checksum is wrong", errDamaged, good)
		}
		r, err := decodeRecord(payload)
		if err != nil {
			return good, fmt.Errorf("at byte %d: %w", good, err)
		}
		apply(r)
		good += 8 + int64(n)
	}
}
