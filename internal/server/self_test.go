package server

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// logged waits until a line of the log matches, and gives all lines that do.
func (r *running) logged(matches func(line map[string]any) bool) []map[string]any {
	r.t.Helper()
	for began := time.Now(); time.Since(began) < limit; runtime.Gosched() {
		var found []map[string]any
		for line := range strings.Lines(r.log.String()) {
			var got map[string]any
			if strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &got) != nil {
				r.t.Fatalf("not a line of JSON: %q", line)
			}
			if matches(got) {
				found = append(found, got)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	r.t.Fatalf("no such line in\n%s", r.log.String())
	return nil
}

func asked(path string) func(map[string]any) bool {
	return func(line map[string]any) bool { return line["msg"] == "request" && line["path"] == path }
}

// The access log is written whatever the level is, and a reload switches it.
func TestAccessLogOfTheServer(t *testing.T) {
	r := start(t, func(c *Config) { c.Log.Level = "error" })
	ask := func(path string, lines ...string) {
		t.Helper()
		if _, _, _, err := r.get(r.url+path, lines...); err != nil {
			t.Fatal(err)
		}
	}
	reload := func(c Config) {
		t.Helper()
		r.next = func() (Config, error) { return c, nil }
		r.hangup <- syscall.SIGHUP
	}
	config := testConfig(t, r.origin)
	ask("/.karui/ping.jpg")
	ask("/a.css?token=hunter2", "X-Amz-Cf-Id: id-1", "Cookie: session=hunter2")
	line := r.logged(asked("/a.css"))
	if len(line) != 1 || line[0]["cf_id"] != "id-1" || line[0]["place"] != "origin" || line[0]["outcome"] != "bypass" {
		t.Errorf("%v", line)
	}
	config.Log.Level, config.Log.Access = "info", false
	reload(config)
	r.logged(func(line map[string]any) bool { return line["msg"] == "configuration reloaded" })
	ask("/b.css")
	config.Log.Access = true
	reload(config)
	for len(r.reloads()) < 2 {
		runtime.Gosched()
	}
	ask("/c.css")
	r.logged(asked("/c.css"))
	if log := r.log.String(); strings.Contains(log, "/b.css") || strings.Contains(log, "ping.jpg") || strings.Contains(log, "hunter2") {
		t.Errorf("the log holds what it should not:\n%s", log)
	}
}

// reloads gives the lines about configurations that were taken over.
func (r *running) reloads() []map[string]any {
	return r.logged(func(line map[string]any) bool { return line["msg"] == "configuration reloaded" })
}

// A scrape tells which version runs, whether its configuration is the last that was
// read, and how the ping is.
func TestScrapeAboutTheProcess(t *testing.T) {
	r := startWith(t, nil, func(o *Options) { o.Version = "v1.2.3" })
	holds := func(line string) {
		t.Helper()
		for began := time.Now(); ; runtime.Gosched() {
			_, _, body, err := r.get(r.admin + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains("\n"+string(body), "\n"+line+"\n") {
				return
			}
			if time.Since(began) > limit {
				t.Fatalf("no line %q in\n%s", line, body)
			}
		}
	}
	holds(`karui_build_info{go="` + runtime.Version() + `",version="v1.2.3"} 1`)
	holds("karui_ping_up 1")
	holds("karui_draining 0")
	holds("karui_access_log_dropped_total 0")
	holds("karui_config_last_reload_successful 1")
	r.next = func() (Config, error) { return Config{}, errors.New("line 3: no") }
	r.hangup <- syscall.SIGHUP
	holds("karui_config_last_reload_successful 0")
	config := testConfig(t, r.origin)
	r.next = func() (Config, error) { return config, nil }
	r.hangup <- syscall.SIGHUP
	holds("karui_config_last_reload_successful 1")
	if _, _, _, err := r.get(r.url+"/nowhere.jpg", "X-Routing: "+strings.Repeat("evil", 20)); err != nil {
		t.Fatal(err)
	}
	holds(`karui_requests_total{outcome="503_route",site=""} 1`)
	holds(`karui_response_first_byte_seconds_count{outcome="503_route"} 1`)
}
