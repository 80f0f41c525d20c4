package acceptance

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"testing"
	"time"

	"karui/internal/origintest"
)

// cacheFiles are the files below the volume, with their sizes.
func (k *instance) cacheFiles() map[string]int64 {
	files := map[string]int64{}
	_ = filepath.WalkDir(k.cache, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				files[path] = info.Size()
			}
		}
		return nil
	})
	return files
}

// written waits until the volume has come to rest.
func (k *instance) written() {
	k.t.Helper()
	last, since := fmt.Sprint(k.cacheFiles()), time.Now()
	eventually(k.t, 30*time.Second, "the volume at rest", func() bool {
		now := fmt.Sprint(k.cacheFiles())
		if now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > time.Second
	})
	if len(k.cacheFiles()) == 0 {
		k.t.Fatal("nothing was written to the volume")
	}
}

// gallery is a set of pictures that are settled once.
type gallery struct {
	originals, variants map[string][]byte
}

func (k *instance) gallery(origin *origintest.Origin, n int) gallery {
	k.t.Helper()
	g := gallery{map[string][]byte{}, map[string][]byte{}}
	for i := range n {
		target := fmt.Sprintf("/g/%d.jpg", i)
		g.originals[target] = photo(k.t, uint64(300+i))
		origin.Set(target, origintest.Image("image/jpeg", g.originals[target], cc("max-age=36000")))
	}
	for target := range g.originals {
		a := k.settle(target, takesWebP)
		if !a.webp() {
			k.t.Fatalf("%s: %v", target, a)
		}
		g.variants[target] = a.body
		k.get(target, takesAny)
	}
	k.written()
	return g
}

// check asks for everything and wants every byte right: the old variant, a new one of the same picture, or the original.
func (k *instance) check(g gallery, when string) {
	k.t.Helper()
	for target, original := range g.originals {
		for range 2 {
			a := k.get(target, takesWebP)
			switch {
			case a.status != 200 || a.err != nil:
				k.t.Errorf("%s, %s: %v", when, target, a)
			case bytes.Equal(a.body, original) || bytes.Equal(a.body, g.variants[target]):
			default:
				for _, problem := range samePicture(original, a.body) {
					k.t.Errorf("%s, %s: %s", when, target, problem)
				}
			}
			if p := k.get(target, takesAny); p.status != 200 || !bytes.Equal(p.body, original) {
				k.t.Errorf("%s, %s: a plain viewer got %v", when, target, p)
			}
		}
	}
}

func TestCacheSurvivesAKillAndARestart(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	k := serve(t, origin)
	g := k.gallery(origin, 8)
	for _, end := range []func(){k.kill, k.stop, k.kill} {
		before := origin.Count("")
		end()
		k.start()
		for target, variant := range g.variants {
			var a *reply
			if !became(10*time.Second, func() bool { a = k.get(target, takesWebP); return a.karui() == "hit" }) || !bytes.Equal(a.body, variant) {
				t.Errorf("%s after the restart: %v", target, a)
			}
			if got := a.maxAge(); got > 36000 || got < 35000 {
				t.Errorf("%s: %d s left of 36000", target, got)
			}
			if p := k.get(target, takesAny); !bytes.Equal(p.body, g.originals[target]) {
				t.Errorf("%s after the restart: %v", target, p)
			}
		}
		if n := origin.Count("") - before; n != 0 {
			t.Errorf("%d requests to the origin for what was on the disk", n)
		}
	}
}

