package cache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/cespare/xxhash/v2"
)

// The entry file, all numbers little-endian:
//
//	0  magic "KARUI\x00\x1a\n"
//	8  format version, 4 bytes
//	12 lengths of the key's Site, Path, Rest, Form, 2 bytes each
//	20 capacity of a metadata slot, 4 bytes
//	24 length of the body, 8 bytes
//	32 XXH64 of the body
//	40 XXH64 of the 40 bytes before and of the key
//	48 the key's four parts
//	   two metadata slots
//	   the body, to the end of the file
//
// A slot, the rest of its capacity being zero:
//
//	0  sequence, 8 bytes; 0 is an empty slot
//	8  Meta.FetchStart, nanoseconds since 1970, 8 bytes
//	16 Meta.Expires, the same; 0 is never
//	24 length of Meta.Attributes, 4 bytes
//	28 how many whole seconds Meta.BodyStart lies before FetchStart, and 1; 0 if they
//	   are the same. 4 bytes. (Earlier versions wrote 0 always.)
//	32 XXH64 of the checksum at 40, the 32 bytes before and the attributes
//	40 Meta.Attributes
//
// The valid slot with the higher sequence holds. An update writes the other one in
// place, so that a torn write leaves the metadata that was there before; the body
// is never written twice.
const (
	formatVersion = 1
	magic         = "KARUI\x00\x1a\n"
	fixedSize     = 48
	slotFixed     = 40
	slotUnit      = 64
	// maxSlot leaves room for the growth that slotCapacity adds.
	maxSlot = 2*MaxAttributes + slotFixed
	maxHead = fixedSize + maxKeyBytes + 2*maxSlot
)

// head is the parsed beginning of an entry file.
type head struct {
	key      Key
	meta     Meta
	sequence uint64
	slot     int   // which slot meta came from
	slotSize int64 // capacity of each
	slots    int64 // offset of the first
	body     int64 // offset of the body
	size     int64 // length of the body
	bodySum  uint64
	headSum  uint64
}

// slotCapacity leaves room to grow, so that a revalidation with a longer header
// or two does not need a new file.
func slotCapacity(attributes int) int64 {
	want := slotFixed + attributes + attributes/4 + 32
	return int64((want + slotUnit - 1) / slotUnit * slotUnit)
}

// encodeHead is everything before the body of a new file.
func encodeHead(key Key, meta Meta, size int64, bodySum uint64) []byte {
	capacity := slotCapacity(len(meta.Attributes))
	b := make([]byte, fixedSize, fixedSize+int64(key.size())+2*capacity)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], formatVersion)
	for i, part := range [...]string{key.Site, key.Path, key.Rest, key.Form} {
		binary.LittleEndian.PutUint16(b[12+2*i:], uint16(len(part)))
		b = append(b, part...)
	}
	binary.LittleEndian.PutUint32(b[20:], uint32(capacity))
	binary.LittleEndian.PutUint64(b[24:], uint64(size))
	binary.LittleEndian.PutUint64(b[32:], bodySum)
	sum := headSum(b)
	binary.LittleEndian.PutUint64(b[40:], sum)
	b = append(b, encodeSlot(meta, 1, sum)...)
	return b[:cap(b)]
}

// headSum is over b, which ends with the key, without the place where the sum itself stands.
func headSum(b []byte) uint64 {
	d := xxhash.New()
	_, _ = d.Write(b[:40])
	_, _ = d.Write(b[fixedSize:])
	return d.Sum64()
}

// encodeSlot is as long as its contents; the capacity is the caller's business.
func encodeSlot(meta Meta, sequence, headSum uint64) []byte {
	b := make([]byte, slotFixed, slotFixed+len(meta.Attributes))
	binary.LittleEndian.PutUint64(b, sequence)
	binary.LittleEndian.PutUint64(b[8:], uint64(toNano(meta.FetchStart)))
	binary.LittleEndian.PutUint64(b[16:], uint64(toNano(meta.Expires)))
	binary.LittleEndian.PutUint32(b[24:], uint32(len(meta.Attributes)))
	binary.LittleEndian.PutUint32(b[28:], encodeAge(&meta))
	b = append(b, meta.Attributes...)
	binary.LittleEndian.PutUint64(b[32:], slotSum(b, headSum))
	return b
}

// encodeAge counts from one whole second to another, so that a body does not grow
// older by being stored again and again.
func encodeAge(m *Meta) uint32 {
	body := m.Born()
	if !body.Before(m.FetchStart) {
		return 0
	}
	return uint32(min(m.FetchStart.Unix()-body.Unix()+1, math.MaxUint32))
}

