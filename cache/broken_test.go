package cache

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// overwrite changes a file in place and makes sure that its time tells.
func overwrite(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	touch := time.Now().Add(time.Duration(len(b)+1) * time.Minute)
	if err := os.Chtimes(name, touch, touch); err != nil {
		t.Fatal(err)
	}
}

func TestBrokenFiles(t *testing.T) {
	key := Key{Site: "shop", Path: "/a.jpg", Form: "webp"}
	other := Key{Site: "shop", Path: "/b.jpg", Form: "webp"}
	large := bytes.Repeat([]byte("0123456789"), 20_000)
	for name, spoil := range map[string]func(t *testing.T, file string, b []byte){
		"empty":          func(t *testing.T, file string, _ []byte) { overwrite(t, file, nil) },
		"zeros":          func(t *testing.T, file string, b []byte) { overwrite(t, file, make([]byte, len(b))) },
		"half":           func(t *testing.T, file string, b []byte) { overwrite(t, file, b[:len(b)/2]) },
		"last byte gone": func(t *testing.T, file string, b []byte) { overwrite(t, file, b[:len(b)-1]) },
		"one byte more":  func(t *testing.T, file string, b []byte) { overwrite(t, file, append(bytes.Clone(b), 0)) },
		"tail of zeros": func(t *testing.T, file string, b []byte) {
			b = bytes.Clone(b)
			clear(b[len(b)-4096:])
			overwrite(t, file, b)
		},
		"foreign": func(t *testing.T, file string, _ []byte) { overwrite(t, file, []byte("GIF89a, and no entry at all")) },
		"older version": func(t *testing.T, file string, b []byte) {
			b = bytes.Clone(b)
			binary.LittleEndian.PutUint32(b[8:], formatVersion-1)
			overwrite(t, file, b)
		},
		"newer version": func(t *testing.T, file string, b []byte) {
			b = bytes.Clone(b)
			binary.LittleEndian.PutUint32(b[8:], formatVersion+1)
			overwrite(t, file, b)
		},
		"of another key": func(t *testing.T, file string, _ []byte) {
			overwrite(t, file, append(encodeHead(other, Meta{FetchStart: at(1)}, 1, 0), 'x'))
		},
		"symbolic link": func(t *testing.T, file string, b []byte) {
			elsewhere := filepath.Join(t.TempDir(), "elsewhere")
			overwrite(t, elsewhere, b)
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(elsewhere, file); err != nil {
				t.Fatal(err)
			}
		},
		"folder": func(t *testing.T, file string, b []byte) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(file, "a", "b"), 0o700); err != nil {
				t.Fatal(err)
			}
			overwrite(t, filepath.Join(file, "a", "c"), b)
		},
		"pipe": func(t *testing.T, file string, _ []byte) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mkfifo(file, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, restart := range []bool{false, true} {
			for _, size := range []int{5000, len(large)} {
				t.Run(name, func(t *testing.T) {
					cfg := testConfig(t.TempDir())
					cfg.Memory = 0
					c, _ := openOn(t, cfg, roomy(), osFiles{}, newClock().Now)
					meta := Meta{FetchStart: at(1)}
					for _, k := range []Key{key, other} {
						if err := c.Put(k, meta, large[:size]); err != nil {
							t.Fatal(err)
						}
						check(t, c, k, meta, large[:size]) // verified now
					}
					file := c.volumes[0].name(key.hash())
					b, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					spoil(t, file, b)
					if restart {
						if err := c.Close(); err != nil {
							t.Fatal(err)
						}
						cfg.Memory = 8 << 20
						c, _ = openOn(t, cfg, roomy(), osFiles{}, newClock().Now)
					}
					if e, ok := c.Get(key); ok {
						t.Fatalf("answered with %d bytes", e.Size())
					}
					settle(c)
					if _, err := os.Lstat(file); !os.IsNotExist(err) {
						t.Errorf("still there: %v", err)
					}
					s := c.Stats().Volumes[0]
					if s.Broken != 1 || s.Files != 1 || s.State != StateOK {
						t.Errorf("%+v, want 1 broken, 1 left, and a volume that is well", s)
					}
					check(t, c, other, meta, large[:size])
					if err := c.Put(key, meta, large[:size]); err != nil {
						t.Fatal(err)
					}
					check(t, c, key, meta, large[:size])
				})
			}
		}
	}
}

