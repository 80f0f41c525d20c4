package server

import (
	"time"

	"karui/cache"
	"karui/convert"
	"karui/internal/logging"
	"karui/proxy"
	"karui/proxy/origin"
)

// Config is karui.yaml.
type Config struct {
	// Listen is the address the edge asks.
	Listen string `yaml:"listen"`
	// Drain is what answers under way have to finish after SIGTERM.
	Drain         time.Duration             `yaml:"drain"`
	Log           logging.Config            `yaml:"log"`
	Limits        proxy.LimitsConfig        `yaml:"limits"`
	Admin         AdminConfig               `yaml:"admin"`
	Edge          proxy.EdgeConfig          `yaml:"edge"`
	Ping          proxy.PingConfig          `yaml:"ping"`
	FirstResponse proxy.FirstResponseConfig `yaml:"first_response"`
	TTL           proxy.TTLConfig           `yaml:"ttl"`
	Convert       convert.Config            `yaml:"convert"`
	Cache         cache.Config              `yaml:"cache"`
	Cluster       ClusterConfig             `yaml:"cluster"`
	Disk          cache.DiskConfig          `yaml:"disk"`
	Stress        proxy.StressConfig        `yaml:"stress"`
	Origin        origin.Config             `yaml:"origin"`
	Retry         origin.RetryConfig        `yaml:"retry"`
	Dial          proxy.DialConfig          `yaml:"dial"`
	// Sites are those that karui serves.
	Sites []proxy.SiteConfig `yaml:"sites"`
}

// AdminConfig is the section `admin`: the listener for operators.
type AdminConfig struct {
	// Listen is the address for operators: /healthz, /readyz, /metrics, /status, /api/v1.
	Listen string `yaml:"listen"`
	// Tokens are who may use it; needed unless it is on the loopback.
	Tokens []TokenConfig `yaml:"tokens"`
}

// TokenConfig is one operator's token; no sites means all of them.
type TokenConfig struct {
	// Name is whose it is, for the log.
	Name string `yaml:"name"`
	// Token is what is sent as Authorization: Bearer.
	Token string `yaml:"token" secret:"true"`
	// Rights are read, purge and dial; the last covers place and retry, too.
	Rights []string `yaml:"rights"`
	// Sites are those that it is for; none means all.
	Sites []string `yaml:"sites"`
}

// ClusterConfig is the section `cluster`: what several nodes share.
type ClusterConfig struct {
	// Redis is redis://host:6379, or empty on a single node.
	Redis string `yaml:"redis" secret:"true"`
}

// DefaultConfig returns the values of a file that says nothing.
func DefaultConfig() Config {
	return Config{
		Listen:        ":8080",
		Drain:         30 * time.Second,
		Log:           logging.DefaultConfig(),
		Limits:        proxy.DefaultLimits(),
		Admin:         AdminConfig{Listen: "127.0.0.1:9090"},
		Edge:          proxy.DefaultEdge(),
		Ping:          proxy.DefaultPing(),
		FirstResponse: proxy.DefaultFirstResponse(),
		TTL:           proxy.DefaultTTL(),
		Convert:       convert.DefaultConfig(),
		Cache:         cache.DefaultConfig(),
		Disk:          cache.DefaultDiskConfig(),
		Stress:        proxy.DefaultStress(),
		Origin:        origin.DefaultConfig(),
		Retry:         origin.DefaultRetryConfig(),
		Dial:          proxy.DefaultDial(),
	}
}
