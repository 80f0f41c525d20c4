package cache

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"
)

const (
	// memoryShare is the part of the memory tier that one body may take at most:
	// a 64th, 4 MiB of 256 MiB. More would push out too much that is hot.
	memoryShare = 64
	// memoryOverhead is what an entry costs beside its bytes: the structs here and
	// ristretto's tables.
	memoryOverhead = 400
)

// memory is the memory tier. Ristretto may drop or delay any Set, and may keep a
// value although a newer one was set; so every copy carries the version of the
// file it was made from, and is good only while the index has that version.
type memory struct {
	life    sync.RWMutex // ristretto panics when it is used while it is closed
	tier    *ristretto.Cache[uint64, *copied]
	largest int64
	version atomic.Uint32 // the last one given
}

// copied is an entry in memory. The entry is handed out as it is: nothing in it
// changes any more.
type copied struct {
	hash    hash
	version uint32
	entry   Entry
}

// newMemory makes a tier of limit bytes; 0 is none, and nothing is admitted.
func newMemory(limit int64) (*memory, error) {
	m := &memory{largest: -1}
	if limit <= 0 {
		return m, nil
	}
	// Ten counters for every entry, as ristretto advises, taking entries of 4 KiB
	// on average; a counter takes about 3 bytes.
	counters := min(max(limit/(4<<10)*10, 10_000), 10_000_000)
	tier, err := ristretto.NewCache(&ristretto.Config[uint64, *copied]{
		NumCounters: counters, MaxCost: limit, BufferItems: 64,
	})
	if err != nil {
		return nil, err
	}
	m.tier, m.largest = tier, limit/memoryShare
	return m, nil
}

// nextVersion gives a version that no file has had. 0 means none.
func (m *memory) nextVersion() uint32 {
	for {
		if n := m.version.Add(1); n != 0 {
			return n
		}
	}
}

// admits says whether a body of that many bytes may be kept.
func (m *memory) admits(size int64) bool { return size <= m.largest }

func memoryKey(h hash) uint64 { return binary.LittleEndian.Uint64(h[:]) }

func (m *memory) get(h hash, version uint32, key *Key) *Entry {
	m.life.RLock()
	defer m.life.RUnlock()
	if m.tier == nil {
		return nil
	}
	c, ok := m.tier.Get(memoryKey(h))
	if !ok || c.version != version || c.hash != h || c.entry.Key != *key {
		return nil
	}
	return &c.entry
}

// set offers a body and gives the entry for it, admitted or not.
func (m *memory) set(h hash, version uint32, key Key, meta Meta, sum uint64, body []byte) *Entry {
	c := &copied{hash: h, version: version, entry: Entry{
		Key: key, Meta: meta, size: int64(len(body)), sum: sum, bytes: body, inRAM: true,
	}}
	m.life.RLock()
	defer m.life.RUnlock()
	if m.tier == nil || version == 0 || !m.admits(int64(len(body))) {
		return &c.entry
	}
	// A buffer that grew while it was read into would be kept whole.
	if spare := cap(body) - len(body); spare > len(body)/8+512 {
		c.entry.bytes = slices.Clone(body)
	}
	m.tier.Set(memoryKey(h), c, int64(len(body)+key.size()+len(meta.Attributes)+memoryOverhead))
	return &c.entry
}

func (m *memory) drop(h hash) {
	m.life.RLock()
	defer m.life.RUnlock()
	if m.tier != nil {
		m.tier.Del(memoryKey(h))
	}
}

// used is about how many bytes are kept, and of how many.
func (m *memory) used() (bytes, limit int64) {
	m.life.RLock()
	defer m.life.RUnlock()
	if m.tier == nil {
		return 0, 0
	}
	limit = m.tier.MaxCost()
	return limit - m.tier.RemainingCost(), limit
}

func (m *memory) close() {
	m.life.Lock()
	defer m.life.Unlock()
	if m.tier != nil {
		m.tier.Close()
		m.tier = nil
	}
}
