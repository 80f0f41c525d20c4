package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"karui/cache"
	"karui/internal/config"
	"karui/proxy"
	"karui/proxy/origin"
)

// DefaultFile is read when no other file is named; it may be missing.
const DefaultFile = "/etc/karui/karui.yaml"

// Load reads karui.yaml, the environment and what the command line sets, and
// validates all of it. An empty file name means DefaultFile.
//
// A reload calls it again with the same arguments: on an error the old
// configuration stays, and config.Diff with config.Under tells which changes
// need a restart.
func Load(file string, environ []string, flags ...config.Flag) (*config.Result[Config], error) {
	optional := file == ""
	if optional {
		file = DefaultFile
	}
	result, err := config.Load(DefaultConfig(), config.Options{
		File:            file,
		FileOptional:    optional,
		EnvPrefix:       "KARUI_",
		ForeignPrefixes: []string{"KARUI_WATCHDOG_"},
		Environ:         environ,
		Flags:           flags,
		Elements:        []any{proxy.DefaultSite(), origin.DefaultPlace(), cache.DefaultVolume(), proxy.DefaultDialLevel()},
	})
	if err != nil && optional {
		f, unreadable := os.Open(file)
		if errors.Is(unreadable, fs.ErrPermission) {
			return nil, newDeniedError(err, environ)
		}
		_ = f.Close() // also of none
	}
	if err != nil && optional && noSites(err) {
		if _, missing := os.Stat(file); errors.Is(missing, fs.ErrNotExist) {
			err = fmt.Errorf("%s is not there, and no other file was named with --config:\n%w", file, err)
		}
	}
	return result, err
}

// DeniedError says that this user may not read DefaultFile. A command that asks a
// running karui may go on without it.
type DeniedError struct {
	reason error
	// Listen is admin.listen as it would be without the file: by the environment, or by
	// default.
	Listen string
}

func newDeniedError(reason error, environ []string) *DeniedError {
	d := &DeniedError{reason: reason, Listen: DefaultConfig().Admin.Listen}
	if own, err := Load(os.DevNull, environ, OriginFlag("http://localhost")); err == nil {
		d.Listen = own.Value.Admin.Listen
	}
	return d
}

// Error implements error.
func (e *DeniedError) Error() string {
	return e.reason.Error() + "\nOnly root and the user karui may read it, since it may hold secrets: use sudo, or name another file with --config"
}

// Unwrap gives the mistakes that Load found.
func (e *DeniedError) Unwrap() error { return e.reason }

// noSites tells whether the sites are among what is missing. Nothing else has to be
// in a file, so that only then a file that is not there may be the reason.
func noSites(err error) bool {
	return slices.ContainsFunc(config.Problems(err), func(p *config.Problem) bool { return p.Key == "sites" && p.Value == "" })
}

// OriginFlag is the configuration of `--origin URL`: one site for all hosts.
func OriginFlag(url string) config.Flag {
	return config.Flag{
		Name: "--origin",
		Key:  "sites",
		Value: `[{"id": "default", "default": true, "origins": [{"name": "origin", "urls": [` +
			config.Quote(url) + `]}]}]`,
	}
}
