package cache

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"karui/cache/purge"
)

// TestPurgesAgainstAModel plays random histories of purges among Put, Get, Update,
// Delete, eviction, restarts, volumes that fail and return, and that are not configured
// for a while. The model remembers every purge for ever: nothing that one hits is ever
// answered; and what none hits is, right after it was put.
func TestPurgesAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFarmOf(t, rapid.Bool().Draw(rt, "queued"), rapid.Bool().Draw(rt, "memory"), 1, 1)
		defer func() { _ = f.c.Close() }()
		all := f.cfg.Volumes
		var purges []purge.Purge
		born := map[string]time.Time{} // by body
		paths := []string{"/a/1", "/a/2", "/b/1", "/b/%31"}
		key := func(t *rapid.T) Key {
			return Key{Site: "s", Path: rapid.SampledFrom(paths).Draw(t, "path"), Form: "webp"}
		}
		ago := func(t *rapid.T, most int) time.Time {
			return f.clock.Now().Add(-time.Duration(rapid.IntRange(0, most).Draw(t, "half seconds ago")) * time.Second / 2)
		}
		hit := func(path string, began time.Time) bool {
			for _, p := range purges {
				if strings.HasPrefix(strings.ReplaceAll(path, "%31", "1"), p.Prefix) && began.Before(p.At.Add(purge.Margin)) {
					return true
				}
			}
			return false
		}
		var held *Entry
		look := func(t *rapid.T, k Key) (serial string) {
			e, ok := f.c.Get(k)
			if !ok {
				return ""
			}
			serial = string(body(f.t, e))
			if hit(k.Path, born[serial]) {
				t.Fatalf("%s is answered: body %s was fetched at %v; purges: %+v", k.Path, serial, born[serial].Sub(base), purges)
			}
			if held != nil {
				_ = held.Close()
			}
			held = e
			return serial
		}
		sound := func() bool {
			for _, v := range f.c.volumes {
				if v.working() != nil {
					return false
				}
			}
			return len(f.c.volumes) == len(all)
		}
		f.clock.advance(time.Hour)
		seldom := func(t *rapid.T) bool { return rapid.IntRange(0, 3).Draw(t, "seldom") == 0 }
		restart := func(t *rapid.T, change func(*Config)) {
			if seldom(t) { // it takes longer than all else
				f.restart(change)
			}
		}
		serial := 0
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, began := key(t), ago(t, 12)
				m := Meta{FetchStart: began}
				if rapid.Bool().Draw(t, "of an older body") {
					m.BodyStart = began.Add(-time.Duration(rapid.IntRange(1, 8).Draw(t, "older")) * time.Second)
					began = m.BodyStart
				}
				serial++
				b := fmt.Sprint(serial)
				born[b] = began
				err := f.c.Put(k, m, []byte(b))
				if got := look(t, k); err == nil && sound() && !hit(k.Path, began) && got != b {
					t.Fatalf("%s was put and is not answered, but %q", b, got)
				}
				if err == nil && hit(k.Path, began) {
					t.Fatalf("%s was purged, and a Put of it said nothing", b)
				}
			},
			"get": func(t *rapid.T) { look(t, key(t)) },
			"update": func(t *rapid.T) {
				if held != nil {
					attributes := strings.Repeat("a", rapid.SampledFrom([]int{0, 3000}).Draw(t, "attributes"))
					_ = f.c.Update(held, Meta{FetchStart: f.clock.Now(), Attributes: []byte(attributes)}) // loses or not
					look(t, held.Key)
				}
			},
			"delete": func(t *rapid.T) { _ = f.c.Delete(key(t), ago(t, 4)) },
			"purge": func(t *rapid.T) {
				p := purge.Purge{Site: "s", Prefix: rapid.SampledFrom([]string{"/", "/a/", "/a/1", "/b/1"}).Draw(t, "prefix"), At: ago(t, 6)}
				purges = append(purges, p)
				if err := f.c.Purge(p.Site, []string{p.Prefix}, p.At); err != nil {
					t.Fatal(err)
				}
				for _, path := range paths {
					look(t, Key{Site: "s", Path: path, Form: "webp"})
				}
			},
			"evict": func(t *rapid.T) {
				v := rapid.SampledFrom(f.c.volumes).Draw(t, "volume")
				v.evict(f.t.Context(), 0, 1, nil)
			},
			"pass": func(t *rapid.T) {
				f.clock.advance(time.Duration(rapid.SampledFrom([]int{1, 3, 60}).Draw(t, "seconds")) * time.Second)
			},
			"forget": func(t *rapid.T) {
				if seldom(t) {
					f.forgotten()
				}
			},
			"fail": func(t *rapid.T) {
				v := rapid.SampledFrom(f.c.volumes).Draw(t, "volume")
				for _, other := range f.c.volumes {
					if other != v && other.working() == nil { // one works on
						v.fault(syscall.EIO, true)
						return
					}
				}
			},
			"heal": func(*rapid.T) {
				for _, v := range f.c.volumes {
					if v.working() != nil {
						v.retry(f.clock.advance(time.Minute))
						f.log.wait(f.t, "works again")
						f.loaded(1)
					}
				}
			},
			"restart": func(t *rapid.T) { restart(t, nil) },
			"leave a volume out": func(t *rapid.T) {
				if !sound() {
					return // one that knows of a purge alone cannot tell the others when it is not there
				}
				for _, v := range f.c.volumes {
					v.tendPurges()
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "without")
				restart(t, func(c *Config) { c.Volumes = append(append([]VolumeConfig{}, all[:i]...), all[i+1:]...) })
			},
			"all volumes": func(t *rapid.T) { restart(t, func(c *Config) { c.Volumes = all }) },
		})
		if held != nil {
			_ = held.Close()
		}
	})
}
