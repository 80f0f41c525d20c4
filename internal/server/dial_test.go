package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"karui/internal/origintest"
	"karui/internal/sample"
)

// dials asks for the dial, or sets it.
func (r *running) dials(method, token string, change *DialChange) (int, DialAnswer) {
	r.t.Helper()
	var body io.Reader
	if change != nil {
		b, err := json.Marshal(change)
		if err != nil {
			r.t.Fatal(err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.admin+"/api/v1/dial", body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer DialAnswer
	if resp.StatusCode == http.StatusOK {
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			r.t.Fatal(err)
		}
	}
	return resp.StatusCode, answer
}

func TestDialIsSetShownAndKept(t *testing.T) {
	volume := ""
	keep := func(c *Config) {
		if volume == "" {
			volume = c.Cache.Volumes[0].Path
		}
		c.Cache.Volumes[0].Path = volume
	}
	r := start(t, keep)
	if status, d := r.dials("GET", "", nil); status != 200 || d.Level != 0 || d.Name != "full" || d.Mode != "auto" || len(d.Levels) != 4 {
		t.Fatalf("%d %+v", status, d)
	}
	status, d := r.dials("PUT", "", &DialChange{Level: "spare", Shed: "100%", For: "2h"})
	if status != 200 || d.Level != 2 || d.Mode != "pinned" || time.Until(d.Until) > 2*time.Hour || d.Shed["shop"].Percent != 100 || d.History[0].Cause != "pin" {
		t.Fatalf("%d %+v", status, d)
	}
	r.origin.Set("/photo.jpg", origintest.Image("image/jpeg", sample.Photo()))
	turned := func(status int, h http.Header) bool {
		return status == 503 && h.Get("X-Karui-Reason") == "shed" && h.Get("Cache-Control") == "no-store"
	}
	r.until(r.url+"/photo.jpg", turned, "Accept: image/webp")
	r.stop()
	ended := <-r.ended
	r.ended <- ended

	again := start(t, keep)
	again.until(again.url+"/photo.jpg", turned, "Accept: image/webp")
	if status, d := again.dials("GET", "", nil); status != 200 || d.Level != 2 || d.Mode != "pinned" || d.History[0].Cause != "restart" {
		t.Errorf("after a restart: %d %+v", status, d)
	}
	if status, d := again.dials("PUT", "", &DialChange{Level: "auto", Shed: "0%"}); status != 200 || d.Level != 0 || len(d.Shed) > 0 {
		t.Errorf("%d %+v", status, d)
	}
}

func TestDialRefuses(t *testing.T) {
	r := start(t, func(c *Config) {
		withTokens(c)
		c.Admin.Tokens = append(c.Admin.Tokens, TokenConfig{Name: "editors", Token: "editors-token-0123", Rights: []string{"read", "dial"}, Sites: []string{"blog"}})
	})
	for _, c := range []struct {
		token  string
		change DialChange
		want   int
	}{
		{opsToken, DialChange{}, 422},
		{opsToken, DialChange{Level: "4"}, 422},
		{opsToken, DialChange{Level: "-1"}, 422},
		{opsToken, DialChange{Level: "best"}, 422},
		{opsToken, DialChange{Level: "auto", For: "1h"}, 422},
		{opsToken, DialChange{Level: "1", For: "soon"}, 422},
		{opsToken, DialChange{Level: "1", For: "1000000h"}, 422},
		{opsToken, DialChange{Shed: "30"}, 422},
		{opsToken, DialChange{Shed: "101%"}, 422},
		{opsToken, DialChange{Shed: "NaN%"}, 422},
		{opsToken, DialChange{Level: "1", Site: "nowhere"}, 404},
		{staffToken, DialChange{Level: "1"}, 403},
		{"editors-token-0123", DialChange{Level: "1", Site: "shop"}, 403},
	} {
		if status, _ := r.dials("PUT", c.token, &c.change); status != c.want {
			t.Errorf("%+v: %d, want %d", c.change, status, c.want)
		}
	}
	// A token for one site sets that one, and sees no other.
	if status, _ := r.dials("PUT", opsToken, &DialChange{Shed: "10%", Site: "shop", Level: "1"}); status != 200 {
		t.Errorf("status %d", status)
	}
	status, d := r.dials("PUT", "editors-token-0123", &DialChange{Level: "3", Shed: "20%"})
	if status != 200 || d.Level != 0 || len(d.Sites) != 1 || d.Sites["blog"].Level != 3 || len(d.Shed) != 1 || d.Shed["blog"].Percent != 20 {
		t.Errorf("%d %+v", status, d)
	}
	for _, m := range d.History {
		if m.Site != "blog" {
			t.Errorf("a move of another site is shown: %+v", m)
		}
	}
}

// A disk that fills, and has room again: on a small file system of its own.
func TestFullDiskTurnsEverythingAway(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small tmpfs needs root")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("mounting a small tmpfs is not allowed here:", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	r := start(t, func(c *Config) {
		c.Cache.Volumes[0].Path = filepath.Join(dir, "cache")
		c.Disk.Low, c.Disk.High, c.Disk.Stress = 80, 85, 90
	})
	r.origin.Set("/photo.jpg", origintest.Image("image/jpeg", sample.Photo()))
	well := func(status int, _ http.Header) bool { return status == 200 }
	r.until(r.url+"/photo.jpg", well, "Accept: image/webp")
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 7400<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	r.until(r.url+"/photo.jpg", func(status int, h http.Header) bool {
		return status == 503 && h.Get("X-Karui-Reason") == "disk" && h.Get("Cache-Control") == "no-store"
	}, "Accept: image/webp")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	r.until(r.url+"/photo.jpg", well, "Accept: image/webp")
}