func TestSwappedFiles(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Memory = 0
	c, _ := openOn(t, cfg, roomy(), osFiles{}, newClock().Now)
	a, b := Key{Path: "/a"}, Key{Path: "/b"}
	for _, k := range []Key{a, b} {
		if err := c.Put(k, Meta{FetchStart: at(1)}, []byte("same length: "+k.Path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Renameat2(unix.AT_FDCWD, c.volumes[0].name(a.hash()), unix.AT_FDCWD, c.volumes[0].name(b.hash()), unix.RENAME_EXCHANGE); err != nil {
		t.Skip("the file system cannot exchange files:", err)
	}
	for _, k := range []Key{a, b} {
		if _, ok := c.Get(k); ok {
			t.Errorf("%v is answered with the other's body", k)
		}
	}
	settle(c)
	if n := len(filesIn(t, filepath.Join(cfg.Volumes[0].Path, "entries"))); n != 0 {
		t.Errorf("%d files are still there", n)
	}
}

// Every bit that counts: a file with one byte changed is a miss, or its entry is
// right in every byte (the change hit the slot that does not hold, or padding).
func TestFlippedBits(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Memory = 0
	c, _ := openOn(t, cfg, roomy(), osFiles{}, newClock().Now)
	key := Key{Site: "shop", Path: "/a.jpg", Rest: "v=2", Form: "webp"}
	older := Meta{FetchStart: at(1), Expires: at(500), Attributes: []byte("older attributes")}
	newer := Meta{FetchStart: at(2), Expires: at(900), Attributes: []byte("newer attributes")}
	want := []byte("a body of some bytes, which are few, so that all can be changed")
	hits, misses := 0, 0
	for i := 0; ; i++ {
		if err := c.Put(key, older, want); err != nil {
			t.Fatal(err)
		}
		e, ok := c.Get(key)
		if !ok {
			t.Fatal("miss after Put")
		}
		if err := c.Update(e, newer); err != nil {
			t.Fatal(err)
		}
		_ = e.Close()
		check(t, c, key, newer, want)
		file := c.volumes[0].name(key.hash())
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if i == len(b) {
			break
		}
		b[i] ^= 1 << (i % 8)
		overwrite(t, file, b)
		if e, ok := c.Get(key); ok {
			hits++
			meta := older // an update that is damaged is one that was never made
			if e.Meta.FetchStart.Equal(newer.FetchStart) {
				meta = newer
			}
			_ = e.Close()
			check(t, c, key, meta, want)
		} else {
			misses++
		}
		settle(c)
		if err := c.Delete(key, at(2)); err != nil {
			t.Fatal(err)
		}
		c.volumes[0].mu.Lock()
		clear(c.volumes[0].graves) // the next Put is as old as this one
		c.volumes[0].mu.Unlock()
	}
	t.Logf("%d changed bytes were misses, %d harmless", misses, hits)
	if misses < fixedSize+key.size()+len(want) {
		t.Errorf("only %d misses", misses)
	}
}

// What does not belong to the cache stays.
func TestStrangersAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	c, _ := openOn(t, testConfig(dir), roomy(), osFiles{}, newClock().Now)
	key := Key{Path: "/a"}
	if err := c.Put(key, Meta{FetchStart: at(1)}, []byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Dir(c.volumes[0].name(key.hash()))
	strangers := []string{filepath.Join(dir, "README"), filepath.Join(sub, "lost"), filepath.Join(dir, "entries", "zz")}
	for _, name := range strangers {
		overwrite(t, name, []byte("mine"))
	}
	c, _ = openOn(t, testConfig(dir), roomy(), osFiles{}, newClock().Now)
	check(t, c, key, Meta{FetchStart: at(1)}, []byte("a"))
	for _, name := range strangers {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	if n := c.Stats().Volumes[0].Files; n != 1 {
		t.Errorf("%d files are counted", n)
	}
}

func TestLeftoversGo(t *testing.T) {
	dir := t.TempDir()
	c, _ := openOn(t, testConfig(dir), roomy(), osFiles{}, newClock().Now)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"OTHERRUN-1", "OTHERRUN-2"} {
		overwrite(t, filepath.Join(dir, "tmp", name), []byte("half a fi"))
	}
	c, _ = openOn(t, testConfig(dir), roomy(), osFiles{}, newClock().Now)
	if left := filesIn(t, filepath.Join(dir, "tmp")); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	// A file of this very process must survive a second look (a reload).
	mine := filepath.Join(dir, "tmp", c.volumes[0].run+"x")
	overwrite(t, mine, []byte("being written"))
	c.volumes[0].clearTemporary(t.Context())
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

// A folder that has an entry's name must not keep the entry from being stored.
func TestFolderInTheWay(t *testing.T) {
	for name, inside := range map[string]string{"empty": "", "full": "a/b"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c, _ := openOn(t, testConfig(dir), roomy(), osFiles{}, newClock().Now)
			key, meta := Key{Path: "/a.jpg"}, Meta{FetchStart: at(1)}
			elsewhere := filepath.Join(dir, "elsewhere")
			overwrite(t, elsewhere, []byte("kept"))
			file := c.volumes[0].name(key.hash())
			if err := os.MkdirAll(filepath.Join(file, inside), 0o700); err != nil {
				t.Fatal(err)
			}
			if inside != "" {
				if err := os.Symlink(elsewhere, filepath.Join(file, "link")); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Put(key, meta, []byte("body")); err != nil {
				t.Fatal(err)
			}
			check(t, c, key, meta, []byte("body"))
			if s := c.Stats().Volumes[0]; s.State != StateOK || s.Broken != 1 || s.Files != 1 || s.WriteErrors != 0 {
				t.Errorf("%+v", s)
			}
			if b, err := os.ReadFile(elsewhere); err != nil || string(b) != "kept" {
				t.Errorf("what a link pointed at: %q, %v", b, err)
			}
		})
	}
}
