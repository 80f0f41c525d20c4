package settings

import "karui/internal/config"

// Load reads watchdog.yaml, the environment and flags, and validates all of it.
// An empty file name means DefaultFile.
func Load(file string, environ []string, flags ...config.Flag) (*config.Result[Config], error) {
	optional := file == ""
	if optional {
		file = DefaultFile
	}
	return config.Load(Default(), config.Options{
		File:         file,
		FileOptional: optional,
		EnvPrefix:    EnvPrefix,
		Environ:      environ,
		Flags:        flags,
		Elements:     []any{DefaultSite()},
	})
}

// NeedsRestart lists the keys that differ and that a running process keeps as
// they were when it started.
func NeedsRestart(before, after Config) []string {
	return config.Under(config.Diff(before, after), "listen", "state_dir")
}
