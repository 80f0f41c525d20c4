package cache

import (
	"errors"
	"testing"
	"time"

	"karui/cache/purge"
)

// put stores a body of one key and fails the test otherwise.
func putAt(t testing.TB, c *Cache, key Key, fetched time.Time, body string) {
	t.Helper()
	if err := c.Put(key, Meta{FetchStart: fetched}, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

func answers(c *Cache, key Key) bool {
	e, ok := c.Get(key)
	if ok {
		_ = e.Close()
	}
	return ok
}

func TestPurgeHitsWhatWasFetchedBefore(t *testing.T) {
	clk := newClock()
	cfg := testConfig(t.TempDir())
	c, _ := openOn(t, cfg, roomy(), &faulty{}, clk.Now)
	old := Key{Site: "shop", Path: "/img/a.jpg", Rest: "?v=1", Form: "webp"}
	other := Key{Site: "news", Path: "/img/a.jpg", Form: "webp"}
	beside := Key{Site: "shop", Path: "/doc/a.jpg", Form: "original"}
	for _, k := range []Key{old, other, beside} {
		putAt(t, c, k, clk.Now(), "old")
	}
	at := clk.advance(time.Second)
	if err := c.Purge("shop", []string{"/img/"}, at); err != nil {
		t.Fatal(err)
	}
	if answers(c, old) || !answers(c, other) || !answers(c, beside) {
		t.Error("the purge does not hit just what it names")
	}
	if err := c.Put(old, Meta{FetchStart: at.Add(purge.Margin - 1)}, []byte("old")); !errors.Is(err, ErrSuperseded) {
		t.Errorf("a Put within the margin: %v", err)
	}
	putAt(t, c, old, at.Add(purge.Margin), "new")
	if !answers(c, old) {
		t.Error("what was fetched after the purge is missing")
	}
}
