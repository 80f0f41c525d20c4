package cache

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
)

func TestHeadRoundTrip(t *testing.T) {
	long := bytes.Repeat([]byte{0xff}, MaxAttributes)
	for name, c := range map[string]struct {
		key  Key
		meta Meta
	}{
		"empty":                      {Key{}, Meta{FetchStart: at(0)}},
		"all":                        {Key{"s", "/p", "r", "f"}, Meta{FetchStart: at(1), Expires: at(2), Attributes: []byte("a")}},
		"longest":                    {Key{Path: string(bytes.Repeat([]byte{'/'}, maxKeyBytes))}, Meta{FetchStart: at(1), Attributes: long}},
		"no zeros between the parts": {Key{"ab", "c", "", "d"}, Meta{FetchStart: at(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			b := encodeHead(c.key, c.meta, 3, 77)
			if len(b) > maxHead {
				t.Fatalf("head of %d bytes, bound is %d", len(b), maxHead)
			}
			for _, key := range []*Key{nil, &c.key} {
				h, err := parseHead(b, int64(len(b))+3, key)
				if err != nil {
					t.Fatal(err)
				}
				if h.key != c.key || !h.meta.FetchStart.Equal(c.meta.FetchStart) || !h.meta.Expires.Equal(c.meta.Expires) ||
					!bytes.Equal(h.meta.Attributes, c.meta.Attributes) || h.size != 3 || h.bodySum != 77 || h.body != int64(len(b)) {
					t.Fatalf("got %+v", h)
				}
			}
			other := c.key
			other.Form += "x"
			if _, err := parseHead(b, int64(len(b))+3, &other); err == nil {
				t.Fatal("taken for another key's")
			}
		})
	}
}

func TestHashTellsKeysApart(t *testing.T) {
	seen := map[hash]Key{}
	for _, k := range []Key{
		{},
		{Site: "a"},
		{Path: "a"},
		{Rest: "a"},
		{Form: "a"},
		{Site: "a", Path: "b"},
		{Site: "ab"},
		{Path: "a", Rest: "b"},
		{Path: "ab"},
		{Path: "a\x00b"},
		{Path: "a", Rest: "\x00b"},
		{Path: "a\x01", Rest: "b"},
	} {
		if other, ok := seen[k.hash()]; ok {
			t.Errorf("%v and %v share a hash", k, other)
		}
		seen[k.hash()] = k
		h, ok := parseHash(k.hash().String())
		if !ok || h != k.hash() {
			t.Errorf("%s is read back as %s, %v", k.hash(), h, ok)
		}
	}
	for _, name := range []string{"", "00", "0123456789abcdef0123456789abcdeg", "0123456789ABCDEF0123456789abcdef", "0123456789abcdef0123456789abcdef0"} {
		if _, ok := parseHash(name); ok {
			t.Errorf("%q is taken for a name", name)
		}
	}
}

func TestTimesAreClamped(t *testing.T) {
	for _, c := range []struct{ in, out time.Time }{
		{time.Time{}, time.Time{}},
		{time.Unix(-5, 0), firstTime},
		{time.Unix(1<<40, 0), lastTime},
		{base, base},
	} {
		if got := fromNano(toNano(c.in)); !got.Equal(c.out) {
			t.Errorf("%v becomes %v, want %v", c.in, got, c.out)
		}
	}
}

// update returns the file with its metadata replaced, as the volume does it.
func updated(b []byte, size int64, meta Meta) []byte {
	b = bytes.Clone(b)
	h, err := parseHead(b, int64(len(b))+size, nil)
	if err != nil {
		panic(err)
	}
	copy(b[h.slots+int64(1-h.slot)*h.slotSize:], encodeSlot(meta, h.sequence+1, h.headSum))
	return b
}

// A write of a slot that was cut anywhere leaves the old metadata or the new.
func TestTornUpdate(t *testing.T) {
	oldMeta := Meta{FetchStart: at(1), Attributes: []byte("old attributes")}
	newMeta := Meta{FetchStart: at(2), Attributes: []byte("new attributes, longer")}
	before := encodeHead(Key{"s", "/p", "r", "f"}, oldMeta, 0, xxhash.Sum64(nil))
	before = updated(updated(before, 0, oldMeta), 0, oldMeta) // nothing is empty any more
	after := updated(before, 0, newMeta)
	for cut := range len(after) + 1 {
		torn := append(bytes.Clone(after[:cut]), before[cut:]...)
		h, err := parseHead(torn, int64(len(torn)), nil)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		switch string(h.meta.Attributes) {
		case string(oldMeta.Attributes), string(newMeta.Attributes):
		default:
			t.Fatalf("cut at %d: attributes %q", cut, h.meta.Attributes)
		}
	}
}

func FuzzParseHead(f *testing.F) {
	key := Key{"shop", "/a.jpg", "v=1", "webp"}
	whole := encodeHead(key, Meta{FetchStart: at(1), Expires: at(9), Attributes: []byte("attributes")}, 5, 99)
	f.Add(whole, int64(len(whole)+5))
	f.Add(whole[:20], int64(20))
	f.Add([]byte{}, int64(0))
	f.Add(updated(whole, 5, Meta{FetchStart: at(2)}), int64(len(whole)+5))
	for _, at := range []int{8, 12, 20, 24, 40, 50, 80, len(whole) - 1} {
		b := bytes.Clone(whole)
		b[at] ^= 0x80
		f.Add(b, int64(len(b)+5))
	}
	huge := bytes.Clone(whole)
	binary.LittleEndian.PutUint64(huge[24:], 1<<63)
	f.Add(huge, int64(len(huge)))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		h, err := parseHead(b, size, nil)
		if err != nil {
			return
		}
		if h.size < 0 || h.body+h.size != size || h.body > int64(len(b)) || h.body > maxHead ||
			h.key.size() > maxKeyBytes || len(h.meta.Attributes) > MaxAttributes || h.meta.check() != nil {
			t.Fatalf("accepted: %+v", h)
		}
		// What is accepted is what was written: changing any byte that counts ends it.
		for _, at := range []int64{0, 8, 13, 20, 24, 32, 40, h.slots - 1} {
			c := bytes.Clone(b)
			c[at] ^= 1
			if _, err := parseHead(c, size, nil); err == nil {
				t.Fatalf("a changed byte at %d is not noticed", at)
			}
		}
	})
}
