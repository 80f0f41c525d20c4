package logging

import "karui/internal/config"

// Validate checks the section under its key.
func (c Config) Validate(key string) error {
	return config.OneOf(config.Key(key, "level"), c.Level, "debug", "info", "warn", "error")
}
