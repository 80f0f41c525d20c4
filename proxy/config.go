package proxy

import (
	"time"

	"karui/convert"
	"karui/convert/header"
	"karui/internal/units"
	"karui/proxy/origin"
)

// EdgeConfig is the section `edge` of karui.yaml: what CloudFront and karui agree on.
type EdgeConfig struct {
	// RoutingHeader names the request header that holds a site's id.
	RoutingHeader string `yaml:"routing_header"`
	// Secrets are the accepted values of X-Karui-Key, two at once while one replaces the
	// other; none means that anybody may ask.
	Secrets []string `yaml:"secrets" secret:"true"`
	// DebugHeaders sends X-Karui, X-Karui-Saved, and with a settled original
	// X-Karui-Kept: the reason, in the words of karui convert.
	DebugHeaders bool `yaml:"debug_headers"`
}

// PingConfig is the section `ping` of karui.yaml: what the watchdog asks for.
type PingConfig struct {
	// StressAfter is how long the whole process must have been shedding before the ping fails.
	StressAfter time.Duration `yaml:"stress_after"`
}

// FirstResponseConfig is the section `first_response` of karui.yaml: what the first viewer of
// a picture gets.
type FirstResponseConfig struct {
	// Wait is how long a viewer may wait for its variant, counted from the request's
	// start, before it gets another format that is there already, or the original; 0s
	// never waits.
	Wait time.Duration `yaml:"wait"`
}

// TTLConfig is the section `ttl` of karui.yaml: lifetimes of answers.
type TTLConfig struct {
	// Short is the lifetime of an answer that is not settled yet, such as an original
	// whose variant is to come.
	Short time.Duration `yaml:"short"`
	// Long is the lifetime of a settled answer whose origin gives none.
	Long time.Duration `yaml:"long"`
	// Max is the longest lifetime that the origin can give.
	Max time.Duration `yaml:"max"`
	// Stale is how long beyond its lifetime a picture may still be answered while the
	// origin is away.
	Stale time.Duration `yaml:"stale"`
	// Degraded is the longest lifetime of variants made at a level of the dial above 0.
	Degraded time.Duration `yaml:"degraded"`
	// RespectOrigin lets the lifetime that the origin gives win over ttl.long.
	RespectOrigin bool `yaml:"respect_origin"`
}

// LimitsConfig is the section `limits` of karui.yaml: bounds of the public side.
type LimitsConfig struct {
	// HeaderBytes is what the head of a request may have.
	HeaderBytes units.Size `yaml:"header_bytes"`
	// HeaderTimeout is what the head of a request may take.
	HeaderTimeout time.Duration `yaml:"header_timeout"`
	// IdleTimeout is how long a connection may rest, between two requests or while
	// nobody reads an answer.
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	// Connections are how many there may be at a time.
	Connections int `yaml:"connections"`
	// InflightBytes bounds the memory that bodies on their way through take together;
	// beyond it they go through temporary files.
	InflightBytes units.Size `yaml:"inflight_bytes"`
}

// StressConfig is the section `stress` of karui.yaml: when karui takes too long to be used.
type StressConfig struct {
	// Latency is the mean time to the first byte from which on requests are turned away,
	// by groups: cached pictures, and the others of each site.
	Latency time.Duration `yaml:"latency"`
	// Window is the time over which the mean is taken.
	Window time.Duration `yaml:"window"`
	// MinSamples are the requests without which nothing is judged.
	MinSamples int `yaml:"min_samples"`
}

// DialConfig is the section `dial` of karui.yaml: cheaper conversions under load.
type DialConfig struct {
	// Mode is auto (by load), off (always level 0) or the number of a level.
	Mode string `yaml:"mode"`
	// Wait is how long a conversion must have waited for the level to move up.
	Wait time.Duration `yaml:"wait"`
	// Levels are the whole ladder; none means the default one.
	Levels []DialLevel `yaml:"levels"`
	// Schedule are windows with a level each, which the load may exceed.
	Schedule []DialSchedule `yaml:"schedule"`
}

