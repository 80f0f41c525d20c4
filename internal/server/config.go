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
	Sites         []proxy.SiteConfig        `yaml:"sites"`
}

// AdminConfig is the section `admin`: the listener for operators.
type AdminConfig struct {
	Listen string        `yaml:"listen"`
	Tokens []TokenConfig `yaml:"tokens"`
}

// TokenConfig is one operator's token; no sites means all of them.
type TokenConfig struct {
	Name  string `yaml:"name"`
	Token string `yaml:"token" secret:"true"`
	// Rights are read, purge and dial.
	Rights []string `yaml:"rights"`
	Sites  []string `yaml:"sites"`
}

// ClusterConfig is the section `cluster`, for more than one node.
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
