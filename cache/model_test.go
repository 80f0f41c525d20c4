package cache

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// modelled is what the cache should hold under a key.
type modelled struct {
	meta   Meta
	body   []byte
	serial int // of the Put: tells bodies apart that are alike
}

// TestAgainstMap plays random histories of Put, PutFrom, Get, Update, Delete,
// restart and reload, and compares with a map.
func TestAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "karui-cache-model")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		cfg := testConfig(dir)
		cfg.Memory = 0
		if rapid.Bool().Draw(t, "memory") {
			cfg.Memory = 1 << 20 // bodies up to 16 KiB
		}
		clk := newClock()
		restart := func() *Cache {
			c, err := open(cfg, roomy(), Options{Log: slogger(newMessages()), Now: clk.Now}, &faulty{})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		c := restart()
		defer func() { _ = c.Close() }()

		model := map[Key]modelled{}
		deleted := map[Key]int{} // the second up to which Puts lose
		held := map[Key]*Entry{} // entries read some time ago
		heldWas := map[Key]modelled{}
		defer func() {
			for _, e := range held {
				_ = e.Close()
			}
		}()
		serial := 0
		seconds := func(m Meta) int { return int(m.FetchStart.Sub(base) / time.Second) }

		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k := drawKey(t)
				m := drawMeta(t)
				serial++
				b := []byte(fmt.Sprint(serial))
				b = append(b, bytes.Repeat([]byte{'.'}, rapid.SampledFrom([]int{0, 1, 5000, 40_000}).Draw(t, "size"))...)
				var err error
				if rapid.Bool().Draw(t, "from") {
					err = c.PutFrom(k, m, int64(len(b)), bytes.NewReader(b))
				} else {
					err = c.Put(k, m, b)
				}
				old, there := model[k]
				gone, was := deleted[k]
				if there && old.meta.FetchStart.After(m.FetchStart) || was && seconds(m) <= gone {
					if !errors.Is(err, ErrSuperseded) {
						t.Fatalf("an older Put: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				model[k] = modelled{m, b, serial}
				delete(deleted, k)
			},
			"get": func(t *rapid.T) {
				k := drawKey(t)
				e, ok := c.Get(k)
				want, there := model[k]
				if ok != there {
					t.Fatalf("%v: hit %v, want %v", k, ok, there)
				}
				if !ok {
					return
				}
				same(t, e, want)
				if old := held[k]; old != nil {
					same(t, old, heldWas[k]) // it never changes
					_ = old.Close()
				}
				held[k], heldWas[k] = e, want
			},
			"update": func(t *rapid.T) {
				k := drawKey(t)
				e := held[k]
				if e == nil {
					return
				}
				m := drawMeta(t)
				err := c.Update(e, m)
				now, there := model[k]
				gone, was := deleted[k]
				switch {
				case !there || was && seconds(m) <= gone:
					if !errors.Is(err, ErrGone) {
						t.Fatalf("Update of nothing: %v", err)
					}
				case now.serial != heldWas[k].serial || now.meta.FetchStart.After(m.FetchStart):
					if !errors.Is(err, ErrSuperseded) {
						t.Fatalf("Update of what was replaced: %v", err)
					}
				case err != nil:
					t.Fatal(err)
				default:
					now.meta = m
					model[k] = now
				}
			},
			"delete": func(t *rapid.T) {
				k := drawKey(t)
				m := drawMeta(t)
				if err := c.Delete(k, m.FetchStart); err != nil {
					t.Fatal(err)
				}
				if old, there := model[k]; there && old.meta.FetchStart.After(m.FetchStart) {
					return
				}
				delete(model, k)
				deleted[k] = max(deleted[k], seconds(m))
			},
			"restart": func(t *rapid.T) {
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				c = restart()
				clear(deleted)
			},
			"reload": func(*rapid.T) { c.volumes[0].reload() },
			"settle": func(*rapid.T) { settle(c) },
			"forget graves": func(*rapid.T) {
				c.volumes[0].tendGraves(clk.advance(graveAge + time.Second))
				clear(deleted)
			},
			"": func(t *rapid.T) {
				if s := c.Stats().Volumes[0]; s.Broken != 0 || s.WriteErrors != 0 || s.ReadErrors != 0 || s.State != StateOK {
					t.Fatalf("%+v", s)
				}
			},
		})
	})
}

func drawKey(t *rapid.T) Key {
	return Key{Site: "s", Path: rapid.SampledFrom([]string{"/a", "/b", "/c"}).Draw(t, "path"), Form: "webp"}
}

func drawMeta(t *rapid.T) Meta {
	return Meta{
		FetchStart: at(rapid.IntRange(1, 30).Draw(t, "fetched")),
		Expires:    at(1 << 30),
		Attributes: []byte(strings.Repeat("a", rapid.SampledFrom([]int{0, 10, 60, 3000}).Draw(t, "attributes"))),
	}
}

func same(t *rapid.T, e *Entry, want modelled) {
	var w bytes.Buffer
	if _, err := e.WriteTo(&w); err != nil || !bytes.Equal(w.Bytes(), want.body) {
		t.Fatalf("%v: %d bytes, %v; want %d", e.Key, w.Len(), err, len(want.body))
	}
	if !e.Meta.FetchStart.Equal(want.meta.FetchStart) || !bytes.Equal(e.Meta.Attributes, want.meta.Attributes) {
		t.Fatalf("%v: %+v, want %+v", e.Key, e.Meta, want.meta)
	}
}
