package demo

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"karui/internal/cloudfront/edge"
)

// The times of the demonstration, each with the usual one. Everything happens in
// seconds that takes minutes in earnest.
const (
	// watchInterval is from one round of the watchdog to the next: 5 min.
	watchInterval = 8 * time.Second
	// watchCount pings, watchSpacing apart, have to fail: 5, 6 s apart.
	watchCount   = 3
	watchSpacing = time.Second
	watchTimeout = 1500 * time.Millisecond
	// deployDelay is how long a changed order takes to reach the edge: minutes.
	deployDelay = 4 * time.Second
	// edgeTTL is the longest that the edge keeps an image: 24 h.
	edgeTTL = 4 * time.Second
	// responseTimeout is how long the edge waits for karui: 10 s.
	responseTimeout = 3 * time.Second
	// originDeadline is how long karui waits for the origin: 8 s.
	originDeadline = 2 * time.Second
	// slowness is how late karui's bytes come when it is made slow: too late for
	// the edge and for the watchdog.
	slowness = 6 * time.Second
)

// By which karui knows the site and the edge.
const (
	siteID        = "shop"
	routingHeader = "X-Routing"
	keyHeader     = "X-Karui-Key"
)

// quoted is a string as YAML and JSON write it.
func quoted(s string) string {
	b, _ := json.Marshal(s) // a string always can be
	return string(b)
}

// proxySettings is karui.yaml. Its addresses are free ports, which the log tells.
func proxySettings(origin, host, cache, secret string, formats []string) string {
	return fmt.Sprintf(`listen: "127.0.0.1:0"
drain: 1s
admin: { listen: "127.0.0.1:0" }
edge: { secrets: [%s] }
ttl: { short: 2s }
convert: { workers: 2 }
cache:
  memory: 64MiB
  volumes: [{ path: %s, max_size: 40MiB }]
origin: { deadline: %s, connect: 1s }
sites:
  - id: %s
    origins: [{ name: origin, urls: [%s], host: %s }]
    formats: [%s]
    query: all
`, quoted(secret), quoted(cache), originDeadline, siteID, quoted(origin), quoted(host), strings.Join(formats, ", "))
}

// watching is what watchdog.yaml is made of.
type watching struct {
	dir      string // of its state
	ping     string
	origin   string // an address at the true origin
	viewer   string // an image through the edge
	control  string
	mail     string // address of the mail server
	language string
	role     string
	external string
}

// yaml is watchdog.yaml.
func (w watching) yaml() (string, error) {
	host, port, err := net.SplitHostPort(w.mail)
	if err != nil {
		return "", fmt.Errorf("address of the mail server: %w", err)
	}
	return fmt.Sprintf(`interval: %s
ping: { count: %d, spacing: %s, timeout: %s }
state_dir: %s
listen: "127.0.0.1:0"
deploy_timeout: 60s
proxy_deadline: %s
control_urls: [%s]
mail:
  from: karui-watchdog@demo.example
  to: [operators@demo.example]
  language: %s
  smtp: { host: %s, port: %s, tls: none }
sites:
  - id: %s
    ping_url: %s
    origin_url: %s
    viewer_url: %s
    distribution_id: %s
    origin_group_id: %s
    proxy_origin_id: %s
    direct_origin_id: %s
    role_arn: %s
    external_id: %s
    max_swaps_per_day: 1000
`, watchInterval, watchCount, watchSpacing, watchTimeout, quoted(w.dir), originDeadline, quoted(w.control), w.language, quoted(host), port,
		siteID, quoted(w.ping), quoted(w.origin), quoted(w.viewer),
		edge.SampleDistribution, edge.SampleGroup, edge.SampleProxyID, edge.SampleOriginID, quoted(w.role), quoted(w.external)), nil
}

// command is a child's command line.
func command(path string, args ...string) *exec.Cmd { return exec.Command(path, args...) }

// cleanEnv is the environment of a child: nothing of the user's settings for karui
// or AWS joins in.
func cleanEnv(more ...string) []string {
	env := []string{"PATH=" + os.Getenv("PATH")}
	for _, name := range []string{"HOME", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "GOCOVERDIR", "GORACE"} {
		if v, set := os.LookupEnv(name); set {
			env = append(env, name+"="+v)
		}
	}
	return append(env, more...)
}

// write puts a settings file into the folder.
func write(dir, name, text string) (string, error) {
	file := filepath.Join(dir, name)
	// Renamed into place, since a child may read it again at any time.
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return file, nil
}
