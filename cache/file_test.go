package cache

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// fileFor gives a whole entry file that was updated once, so that both slots are in use.
func fileFor(key Key, meta Meta, body []byte) []byte {
	b := encodeHead(key, Meta{FetchStart: at(1), Attributes: []byte("before the update")}, int64(len(body)), xxhash.Sum64(body))
	return append(updated(b, int64(len(body)), meta), body...)
}

// A file that ends anywhere but at its end is a miss, whichever way it is read.
func TestEveryTruncation(t *testing.T) {
	key, meta := Key{Site: "shop", Path: "/a.jpg", Form: "webp"}, Meta{FetchStart: at(2)}
	for name, size := range map[string]int{"for memory": 300, "for sendfile": 3000} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t.TempDir())
			cfg.Memory = memoryShare * 1000 // bodies of at most 1000 bytes
			c, _ := openOn(t, cfg, roomy(), osFiles{}, newClock().Now)
			want := bytes.Repeat([]byte("0123456789"), size/10)
			whole := fileFor(key, meta, want)
			file := c.volumes[0].name(key.hash())
			if err := c.Put(key, meta, want); err != nil {
				t.Fatal(err)
			}
			settle(c)
			c.memory.drop(key.hash())
			for cut := 0; cut < len(whole); cut += 1 + cut/400 {
				overwrite(t, file, whole[:cut])
				if _, ok := c.Get(key); ok {
					t.Fatalf("answered from the first %d bytes of %d", cut, len(whole))
				}
				settle(c)
			}
			overwrite(t, file, whole)
			c.volumes[0].reload()
			check(t, c, key, meta, want)
		})
	}
}

// A body that is never in memory as a whole: one changed bit anywhere in the file
// is a miss, unless the entry is right all the same (the slot that does not hold,
// padding), and two blocks that changed places are.
func TestFlippedBitsOfALargeFile(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Memory = 0
	c, _ := openOn(t, cfg, roomy(), osFiles{}, newClock().Now)
	key, meta := Key{Path: "/large.jpg"}, Meta{FetchStart: at(2), Attributes: []byte("after the update")}
	r := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, 700_000)
	for i := range want {
		want[i] = byte(r.Uint32())
	}
	whole := fileFor(key, meta, want)
	file := c.volumes[0].name(key.hash())
	if err := c.Put(key, meta, want); err != nil {
		t.Fatal(err)
	}
	spoiled := func(b []byte, mayHit bool, what string, at int) {
		t.Helper()
		overwrite(t, file, b)
		if e, ok := c.Get(key); ok {
			_ = e.Close()
			if !mayHit {
				t.Fatalf("answered although %s at %d", what, at)
			}
			got, ok := c.Get(key)
			if !ok || !bytes.Equal(body(t, got), want) {
				t.Fatalf("other bytes after %s at %d", what, at)
			}
			_ = got.Close()
		}
		settle(c)
	}
	head := len(whole) - len(want)
	for range 60 {
		bit := r.IntN(8 * len(whole))
		if r.IntN(3) == 0 {
			bit = r.IntN(8 * head)
		}
		b := slices.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		spoiled(b, bit/8 < head, "a bit flipped", bit/8)
		b = slices.Clone(whole)
		x, y := head+4096*r.IntN(100), head+4096*r.IntN(100)
		if x != y {
			copy(b[x:], whole[y:y+4096])
			copy(b[y:], whole[x:x+4096])
			spoiled(b, false, "blocks changed places", x)
		}
		b = slices.Clone(whole)
		at := head + r.IntN(len(want)-4096)
		clear(b[at : at+4096])
		spoiled(b, false, "a block of zeros", at)
	}
}

// FuzzEntryFile puts any bytes in the place of an entry's file. They are a miss,
// or they are what a whole file of this key would be.
func FuzzEntryFile(f *testing.F) {
	key := Key{"shop", "/a.jpg", "v=1", "webp"}
	whole := fileFor(key, Meta{FetchStart: at(2), Expires: at(1 << 30), Attributes: []byte("attributes")}, []byte("a body"))
	f.Add(whole)
	f.Add([]byte{})
	f.Add(whole[:len(whole)/2])
	f.Add(fileFor(Key{"shop", "/b.jpg", "v=1", "webp"}, Meta{FetchStart: at(2)}, []byte("a body")))
	f.Add([]byte("RIFF....WEBPVP8 "))
	for _, at := range []int{0, 8, 13, 21, 26, 33, 41, 50, 90, len(whole) - 1} {
		b := slices.Clone(whole)
		b[at] ^= 0xff
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		cfg := testConfig(t.TempDir())
		cfg.Memory = memoryShare * 64
		c, _ := openOn(t, cfg, roomy(), osFiles{}, newClock().Now)
		if err := c.Put(key, Meta{FetchStart: at(1)}, []byte("before")); err != nil {
			t.Fatal(err)
		}
		settle(c)
		c.memory.drop(key.hash())
		overwrite(t, c.volumes[0].name(key.hash()), b)
		for range 2 {
			e, ok := c.Get(key)
			if !ok {
				settle(c)
				if _, err := os.Lstat(c.volumes[0].name(key.hash())); !os.IsNotExist(err) && len(b) > 0 {
					h, herr := parseHead(b, int64(len(b)), &key)
					if herr != nil || !h.meta.expired(at(0)) {
						t.Fatalf("still there: %v, %v", err, herr)
					}
				}
				return
			}
			h, err := parseHead(b, int64(len(b)), &key)
			if err != nil || !bytes.Equal(body(t, e), b[h.body:]) || xxhash.Sum64(b[h.body:]) != h.bodySum {
				t.Fatalf("answered: %+v, %v", e.Meta, err)
			}
			if err := c.Update(e, Meta{FetchStart: h.meta.FetchStart}); err != nil {
				t.Fatal(err)
			}
			b, err = os.ReadFile(c.volumes[0].name(key.hash()))
			if err != nil {
				t.Fatal(err)
			}
			_ = e.Close()
		}
	})
}