// DialLevel is one level of a ladder of the configuration's own.
type DialLevel struct {
	// Name is what operators see.
	Name string `yaml:"name"`
	// Formats are those that are made, of those that the site lists; empty for all,
	// [none] for nothing new at all.
	Formats []string `yaml:"formats"`
	// Quality is 1 to 100 and never raises the site's; 0 leaves that.
	Quality int `yaml:"quality"`
	// Effort is that of WebP: more of it makes smaller files and takes longer.
	Effort int `yaml:"effort"`
}

// DialSchedule is a window in which at least a level is in force; see
// dial.ParseWindow for the forms of From and To.
type DialSchedule struct {
	// Name is what operators see.
	Name string `yaml:"name"`
	// From is when it begins: a time with an offset, a local time in the zone, or a time
	// of day for every day.
	From string `yaml:"from"`
	// To is when it ends, in the same form; one that is not later than from is on the
	// next day.
	To string `yaml:"to"`
	// Zone is that of local times, such as Asia/Tokyo.
	Zone string `yaml:"zone"`
	// Level is the least level in the window.
	Level int `yaml:"level"`
}

// SiteConfig is one of the `sites` of karui.yaml.
type SiteConfig struct {
	// ID names the site in X-Routing, logs, metrics and commands.
	ID string `yaml:"id"`
	// Hosts are those by which the site is known where there is no X-Routing.
	Hosts []string `yaml:"hosts"`
	// Default takes what no host matches; one site may.
	Default bool `yaml:"default"`
	// Origins are the places that originals come from.
	Origins []origin.PlaceConfig `yaml:"origins"`
	// Formats are what viewers may get, best first: webp, avif, heic. Each viewer gets
	// the first that it names in its Accept and that suits the picture.
	Formats []string `yaml:"formats"`
	// Quality means the same look in every format; a JPEG never gets more than it was
	// saved with.
	Quality int `yaml:"quality"`
	// PNG is how PNG files are converted: auto (by content), lossy or lossless.
	PNG string `yaml:"png"`
	// Query are the parameters that belong to the picture, and are sent on: all, none,
	// or a list of names.
	Query Query `yaml:"query"`
	// Cookies is bypass (requests with cookies go to the origin untouched) or ignore
	// (cookies are not looked at and not sent).
	Cookies string `yaml:"cookies"`
	// ForwardHeaders are the viewer's headers that the origin gets; all but User-Agent,
	// X-Forwarded-For and X-Amz-Cf-Id make a picture of their own for each value.
	ForwardHeaders []string `yaml:"forward_headers"`
	// Extensionless converts what the origin calls an image also where the path has no
	// extension.
	Extensionless bool `yaml:"extensionless"`
	// Keep are the metadata that stay in variants: copyright, which includes the artist;
	// all other goes.
	Keep []string `yaml:"keep"`
	// Include are patterns of the paths to convert; none means every path.
	Include []string `yaml:"include"`
	// Exclude are patterns of the paths not to convert; it wins over include.
	Exclude []string `yaml:"exclude"`
	// Classes mark paths that are turned away before the others.
	Classes []ClassConfig `yaml:"classes"`
	// Distribution is the site's at CloudFront, for purges.
	Distribution DistributionConfig `yaml:"distribution"`
}

// ClassConfig marks paths that are shed before the others.
type ClassConfig struct {
	// Match is a pattern of paths.
	Match string `yaml:"match"`
	// ShedFirst lets these paths go before the others when an operator has a share of
	// the requests turned away.
	ShedFirst bool `yaml:"shed_first"`
}

// DistributionConfig names the edge of a site, for purges.
type DistributionConfig struct {
	// ID is the distribution's; empty for none.
	ID string `yaml:"id"`
	// RoleARN is a role that may invalidate, and nothing more; empty for karui's own
	// credentials.
	RoleARN string `yaml:"role_arn"`
	// ExternalID is what the role's trust asks for.
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
