package proxy

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"karui/internal/config"
	"karui/internal/units"
	"karui/proxy/origin"
)

const year = 365 * 24 * time.Hour

// maxSecrets allows for rotation; each costs a comparison per request.
const maxSecrets = 10

// Validate checks the section under its key.
func (c EdgeConfig) Validate(key string) error {
	secrets := config.Key(key, "secrets")
	element := func(i int) string { return config.Key(secrets, i) }
	errs := []error{
		config.AtMost(secrets, len(c.Secrets), maxSecrets),
		config.Unique(c.Secrets, element),
	}
	for i, s := range c.Secrets {
		if s == "" || len(s) > 1024 || !httpguts.ValidHeaderFieldValue(s) || s[0] == ' ' || s[len(s)-1] == ' ' {
			errs = append(errs, config.Invalid(element(i), s, "1 to 1024 characters that a header value may have, no space at either end"))
		}
	}
	// The default is among the headers that never reach an origin, as it should be.
	if !strings.EqualFold(c.RoutingHeader, DefaultEdge().RoutingHeader) {
		errs = append(errs, origin.CheckHeaderName(config.Key(key, "routing_header"), c.RoutingHeader))
	}
	return errors.Join(errs...)
}

// Validate checks the section under its key.
func (c PingConfig) Validate(key string) error {
	return config.InRange(config.Key(key, "stress_after"), c.StressAfter, 0, time.Hour)
}

// Validate checks the section under its key.
func (c FirstResponseConfig) Validate(key string) error {
	return config.InRange(config.Key(key, "wait"), c.Wait, 0, 30*time.Second)
}

// Validate checks the section under its key.
func (c TTLConfig) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	return errors.Join(
		// Cache-Control counts in seconds, and nothing shorter than one is sent.
		config.InRange(k("short"), c.Short, time.Second, time.Hour),
		config.InRange(k("long"), c.Long, time.Second, year),
		config.InRange(k("max"), c.Max, time.Second, year),
		config.InRange(k("stale"), c.Stale, 0, year),
		config.InRange(k("degraded"), c.Degraded, time.Second, year),
		config.NotOver(k("short"), c.Short, k("long"), c.Long),
		config.NotOver(k("long"), c.Long, k("max"), c.Max),
	)
}

// Validate checks the section under its key.
func (c LimitsConfig) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	return errors.Join(
		config.InRange(k("header_bytes"), c.HeaderBytes, 4<<10, 1<<20),
		config.InRange(k("header_timeout"), c.HeaderTimeout, 100*time.Millisecond, 5*time.Minute),
		config.InRange(k("idle_timeout"), c.IdleTimeout, 100*time.Millisecond, time.Hour),
		config.InRange(k("connections"), c.Connections, 1, 1_000_000),
		config.InRange(k("inflight_bytes"), c.InflightBytes, 1<<20, units.Size(1<<40)),
	)
}

// Validate checks the section under its key.
func (c StressConfig) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	return errors.Join(
		config.InRange(k("latency"), c.Latency, 10*time.Millisecond, time.Minute),
		config.InRange(k("window"), c.Window, time.Second, 10*time.Minute),
		config.InRange(k("min_samples"), c.MinSamples, 1, 1_000_000),
	)
}