// damage alters every file of the volume in a way that depends on its number.
func damage(t *testing.T, files map[string]int64, ways []func(name string, b []byte) []byte) {
	t.Helper()
	var names []string
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for i, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, ways[i%len(ways)](name, b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func flipped(at func(n int) int) func(string, []byte) []byte {
	return func(_ string, b []byte) []byte {
		if len(b) > 0 {
			b[min(max(0, at(len(b))), len(b)-1)] ^= 0x41
		}
		return b
	}
}

// Whatever happened to the files between two runs, nothing broken is served and the cache heals.
func TestDamagedCacheFilesHealThemselves(t *testing.T) {
	t.Parallel()
	var donor []byte
	ways := map[string]func(string, []byte) []byte{
		"zero bytes":    func(string, []byte) []byte { return nil },
		"half":          func(_ string, b []byte) []byte { return b[:len(b)/2] },
		"last byte off": func(_ string, b []byte) []byte { return b[:max(0, len(b)-1)] },
		"one more byte": func(_ string, b []byte) []byte { return append(b, 'x') },
		"first byte":    flipped(func(int) int { return 0 }),
		"early byte":    flipped(func(n int) int { return min(n-1, 20) }),
		"middle byte":   flipped(func(n int) int { return n / 2 }),
		"late byte":     flipped(func(n int) int { return n - 5 }),
		"zeroes":        func(_ string, b []byte) []byte { return make([]byte, len(b)) },
		"foreign text":  func(string, []byte) []byte { return []byte("#!/bin/sh\necho not an entry\n") },
		"foreign image": func(string, []byte) []byte { return photo(t, 999) },
		"another entry": func(_ string, b []byte) []byte { mine := donor; donor = b; return mine },
	}
	origin := origintest.New(t)
	k := serve(t, origin)
	g := k.gallery(origin, 6)
	for name, way := range ways {
		if testing.Short() && len(name)%2 == 1 {
			continue
		}
		files := k.cacheFiles()
		k.kill()
		for file := range files {
			if b, err := os.ReadFile(file); err == nil {
				donor = b
			}
		}
		damage(t, files, []func(string, []byte) []byte{way})
		k.start()
		k.check(g, name)
		for target := range g.originals {
			k.settle(target, takesWebP)
		}
		k.written()
		k.check(g, name+", healed")
	}
}

func TestForeignFilesInTheVolumeDoNoHarm(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	k := serve(t, origin)
	g := k.gallery(origin, 3)
	k.kill()
	for name := range k.cacheFiles() {
		dir := filepath.Dir(name)
		for stray, body := range map[string]string{"README": "hello", ".hidden": "x", "empty": "", "tmp-123": "half", filepath.Base(name) + ".tmp": "half", filepath.Base(name) + "~": "copy", "名前": "x"} {
			if err := os.WriteFile(filepath.Join(dir, stray), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(dir, "dir", "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
		_ = os.Symlink("/etc/passwd", filepath.Join(dir, "link"))
		_ = os.Symlink(".", filepath.Join(dir, "loop"))
	}
	k.start()
	k.check(g, "with foreign files")
	if _, err := os.Stat("/etc/passwd"); err != nil {
		t.Errorf("a link out of the volume was followed: %v", err)
	}
}

// Damage under a running process is noticed, too, once the body is not in memory.
func TestDamageUnderARunningProcessIsNoticed(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	k := serve(t, origin, with("cache.memory", "64KiB"))
	g := k.gallery(origin, 12)
	damage(t, k.cacheFiles(), []func(string, []byte) []byte{
		flipped(func(n int) int { return n - 9 }),
		func(_ string, b []byte) []byte { return b[:len(b)/2] },
		func(string, []byte) []byte { return nil },
	})
	k.check(g, "damaged under the process")
	for name := range k.cacheFiles() {
		_ = os.Remove(name)
	}
	k.check(g, "removed under the process")
}

func TestMarkersSurviveARestart(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := stubborn(t)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", body))
	k := serve(t, origin)
	k.settle("/a.jpg", takesWebP)
	k.written()
	k.kill()
	k.start()
	a := k.get("/a.jpg", takesWebP)
	if a.karui() != "original" || !bytes.Equal(a.body, body) || origin.Count("/a.jpg") != 1 {
		t.Errorf("%v after %d requests", a, origin.Count("/a.jpg"))
	}
}
