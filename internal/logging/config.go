package logging

// Config is the section `log` of karui.yaml: what is written to stderr.
type Config struct {
	// Level is debug, info, warn or error.
	Level string `yaml:"level"`
	// Access writes one line for each request, health checks left out, whatever the level.
	Access bool `yaml:"access"`
}

// DefaultConfig returns the values of a file that says nothing.
func DefaultConfig() Config { return Config{Level: "info", Access: true} }
