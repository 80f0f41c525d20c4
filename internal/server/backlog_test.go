package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"karui/convert"
	"karui/internal/api"
	"karui/internal/origintest"
	"karui/internal/sample"
)

const dialToken = "editors-token-0123"

func TestBacklogIsShownClearedAndKept(t *testing.T) {
	volume := ""
	keep := func(c *Config) {
		withTokens(c)
		c.Admin.Tokens = append(c.Admin.Tokens, TokenConfig{Name: "editors", Token: dialToken, Rights: []string{"read", "dial"}, Sites: []string{"blog"}})
		c.Admin.Tokens[0].Rights = append(c.Admin.Tokens[0].Rights, "purge")
		c.Dial.Mode = "3" // nothing new is made
		if volume == "" {
			volume = c.Cache.Volumes[0].Path
		}
		c.Cache.Volumes[0].Path = volume
	}
	fill := func(r *running) {
		t.Helper()
		r.origin.SetDefault(func(origintest.Request) origintest.Answer { return origintest.Image("image/jpeg", sample.Photo()) })
		for _, path := range []string{"/a.jpg?x=1", "/b.jpg", "/b.jpg", "/b.jpg"} {
			for _, host := range []string{"www.example.com", "blog.example.com"} {
				req, err := http.NewRequestWithContext(t.Context(), "GET", r.url+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Host = host
				req.Header.Set("Accept", "image/webp")
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if resp.StatusCode != 200 || resp.Header.Get("X-Karui") != "miss" {
					t.Fatalf("%s %s: %d %v", host, path, resp.StatusCode, resp.Header)
				}
			}
		}
	}
	r := start(t, keep)
	fill(r)
	// What was answered is written up when the whole picture is there.
	var all, own BacklogAnswer
	for began := time.Now(); time.Since(began) < limit && all.Entries < 4; {
		all = BacklogAnswer{}
		if status := r.operate("GET", "/backlog", opsToken, &all); status != 200 {
			t.Fatalf("status %d", status)
		}
	}
	if len(all.Sites) != 2 || all.Sites[0].Site != "blog" || all.Sites[1].Entries != 2 || all.MaxEntries == 0 || all.Bytes == 0 || all.MaxBytes == 0 {
		t.Fatalf("%+v", all)
	}
	shop := all.Sites[1]
	if shop.WaitsFor != "dial" || shop.Oldest.IsZero() || len(shop.Next) != 2 {
		t.Errorf("%+v", shop)
	}
	for _, e := range shop.Next {
		if e.Format != "webp" || e.Asked <= 0 || e.First.IsZero() || e.Last.Before(e.First) || e.Path != "/a.jpg?x=1" && e.Path != "/b.jpg" {
			t.Errorf("%+v", e)
		}
	}
	if status := r.operate("GET", "/backlog", staffToken, &own); status != 200 || own.Entries != 2 || len(own.Sites) != 1 || own.Sites[0].Site != "blog" || own.MaxBytes != 0 || own.Dropped != nil {
		t.Errorf("a token for one site: %d %+v", status, own)
	}
	if _, d := r.dials("GET", staffToken, nil); len(d.Backlog) != 1 || d.Backlog["blog"] != 2 {
		t.Errorf("the dial: %v", d.Backlog)
	}
	var stats api.Stats
	if status := r.operate("GET", "/stats", opsToken, &stats); status != 200 || stats.Backlog == nil || stats.Backlog.Entries != 4 || stats.Backlog.Oldest.IsZero() || stats.Sites[0].Backlog != 2 {
		t.Errorf("stats: %d %+v", status, stats.Backlog)
	}
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"/backlog", staffToken, 403}, {"/backlog/shop", dialToken, 403}, {"/backlog/nowhere", opsToken, 404}, {"/backlog", "", 401},
	} {
		if status := r.operate("DELETE", c.path, c.token, nil); status != c.want {
			t.Errorf("DELETE %s: %d, want %d", c.path, status, c.want)
		}
	}
	r.stop()
	ended := <-r.ended
	r.ended <- ended

	again := start(t, keep)
	if status := again.operate("GET", "/backlog", opsToken, &all); status != 200 || all.Entries != 4 {
		t.Fatalf("after a restart: %d %+v", status, all)
	}
	_, _, metrics, err := again.get(again.admin+"/metrics", "Authorization: Bearer "+opsToken)
	if text := string(metrics); err != nil || !strings.Contains(text, `karui_backlog_entries{site="shop"} 2`) || !strings.Contains(text, `karui_backlog_dropped_total{cause="full"} 0`) {
		t.Errorf("metrics lack the backlog: %v", err)
	}
	// What is purged is not made any more; the path counts, whatever query was named.
	if status, _, refusal := again.purge(opsToken, `{"site": "shop", "prefixes": ["/a.jpg?x=1"], "exact": true}`); status != 200 {
		t.Fatalf("purge: %d %+v", status, refusal)
	}
	all = BacklogAnswer{}
	if status := again.operate("GET", "/backlog", opsToken, &all); status != 200 || all.Entries != 3 || all.Dropped["purged"] != 1 {
		t.Errorf("after a purge: %d %+v", status, all)
	}
	// Whoever may set the dial of some sites clears theirs.
	var cleared BacklogCleared
	if status := again.operate("DELETE", "/backlog", dialToken, &cleared); status != 200 || cleared.Dropped != 2 {
		t.Errorf("%d %+v", status, cleared)
	}
	if status := again.operate("DELETE", "/backlog/shop", opsToken, &cleared); status != 200 || cleared.Dropped != 1 {
		t.Errorf("%d %+v", status, cleared)
	}
	if status := again.operate("GET", "/backlog", opsToken, &all); status != 200 || all.Entries != 0 || len(all.Sites) != 0 || all.Dropped["cleared"] != 3 {
		t.Errorf("%d %+v", status, all)
	}
}

func TestQueuesAreLookedAtOnceInAWhile(t *testing.T) {
	var stats convert.Stats
	looks := 0
	now := time.Now()
	q := queues{now: func() time.Time { return now }, stats: func() convert.Stats { looks++; return stats }}
	stats.Load = convert.Load{Workers: 2, Busy: 1, Done: 100, BusyTime: 100 * time.Second}
	if fast, slow := q.look(); fast.Workers != 2 || fast.Busy != 1 || fast.Each != time.Second || slow.Workers != 0 {
		t.Errorf("%+v %+v", fast, slow)
	}
	stats.Load = convert.Load{Workers: 2, Busy: 2, Waiting: 3, OldestWait: time.Second, Done: 110, BusyTime: 101 * time.Second}
	now = now.Add(queuesFor / 2)
	if fast, _ := q.look(); fast.Waiting != 0 || looks != 1 {
		t.Errorf("%+v after %d looks", fast, looks)
	}
	now = now.Add(queuesFor)
	if fast, _ := q.look(); fast.Waiting != 3 || fast.Oldest != time.Second || fast.Each != time.Second || looks != 2 {
		t.Errorf("%+v after %d looks", fast, looks)
	}
	now = now.Add(eachOver)
	if fast, _ := q.look(); fast.Each != 100*time.Millisecond {
		t.Errorf("%+v: the mean is not that of late", fast)
	}
	now = now.Add(eachOver)
	if fast, _ := q.look(); fast.Each != 100*time.Millisecond {
		t.Errorf("%+v: the mean is forgotten while nothing is made", fast)
	}
}
