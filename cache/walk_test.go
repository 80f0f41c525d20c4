package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// walk walks all folders.
func (v *volume) walk(ctx context.Context, visit func(h hash, fetched int64) error) error {
	p := newPace(v.now)
	for i := range folders {
		if err := v.walkFolder(ctx, i, p, visit); err != nil {
			return err
		}
	}
	return nil
}

// A walk comes to every file, loaded or not, and to nothing else.
func TestWalkComesToEveryFile(t *testing.T) {
	for _, unloaded := range []bool{false, true} {
		files := &faulty{}
		c, _ := openOn(t, testConfig(t.TempDir()), roomy(), files, time.Now)
		v := c.volumes[0]
		want := map[hash]int64{}
		for i := range 300 {
			k := Key{Path: fmt.Sprint(i)}
			if err := c.Put(k, Meta{FetchStart: at(i)}, []byte("x")); err != nil {
				t.Fatal(err)
			}
			want[k.hash()] = toNano(at(i))
			if unloaded {
				want[k.hash()] = 0
			}
		}
		some := Key{Path: "0"}.hash()
		for _, foreign := range []string{v.name(some) + ".bak", v.path + "/entries/" + some.String()[:2] + "/readme"} {
			if err := os.WriteFile(foreign, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if unloaded {
			v.mu.Lock()
			v.index, v.loaded = newIndex(), [folders]bool{}
			v.mu.Unlock()
		}
		err := v.walk(t.Context(), func(h hash, fetched int64) error {
			if w, ok := want[h]; !ok || w != fetched {
				t.Errorf("visit %s of %d, want %d (%v)", h, fetched, w, ok)
			}
			delete(want, h)
			return nil
		})
		if err != nil || len(want) != 0 {
			t.Errorf("%v, %d files not visited", err, len(want))
		}

		enough, visits := errors.New("enough"), 0
		err = v.walk(t.Context(), func(hash, int64) error {
			if visits++; visits == 3 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || visits != 3 {
			t.Errorf("%d visits, %v", visits, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := v.walk(ctx, func(hash, int64) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		files.break_(func(op, _ string) error {
			if op == "names" {
				return syscall.EIO
			}
			return nil
		})
		if err := v.walk(t.Context(), func(hash, int64) error { return nil }); !errors.Is(err, syscall.EIO) {
			t.Errorf("a disk that fails: %v", err)
		}
		if s := v.stats().State; s != StateOut {
			t.Errorf("the volume is %s after it", s)
		}
	}
}

// Work rests as long as it took, and ends with its context.
func TestPaceRestsAsLongAsItWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var worked time.Duration // on top of the bubble's clock, which stands still while work is done
		p := newPace(func() time.Time { return time.Now().Add(worked) })
		begin := time.Now()
		for range 100 * paceSteps {
			worked += 100 * time.Microsecond
			if err := p.step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if rested := time.Since(begin); rested < worked*95/100 || rested > worked {
			t.Errorf("rested %v of %v", rested, worked)
		}
		begin = time.Now()
		worked += time.Hour
		for range paceSteps {
			_ = p.step(t.Context())
		}
		if rested := time.Since(begin); rested != paceRest {
			t.Errorf("rested %v after a disk that hung, want %v", rested, paceRest)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		worked += time.Hour
		var err error
		for range paceSteps {
			err = p.step(ctx)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a rest goes on after its context: %v", err)
		}
	})
}