// decodeAge gives the BodyStart that encodeAge stands for: up to a second too early.
func decodeAge(age uint32, fetched time.Time) time.Time {
	if age == 0 {
		return time.Time{}
	}
	start := time.Unix(fetched.Unix()-int64(age)+1, 0)
	if start.Before(firstTime) {
		return firstTime
	}
	return start
}

func slotSum(b []byte, headSum uint64) uint64 {
	d := xxhash.New()
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], headSum)
	_, _ = d.Write(seed[:])
	_, _ = d.Write(b[:32])
	_, _ = d.Write(b[slotFixed:])
	return d.Sum64()
}

// headLength says from the first fixedSize bytes how many bytes stand before the
// body, and checks that with the body they make up the whole file.
func headLength(b []byte, fileSize int64) (int64, error) {
	switch {
	case len(b) < fixedSize || fileSize < fixedSize:
		return 0, fmt.Errorf("%w: %d bytes", errBad, fileSize)
	case string(b[:8]) != magic:
		return 0, fmt.Errorf("%w: foreign file", errBad)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return 0, fmt.Errorf("%w: format version %d, this program reads %d", errBad, v, formatVersion)
	}
	var key int64
	for i := range 4 {
		key += int64(binary.LittleEndian.Uint16(b[12+2*i:]))
	}
	slot := int64(binary.LittleEndian.Uint32(b[20:]))
	body := binary.LittleEndian.Uint64(b[24:])
	if key > maxKeyBytes || slot < slotFixed || slot > maxSlot || body > math.MaxInt64/2 {
		return 0, fmt.Errorf("%w: lengths out of bounds", errBad)
	}
	n := fixedSize + key + 2*slot
	if n+int64(body) != fileSize {
		return 0, fmt.Errorf("%w: %d bytes instead of %d", errBad, fileSize, n+int64(body))
	}
	return n, nil
}

// parseHead reads the bytes before the body, which headLength has counted. key is
// the key that the file must belong to; nil takes any. The attributes are copied.
func parseHead(b []byte, fileSize int64, key *Key) (head, error) {
	n, err := headLength(b, fileSize)
	if err != nil {
		return head{}, err
	}
	if int64(len(b)) < n {
		return head{}, fmt.Errorf("%w: %d bytes of head instead of %d", errBad, len(b), n)
	}
	h := head{
		slotSize: int64(binary.LittleEndian.Uint32(b[20:])),
		body:     n,
		size:     fileSize - n,
		bodySum:  binary.LittleEndian.Uint64(b[32:]),
		headSum:  binary.LittleEndian.Uint64(b[40:]),
	}
	h.slots = n - 2*h.slotSize
	if headSum(b[:h.slots]) != h.headSum {
		return head{}, fmt.Errorf("%w: checksum of the head", errBad)
	}
	if err := h.readKey(b, key); err != nil {
		return head{}, err
	}
	var attributes []byte
	for i := range 2 {
		from := h.slots + int64(i)*h.slotSize
		s := b[from : from+h.slotSize]
		sequence := binary.LittleEndian.Uint64(s)
		length := int64(binary.LittleEndian.Uint32(s[24:]))
		if sequence <= h.sequence || length > MaxAttributes || slotFixed+length > h.slotSize {
			continue
		}
		s = s[:slotFixed+length]
		fetched := int64(binary.LittleEndian.Uint64(s[8:]))
		expires := int64(binary.LittleEndian.Uint64(s[16:]))
		if slotSum(s, h.headSum) != binary.LittleEndian.Uint64(s[32:]) || fetched <= 0 || expires < 0 {
			continue
		}
		h.sequence, h.slot = sequence, i
		h.meta = Meta{FetchStart: fromNano(fetched), Expires: fromNano(expires)}
		h.meta.BodyStart = decodeAge(binary.LittleEndian.Uint32(s[28:]), h.meta.FetchStart)
		attributes = s[slotFixed:]
	}
	if h.sequence == 0 {
		return head{}, fmt.Errorf("%w: checksum of the metadata", errBad)
	}
	h.meta.Attributes = bytes.Clone(attributes)
	return h, nil
}

// readKey takes the wanted key's strings where they are the same, to save copies.
func (h *head) readKey(b []byte, want *Key) error {
	parts := [4][]byte{}
	at := int64(fixedSize)
	for i := range parts {
		n := int64(binary.LittleEndian.Uint16(b[12+2*i:]))
		parts[i] = b[at : at+n]
		at += n
	}
	if want == nil {
		h.key = Key{Site: string(parts[0]), Path: string(parts[1]), Rest: string(parts[2]), Form: string(parts[3])}
		return nil
	}
	if string(parts[0]) != want.Site || string(parts[1]) != want.Path ||
		string(parts[2]) != want.Rest || string(parts[3]) != want.Form {
		return fmt.Errorf("%w: belongs to another key", errBad)
	}
	h.key = *want
	return nil
}
