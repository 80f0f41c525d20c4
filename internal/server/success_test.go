package server

import (
	"encoding/json"
	"net/http"
	"testing"

	"karui/internal/origintest"
)

func (r *running) successes(token string) (answer SuccessAnswer) {
	r.t.Helper()
	_, _, text := r.call("GET", "/success", token, nil)
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
	return answer
}

func TestSuccessIsCountedOverARestart(t *testing.T) {
	tokens := []TokenConfig{
		{Name: "all", Token: "all-0123456789", Rights: []string{"read"}},
		{Name: "shop", Token: "shop-0123456789", Rights: []string{"read"}, Sites: []string{"shop"}},
		{Name: "other", Token: "other-0123456789", Rights: []string{"read"}, Sites: []string{"other"}},
	}
	var kept Config
	r := start(t, func(c *Config) {
		twoPlaces(t, c)
		c.Sites[0].Origins = c.Sites[0].Origins[:1]
		c.Admin.Tokens = tokens
		kept = *c
	})
	r.origin.Set("/good.txt", origintest.Text(http.StatusOK, "text/plain", "hello"))
	r.origin.Set("/bad.txt", origintest.Text(http.StatusInternalServerError, "text/plain", "no"))
	for range 3 {
		if status, _, _, err := r.get(r.url + "/good.txt"); status != http.StatusOK {
			t.Fatalf("%d, %v", status, err)
		}
	}
	// A file that is not there is an answer like any other.
	for path, want := range map[string]int{"/bad.txt": 503, "/missing.txt": 404} {
		if status, _, _, err := r.get(r.url + path); status != want {
			t.Fatalf("%s: %d, %v", path, status, err)
		}
	}
	check := func(r *running) {
		t.Helper()
		a := r.successes("all-0123456789")
		if a.All == nil || a.All.LastDay.Good != 4 || a.All.LastDay.Total != 5 || a.Sites["shop"].LastDay != a.All.LastDay ||
			len(a.All.Reasons) != 1 || a.All.Reasons[0].Word != "origin" || a.MinuteTarget != 0.999 {
			t.Errorf("%+v", a)
		}
		if a := r.successes("shop-0123456789"); a.All != nil || a.Sites["shop"].LastDay.Total != 5 {
			t.Errorf("%+v", a)
		}
		if a := r.successes("other-0123456789"); a.All != nil || len(a.Sites) != 0 {
			t.Errorf("%+v", a)
		}
	}
	check(r)
	r.stop()
	err := <-r.ended
	r.ended <- err // for the clean-up
	again := start(t, func(c *Config) { *c = kept })
	check(again)
}
