package acceptance

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"karui/internal/origintest"
)

// An origin that says nothing costs its own site's misses, and nothing else; and
// once it speaks again, they are back by themselves.
func TestSlowOriginIsLeftAloneUntilItIsWell(t *testing.T) {
	t.Parallel()
	shop, blog := origintest.New(t), origintest.New(t)
	body := photo(t, 1)
	gate := origintest.NewGate()
	defer gate.Open()
	shop.SetDefault(func(r origintest.Request) origintest.Answer {
		a := origintest.Image("image/jpeg", body)
		if r.Path() != "/hit.jpg" {
			a.Hold = gate
		}
		return a
	})
	blog.SetDefault(func(origintest.Request) origintest.Answer { return origintest.Image("image/jpeg", body) })
	k := serve(t, shop, with("stress.latency", "500ms"), with("stress.window", "5s"), with("stress.min_samples", 10), with("origin.deadline", "60s"),
		with("sites", []any{
			site("shop", shop.URL(), map[string]any{"default": true}), site("blog", blog.URL(), map[string]any{"hosts": []any{"blog.example"}}),
		}))
	k.settle("/hit.jpg", takesWebP)
	for i := range 20 {
		c := k.dial()
		if _, err := c.Write(request{target: fmt.Sprintf("/hangs%d.jpg", i), host: "www.example.com", fields: []string{takesWebP}}.bytes()); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	next := func() string { n++; return fmt.Sprintf("/new%d.jpg", n) }
	shed := func(a *reply) bool {
		return a.status == 503 && a.header.Get("X-Karui-Reason") == "latency" && a.header.Get("Cache-Control") == "no-store"
	}
	// A request that is let through waits for the gate: so each has a connection and a while of its own.
	ask := func() bool {
		answer := make(chan *reply, 1)
		q := request{target: next(), host: "www.example.com", fields: []string{takesWebP}}
		go func() { answer <- k.try(q) }()
		select {
		case a := <-answer:
			return shed(a)
		case <-time.After(200 * time.Millisecond):
			return false
		}
	}
	eventually(t, 20*time.Second, "503 for latency", ask)
	if a := k.get("/hit.jpg", takesWebP); a.karui() != "hit" {
		t.Errorf("a hit of the slow site: %v", a)
	}
	for range 5 {
		if a := k.do(request{target: next(), host: "blog.example", fields: []string{takesAny}}); a.status != 200 || !bytes.Equal(a.body, body) {
			t.Errorf("a miss of another site: %v", a)
		}
	}
	if a := k.get("/.karui/ping.jpg"); a.status != 200 {
		t.Errorf("the ping: %v", a)
	}
	gate.Open()
	eventually(t, 30*time.Second, "misses again", func() bool {
		for range 3 { // one a second is let through all the time
			if a := k.get(next(), takesAny); a.status != 200 || !bytes.Equal(a.body, body) {
				return false
			}
		}
		return true
	})
}
