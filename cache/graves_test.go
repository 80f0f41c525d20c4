package cache

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The count of graves that hide a file is right whatever happens to them, and a look at
// very many comes to all of them.
func TestGravesAreCounted(t *testing.T) {
	c, _ := openOn(t, testConfig(t.TempDir()), roomy(), osFiles{}, time.Now)
	v := c.volumes[0]
	rapid.Check(t, func(t *rapid.T) {
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			h := numbered(rapid.IntRange(0, 20).Draw(t, "key"))
			v.mu.Lock()
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				v.dig(h, grave{at: 1, dug: 1, file: rapid.Bool().Draw(t, "file")})
			case 1:
				v.fill(h)
			case 2:
				v.dropGrave()
			case 3:
				v.setGrave(h, grave{dug: 1, file: rapid.Bool().Draw(t, "file")})
			default:
				v.mu.Unlock()
				lock := v.keyLock(h)
				lock.Lock()
				if err := v.empty(h); err != nil {
					t.Fatal(err)
				}
				lock.Unlock()
				v.mu.Lock()
			}
			n := 0
			for _, g := range v.graves {
				if g.file {
					n++
				}
			}
			if n != v.hiding {
				t.Fatalf("%d graves hide a file, %d are counted", n, v.hiding)
			}
			v.mu.Unlock()
		}
	})

	v.mu.Lock()
	clear(v.graves)
	v.hiding = 0
	for i := range 10 * graveStep {
		v.dig(numbered(i), grave{at: 1, dug: 1})
	}
	seen := map[hash]bool{}
	v.eachGrave(func(h hash, _ grave) { seen[h] = true })
	v.mu.Unlock()
	if len(seen) != 10*graveStep {
		t.Errorf("%d graves seen", len(seen))
	}
	v.tendGraves(time.Now())
	if len(v.graves) != 0 {
		t.Errorf("%d old graves are left", len(v.graves))
	}
}
