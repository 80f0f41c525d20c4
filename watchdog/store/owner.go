package store

import (
	"os"
	"path/filepath"
	"syscall"
)

// adopt gives what root made to the owner of the directory it is in: a command
// of root's, in the middle of the night, must not leave the daemon, as another
// user, without its state, its locks or the audit log.
func adopt(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
		return os.Lchown(path, int(owner.Uid), int(owner.Gid))
	}
	return nil
}

// makeDir makes a directory, with those above it, and gives it away.
func makeDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return adopt(path)
}
