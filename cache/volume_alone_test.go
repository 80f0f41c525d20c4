package cache

import (
	"strings"
	"testing"
)

// The word at the start about a volume that is left out promises what holds: it learns
// of a purge beside a volume that knows it, and alone it does not.
func TestWordAboutAVolumeThatIsLeftOut(t *testing.T) {
	for _, beside := range []bool{true, false} {
		f := newFarm(t, 1, 1)
		all := f.cfg.Volumes
		for i := range 24 {
			f.mustPut(i, 1)
		}
		f.restart(func(c *Config) { c.Volumes = all[:1] })
		if word := f.log.wait(t, "is not configured").Message; !strings.Contains(word, "if it returns beside one of the present ones") || !strings.Contains(word, "empty it first") {
			t.Errorf("it says %s", word)
		}
		if err := f.c.Purge("s", []string{"/"}, at(2)); err != nil {
			t.Fatal(err)
		}
		f.restart(func(c *Config) {
			if c.Volumes = all[1:]; beside {
				c.Volumes = all
			}
		})
		old := 0
		for i := range 24 {
			if f.second(i) == 1 {
				old++
			}
		}
		if beside && old > 0 || !beside && old == 0 {
			t.Errorf("beside the other one: %v, %d old ones are answered", beside, old)
		}
	}
}
