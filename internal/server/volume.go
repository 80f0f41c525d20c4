package server

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"karui/internal/config"
)

// VolumeFlag gives the setting of one cache volume for a start without a
// configuration file: a folder below the default one if that can be written, else
// below one of the user's own. The words say what was chosen instead and why; they
// are empty for the default. Each origin has a folder of its own, since all of
// them are served as the same site.
func VolumeFlag(standard, origin string) (flag config.Flag, words string, err error) {
	sum := sha256.Sum256([]byte(origin))
	own := "origin-" + hex.EncodeToString(sum[:6])
	reason := writable(filepath.Join(standard, own))
	if reason == nil {
		return volumeFlag(filepath.Join(standard, own)), "", nil
	}
	var places []string
	if dir, err := os.UserCacheDir(); err == nil {
		places = append(places, filepath.Join(dir, "karui"))
	}
	places = append(places, filepath.Join(os.TempDir(), fmt.Sprintf("karui-%d", os.Getuid())))
	for _, place := range places {
		dir := filepath.Join(place, own)
		if writable(dir) == nil {
			return volumeFlag(dir), fmt.Sprintf("the cache is in %s, because %s cannot be used: %v", dir, standard, reason), nil
		}
	}
	return config.Flag{}, "", fmt.Errorf("no folder for the cache: %w (name one in cache.volumes)", reason)
}

func volumeFlag(dir string) config.Flag {
	quoted, _ := json.Marshal(dir) // a string always can be
	return config.Flag{Name: "--origin", Key: "cache.volumes", Value: `[{"path": ` + string(quoted) + `}]`}
}

// writable makes the folder where it is missing, and tries to write in it.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".try-*")
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Remove(f.Name())
}
