package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// folderWith makes a folder with files of these names; a name that ends in / is a folder.
func folderWith(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if strings.HasSuffix(name, "/") {
			err = errors.Join(err, os.MkdirAll(path, 0o700))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte("1\n"), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAFolderOfSomebodyElseIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		fine  bool
	}{
		"empty":                     {nil, true},
		"a new file system":         {[]string{"lost+found/"}, true},
		"a cache":                   {[]string{"format", "lock", "entries/ab/", "tmp/", "a note of the operator"}, true},
		"a cache at its first load": {[]string{"lock", "entries/ab/", "tmp/", "spool/", "state/", "owed/", "members", ".try-123"}, true},
		"earlier trials":            {[]string{"origin-af2bdbe1aa9b/format", "origin-0123456789ab/format"}, true},
		"another origin":            {[]string{"origin-backup/format"}, false},
		"documents":                 {[]string{"letter.txt"}, false},
		"hidden files":              {[]string{".bashrc"}, false},
		"a file of the same name":   {[]string{"tmp/", "lock", "srv/"}, false},
	} {
		dir := folderWith(t, c.files...)
		before, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		problem, warning := inspect(dir, func(string) error { return nil })
		if (problem == "") != c.fine || warning != "" {
			t.Errorf("%s: %q %q", name, problem, warning)
		}
		opened, err := Open(testConfig(dir), roomy(), Options{})
		if c.fine {
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if err := opened.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, errForeign) || !strings.Contains(err.Error(), `cache.volumes[0].path is "`+dir+`"`) || !strings.HasSuffix(err.Error(), "name a folder that is empty or missing") {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.ReadDir(dir); err != nil || len(after) != len(before) {
			t.Errorf("%s: %v is there now, %v", name, after, err)
		}
	}
}

func TestTheErrorOfAFolderSaysWhatToDo(t *testing.T) {
	dir := folderWith(t, "file")
	for path, want := range map[string]string{
		filepath.Join(dir, "file"):          "a file stands where a folder must be",
		filepath.Join(dir, "file", "below"): "a file stands where a folder must be",
	} {
		_, err := Open(testConfig(path), roomy(), Options{})
		if err == nil || !strings.Contains(err.Error(), `cache.volumes[0].path is "`+path+`", which cannot be used: `) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
	for err, want := range map[error]string{
		&fs.PathError{Op: "mkdir", Path: "/srv/it's", Err: syscall.EACCES}: `mkdir -p '/srv/it'\''s' && chown`,
		&fs.PathError{Op: "mkdir", Path: "/srv/it's", Err: syscall.EROFS}:  "mounted read-only",
		ErrLocked: "in use by another process",
	} {
		got := unusable(3, "/srv/it's", fmt.Errorf("create folder: %w", err))
		if !errors.Is(got, err) || !strings.HasPrefix(got.Error(), `cache.volumes[3].path is "/srv/it's", which cannot be used: `) || !strings.Contains(got.Error(), want) {
			t.Errorf("%v", got)
		}
	}
	if words := permission("/var/cache/karui"); !strings.Contains(words, "karui runs as ") || !strings.Contains(words, "mkdir -p /var/cache/karui && chown ") {
		t.Error(words)
	}
}

func TestInspectWritesNothingAndFindsWhatOpenWould(t *testing.T) {
	dir := folderWith(t, "file", "ours/format", "theirs/letter.txt")
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	allowed := func(string) error { return nil }
	denied := func(folder string) error {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			t.Errorf("asked about %s: %v", folder, err)
		}
		return syscall.EACCES
	}
	for path, c := range map[string]struct {
		mayWrite         func(string) error
		problem, warning string
	}{
		"file":          {allowed, "this is a file", ""},
		"file/below":    {allowed, "a file stands where one of its folders must be", ""},
		"link":          {allowed, "is a link that leads nowhere", ""},
		"theirs":        {allowed, "holds other files", ""},
		"ours":          {allowed, "", ""},
		"ours/../none":  {allowed, "", ""},
		"none/yet":      {allowed, "", ""},
		"ours/":         {denied, "", "chown"},
		"none/yet/that": {denied, "", "mkdir -p "},
	} {
		problem, warning := inspect(dir+"/"+path, c.mayWrite)
		for got, want := range map[string]string{"problem: " + problem: c.problem, "warning: " + warning: c.warning} {
			if (want == "") != strings.HasSuffix(got, ": ") || !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a folder was made")
	}
	if problem, warning := Inspect(filepath.Join(dir, "new")); problem+warning != "" {
		t.Errorf("%s%s", problem, warning)
	}
}
