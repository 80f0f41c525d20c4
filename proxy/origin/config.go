package origin

import "time"

// Config is the section `origin` of karui.yaml: the limits of one fetch. They
// nest inside the edge's own (10 s recommended), so that a slow origin is
// answered by karui before the edge gives up on it.
type Config struct {
	// Deadline is what all tries together have to the first byte of an answer.
	Deadline time.Duration `yaml:"deadline"`
	// Connect is what one connection has to be made, TLS included.
	Connect time.Duration `yaml:"connect"`
	// Idle is the longest pause between two reads of a body.
	Idle time.Duration `yaml:"idle"`
	// Total bounds a whole fetch.
	Total time.Duration `yaml:"total"`
	// CAFile names a PEM file with the authorities to trust besides the system's.
	CAFile string `yaml:"ca_file"`
}

// DefaultConfig returns the values of a file that says nothing.
func DefaultConfig() Config {
	return Config{Deadline: 8 * time.Second, Connect: time.Second, Idle: 10 * time.Second, Total: time.Minute}
}

// RetryConfig is the section `retry` of karui.yaml: second tries at origins.
type RetryConfig struct {
	// Mode is auto (a failed fetch may be tried once more) or off.
	Mode string `yaml:"mode"`
	// Level is 0 none, 1 same place, 2 another place, 3 leave a sick place at once.
	Level int `yaml:"level"`
}

// DefaultRetryConfig returns the values of a file that says nothing.
func DefaultRetryConfig() RetryConfig { return RetryConfig{Mode: "auto", Level: 2} }

// PlaceConfig is one of a site's `origins`.
type PlaceConfig struct {
	// Name is the place's in logs, metrics and karui place.
	Name string `yaml:"name"`
	// URLs are the addresses of the place, http://, https:// or s3://bucket/prefix.
	URLs []string `yaml:"urls"`
	// Host is the Host header to send, and the name TLS certificates are checked for; empty means the URL's own.
	Host string `yaml:"host"`
	// Weight is the place's share of new requests.
	Weight float64 `yaml:"weight"`
	// Headers are sent with every request to the place (a Referer for hot-link protection, a key).
	Headers []Header `yaml:"headers"`
	// Region is the bucket's, for s3:// only.
	Region string `yaml:"region"`
	// Endpoint is an address other than the region's own, for s3:// only.
	Endpoint string `yaml:"endpoint"`
	// RoleARN is a role to assume for reading, for s3:// only; empty for karui's own
	// credentials.
	RoleARN string `yaml:"role_arn"`
}

// Header is one fixed header.
type Header struct {
	// Name is the header's.
	Name string `yaml:"name"`
	// Value is what it holds.
	Value string `yaml:"value" secret:"true"`
}

// DefaultPlace returns the values that a place has where the file names none.
func DefaultPlace() PlaceConfig { return PlaceConfig{Weight: 1} }
