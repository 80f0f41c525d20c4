package proxy

import (
	"time"

	"karui/convert"
	"karui/convert/header"
	"karui/internal/units"
	"karui/proxy/origin"
)

// EdgeConfig is the section `edge` of karui.yaml.
type EdgeConfig struct {
	// RoutingHeader names the request header that holds a site's id.
	RoutingHeader string `yaml:"routing_header"`
	// Secrets are the accepted values of X-Karui-Key; none means that anybody may ask.
	Secrets []string `yaml:"secrets" secret:"true"`
	// DebugHeaders adds X-Karui and X-Karui-Saved to answers.
	DebugHeaders bool `yaml:"debug_headers"`
}

// PingConfig is the section `ping` of karui.yaml.
type PingConfig struct {
	// StressAfter is how long the whole process must have been shedding before the ping fails.
	StressAfter time.Duration `yaml:"stress_after"`
}

// FirstResponseConfig is the section `first_response` of karui.yaml.
type FirstResponseConfig struct {
	// Wait is how long a viewer waits for its variant, counted from the request's start; 0s never waits.
	Wait time.Duration `yaml:"wait"`
}

// TTLConfig is the section `ttl` of karui.yaml.
type TTLConfig struct {
	// Short is the lifetime of an answer that is not settled.
	Short time.Duration `yaml:"short"`
	// Long is the lifetime of a settled answer whose origin gives none.
	Long time.Duration `yaml:"long"`
	// Max caps what the origin gives.
	Max time.Duration `yaml:"max"`
	// Stale is how long after its lifetime a variant may still be answered.
	Stale time.Duration `yaml:"stale"`
	// Degraded is the lifetime of variants made at a dial level above 0.
	Degraded time.Duration `yaml:"degraded"`
	// RespectOrigin lets the origin's explicit freshness win over Long.
	RespectOrigin bool `yaml:"respect_origin"`
}

// LimitsConfig is the section `limits` of karui.yaml.
type LimitsConfig struct {
	HeaderBytes   units.Size    `yaml:"header_bytes"`
	HeaderTimeout time.Duration `yaml:"header_timeout"`
	IdleTimeout   time.Duration `yaml:"idle_timeout"`
	Connections   int           `yaml:"connections"`
	// InflightBytes bounds the memory that bodies on their way through take together.
	InflightBytes units.Size `yaml:"inflight_bytes"`
}

// StressConfig is the section `stress` of karui.yaml.
type StressConfig struct {
	// Latency is the mean time to the first byte from which on requests are turned away.
	Latency time.Duration `yaml:"latency"`
	// Window is the time over which the mean is taken.
	Window time.Duration `yaml:"window"`
	// MinSamples are the requests without which nothing is judged.
	MinSamples int `yaml:"min_samples"`
}

// DialConfig is the section `dial` of karui.yaml.
type DialConfig struct {
	// Mode is auto, off (always level 0) or the number of a level.
	Mode string `yaml:"mode"`
	// Wait is how long a conversion must have waited for the level to move up.
	Wait time.Duration `yaml:"wait"`
	// Levels are the whole ladder; none means the default one.
	Levels   []DialLevel    `yaml:"levels"`
	Schedule []DialSchedule `yaml:"schedule"`
}

// DialLevel is one level of a ladder of the configuration's own.
type DialLevel struct {
	Name string `yaml:"name"`
	// Formats are those that are made, of those that the site lists; empty for all,
	// [none] for nothing new at all.
	Formats []string `yaml:"formats"`
	// Quality is 1 to 100 and never raises the site's; 0 leaves that.
	Quality int `yaml:"quality"`
	// Effort is WebP's, 0 to 6.
	Effort int `yaml:"effort"`
}

// DialSchedule is a window in which at least a level is in force; see
// dial.ParseWindow for the forms of From and To.
type DialSchedule struct {
	Name  string `yaml:"name"`
	From  string `yaml:"from"`
	To    string `yaml:"to"`
	Zone  string `yaml:"zone"`
	Level int    `yaml:"level"`
}

