package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"karui/internal/config"
)

// own are the names that a volume's folder may hold before its file `format` tells
// whose it is: those of this package, what the proxy keeps beside them (spool, state),
// and what a new file system is made with.
var own = []string{"entries", "format", "lock", "lost+found", "members", "owed", "purges", "size", "spool", "state", "tmp"}

// origin is the form of the folders that a start without a configuration makes below
// the default one, each a volume of its own: who has tried karui so may go on to a
// configuration that names the default folder.
var origin = regexp.MustCompile(`^origin-[0-9a-f]{12}$`)

// trial begins the names of files by which it is tried whether a folder can be written.
const trial = ".try-"

// errForeign marks a folder that holds something else than a cache.
var errForeign = errors.New("the folder holds other files and no cache of karui")

// foreign looks for what is not karui's in a folder without the file `format`. A
// folder that cannot be read is left for its use to judge.
func foreign(path string) error {
	if _, err := os.Lstat(filepath.Join(path, "format")); err == nil {
		return nil
	}
	strange := ""
	_ = osFiles{}.Names(path, func(name string) bool {
		if !slices.Contains(own, name) && !strings.HasPrefix(name, trial) && !origin.MatchString(name) {
			strange = name
		}
		return strange == ""
	})
	if strange == "" {
		return nil
	}
	return fmt.Errorf("%w (%q is one of the files)", errForeign, strange)
}

// claim takes the folder into use, unless it is somebody else's: karui would fill
// it, and whoever empties the cache later would remove what was there.
func (v *volume) claim() error {
	if err := foreign(v.path); err != nil {
		return err
	}
	return v.open()
}

// unusable is the error for the i-th of cache.volumes, with what to do about it.
func unusable(i int, path string, err error) error {
	key := config.Key("cache.volumes", i, "path")
	if remedy := remedyFor(path, err); remedy != "" {
		return fmt.Errorf("%s is %q, which cannot be used: %w: %s", key, path, err, remedy)
	}
	return fmt.Errorf("%s is %q, which cannot be used: %w", key, path, err)
}

func remedyFor(path string, err error) string {
	switch {
	case errors.Is(err, errForeign):
		return "name a folder that is empty or missing"
	case errors.Is(err, fs.ErrPermission):
		return permission(path)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return "a file stands where a folder must be: name another path, or remove the file"
	case errors.Is(err, syscall.EROFS):
		return "the file system is mounted read-only: mount it for writing, or name another path"
	}
	return ""
}

// permission says how the user that this process runs as gets a folder.
func permission(path string) string {
	name := "uid " + strconv.Itoa(os.Geteuid())
	owner := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(owner); err == nil {
		name, owner = u.Username, u.Username
	}
	folder := quoted(path)
	return fmt.Sprintf("karui runs as %s, which may not write there: run `mkdir -p %s && chown %s %s` as root, or name another folder", name, folder, owner, folder)
}

// quoted writes a path for a shell.
func quoted(path string) string {
	plain := func(r rune) bool {
		return r == '/' || r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// Inspect tells what [Open] would find out about the folder of a volume, and writes
// nothing. The problem holds whoever asks: the path leads to a file or through one,
// or to a folder that holds something else; it completes the sentence "the path ...".
// The warning is about the user who asks, who may be another one than karui's, and
// about a disk that may be mounted later. Both are empty if all is well.
func Inspect(path string) (problem, warning string) {
	return inspect(path, func(folder string) error {
		return unix.Faccessat(unix.AT_FDCWD, folder, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	})
}

// inspect takes from mayWrite whether this process may make files in a folder.
func inspect(path string, mayWrite func(folder string) error) (problem, warning string) {
	const must = "but it must be the path of a folder, or of none yet"
	at := filepath.Clean(path)
	info, err := os.Stat(at)
	for errors.Is(err, fs.ErrNotExist) && at != "/" {
		if _, broken := os.Lstat(at); broken == nil {
			return fmt.Sprintf("is %q, %s: %s is a link that leads nowhere", path, must, at), ""
		}
		at = filepath.Dir(at)
		info, err = os.Stat(at)
	}
	switch {
	case errors.Is(err, syscall.ENOTDIR), err == nil && !info.IsDir():
		where := "this is a file"
		if err != nil || at != filepath.Clean(path) {
			where = "a file stands where one of its folders must be"
		}
		return fmt.Sprintf("is %q, %s: %s", path, must, where), ""
	case err == nil && at == filepath.Clean(path):
		if err := foreign(at); err != nil {
			return fmt.Sprintf("is %q, but %v: %s", path, err, remedyFor(path, err)), ""
		}
	}
	if err == nil {
		err = mayWrite(at)
	}
	if err == nil {
		return "", ""
	}
	return "", strings.TrimSuffix(fmt.Sprintf("is %q, which cannot be used: %v: %s", path, err, remedyFor(path, err)), ": ")
}
