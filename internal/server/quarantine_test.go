package server

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"karui/convert"
	"karui/internal/api"
)

func TestQuarantineOverARestart(t *testing.T) {
	var kept Config
	var parts Parts
	run := func(change func(*Config)) *running {
		return startWith(t, change, func(o *Options) {
			o.Routes = func(p Parts) []api.Route {
				parts = p
				return nil
			}
		})
	}
	end := func(r *running) {
		r.stop()
		err := <-r.ended
		r.ended <- err // for the clean-up
	}
	list := func(r *running) (digests []string) {
		t.Helper()
		var answer api.Quarantine
		if status := r.operate("GET", "/quarantine", opsToken, &answer); status != 200 {
			t.Fatal(status)
		}
		for _, q := range answer.Items {
			if !q.Held || q.Cause != "crash" || time.Until(q.Until) > time.Hour || time.Until(q.Until) < 50*time.Minute {
				t.Errorf("%+v", q)
			}
			digests = append(digests, q.Digest[:2])
		}
		return digests
	}

	r := run(func(c *Config) {
		withTokens(c)
		kept = *c
	})
	for i, b := range []byte{0xaa, 0xbb, 0xcc} {
		parts.Pool.RestoreQuarantine([]convert.Quarantine{{
			Digest: convert.Digest(bytes.Repeat([]byte{b}, 32)), Cause: convert.CauseCrash, Strikes: 1,
			Until: time.Now().Add(time.Hour - time.Duration(3-i)*time.Second),
		}})
	}
	end(r)

	r = run(func(c *Config) { *c = kept })
	if got := list(r); strings.Join(got, " ") != "aa bb cc" {
		t.Errorf("after a restart: %v", got)
	}
	// One that the pool does not know may be noted in the cache all the same.
	for digit, want := range map[string]int{"b": 204, "d": 404} {
		if status := r.operate("DELETE", "/quarantine/"+strings.Repeat(digit, 64), opsToken, nil); status != want {
			t.Errorf("%s: %d, want %d", digit, status, want)
		}
	}
	pardons := parts.Proxy.Pardons()
	end(r)

	r = run(func(c *Config) { *c = kept })
	if got := list(r); strings.Join(got, " ") != "aa cc" {
		t.Errorf("after a release and a restart: %v", got)
	}
	again := parts.Proxy.Pardons()
	if len(pardons) != 2 || len(again) != 2 {
		t.Fatalf("pardons %v, after a restart %v, want two", pardons, again)
	}
	for i, p := range pardons {
		if again[i].Digest != p.Digest || !again[i].At.Equal(p.At) {
			t.Errorf("pardon %x of %s became %x of %s", p.Digest, p.At, again[i].Digest, again[i].At)
		}
	}
	end(r)

	// A file that cannot be read keeps nobody from starting.
	name := filepath.Join(kept.Cache.Volumes[0].Path, "state", quarantineFile)
	for _, text := range []string{"{", `{"quarantine": [{"digest": "zz"}]}`, `{"pardoned": [{"digest": "aa"}]}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r = run(func(c *Config) { *c = kept })
		if got := list(r); len(got) != 0 || !strings.Contains(r.log.String(), "in quarantine are tried again") {
			t.Errorf("%s: %v\n%s", text, got, r.log.String())
		}
		end(r)
	}
}

// Who lets an original out wants that to hold even if karui is killed a moment later.
func TestReleaseIsKeptAtOnce(t *testing.T) {
	var kept Config
	r := start(t, func(c *Config) {
		withTokens(c)
		kept = *c
	})
	digest := strings.Repeat("ab", 32)
	if status := r.operate("DELETE", "/quarantine/"+digest, opsToken, nil); status != 404 {
		t.Errorf("status %d", status)
	}
	b, err := os.ReadFile(filepath.Join(kept.Cache.Volumes[0].Path, "state", quarantineFile))
	if err != nil {
		t.Fatal(err)
	}
	_, pardons, err := readQuarantine(b)
	if err != nil || len(pardons) != 1 || pardons[0].Digest != [16]byte(bytes.Repeat([]byte{0xab}, 16)) {
		t.Errorf("%v, %v", pardons, err)
	}
}