// SiteConfig is one of the `sites` of karui.yaml.
type SiteConfig struct {
	ID      string               `yaml:"id"`
	Hosts   []string             `yaml:"hosts"`
	Default bool                 `yaml:"default"`
	Origins []origin.PlaceConfig `yaml:"origins"`
	// Formats are what the site's viewers may get, best first.
	Formats []string `yaml:"formats"`
	// Quality is 1 to 100 and means the same look in every format.
	Quality int `yaml:"quality"`
	// PNG is auto, lossy or lossless.
	PNG string `yaml:"png"`
	// Query is all, none or the names of the parameters that belong to the key.
	Query Query `yaml:"query"`
	// Cookies is bypass or ignore.
	Cookies string `yaml:"cookies"`
	// ForwardHeaders are the viewer's headers that the origin gets.
	ForwardHeaders []string `yaml:"forward_headers"`
	// Extensionless converts by content type where the path has no convertible extension.
	Extensionless bool `yaml:"extensionless"`
	// Keep are the metadata fields that stay: copyright (which includes the artist).
	Keep []string `yaml:"keep"`
	// Include and Exclude are path patterns; an empty Include means every path.
	Include      []string           `yaml:"include"`
	Exclude      []string           `yaml:"exclude"`
	Classes      []ClassConfig      `yaml:"classes"`
	Distribution DistributionConfig `yaml:"distribution"`
}

// ClassConfig marks paths that are shed before the others.
type ClassConfig struct {
	Match     string `yaml:"match"`
	ShedFirst bool   `yaml:"shed_first"`
}

// DistributionConfig names the edge of a site, for purges.
type DistributionConfig struct {
	ID         string `yaml:"id"`
	RoleARN    string `yaml:"role_arn"`
	ExternalID string `yaml:"external_id" secret:"true"`
}

// Defaults of the sections.
func DefaultEdge() EdgeConfig {
	return EdgeConfig{RoutingHeader: "X-Routing", DebugHeaders: true}
}

// DefaultPing returns the values of a file that says nothing.
func DefaultPing() PingConfig { return PingConfig{StressAfter: 2 * time.Minute} }

// DefaultFirstResponse returns the values of a file that says nothing.
func DefaultFirstResponse() FirstResponseConfig {
	return FirstResponseConfig{Wait: 300 * time.Millisecond}
}

// DefaultTTL returns the values of a file that says nothing.
func DefaultTTL() TTLConfig {
	return TTLConfig{
		Short: 10 * time.Second, Long: 24 * time.Hour, Max: 720 * time.Hour,
		Stale: 168 * time.Hour, Degraded: 10 * time.Minute, RespectOrigin: true,
	}
}

// DefaultLimits returns the values of a file that says nothing.
func DefaultLimits() LimitsConfig {
	return LimitsConfig{
		HeaderBytes: 32 << 10, HeaderTimeout: 10 * time.Second, IdleTimeout: 75 * time.Second,
		Connections: 10000, InflightBytes: 512 << 20,
	}
}

// DefaultStress returns the values of a file that says nothing.
func DefaultStress() StressConfig {
	return StressConfig{Latency: 3 * time.Second, Window: 30 * time.Second, MinSamples: 20}
}

// DefaultDial returns the values of a file that says nothing.
func DefaultDial() DialConfig { return DialConfig{Mode: "auto", Wait: 500 * time.Millisecond} }

// DefaultDialLevel returns the values that a level has where the file names none.
func DefaultDialLevel() DialLevel {
	return DialLevel{Effort: convert.DefaultEffort(header.WebP)}
}

// DefaultSite returns the values that a site has where the file names none.
func DefaultSite() SiteConfig {
	return SiteConfig{
		Formats:        []string{"webp"},
		Quality:        80,
		PNG:            "auto",
		Query:          Query{All: true},
		Cookies:        "bypass",
		ForwardHeaders: []string{"User-Agent", "X-Forwarded-For", "X-Amz-Cf-Id"},
		Keep:           []string{"copyright"},
	}
}
