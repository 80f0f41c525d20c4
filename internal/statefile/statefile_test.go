package statefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state", "things.json")
	taken := "nothing"
	take := func(b []byte) error { taken = string(b); return nil }
	if err := Read(name, 10, take); err != nil || taken != "nothing" {
		t.Errorf("without a file: %v, %s", err, taken)
	}
	for _, text := range []string{"0123456789", "", "short"} {
		if err := Write(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := Read(name, 10, take); err != nil || taken != text {
			t.Errorf("%q: %v, %q", text, err, taken)
		}
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if files, err := os.ReadDir(filepath.Dir(name)); err != nil || len(files) != 1 {
		t.Errorf("files left: %v, %v", files, err)
	}
}

// What cannot be taken over stays beside, once.
func TestWhatCannotBeReadIsMovedAside(t *testing.T) {
	name := filepath.Join(t.TempDir(), "things.json")
	strange := errors.New("strange")
	for _, tt := range []struct {
		text, want string
		cause      error
	}{{"damaged", "strange", strange}, {"01234567890", "over 10 bytes", nil}} {
		if err := Write(name, []byte(tt.text)); err != nil {
			t.Fatal(err)
		}
		err := Read(name, 10, func([]byte) error { return strange })
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), name+Aside) || tt.cause != nil && !errors.Is(err, tt.cause) {
			t.Errorf("%s: %v", tt.text, err)
		}
		if b, err := os.ReadFile(name + Aside); err != nil || string(b) != tt.text {
			t.Errorf("aside: %q, %v", b, err)
		}
		if err := Read(name, 10, func([]byte) error { return strange }); err != nil {
			t.Errorf("it is still there: %v", err)
		}
	}
}

// A folder that nobody can write, or what is no file, is said, and stays as it is.
func TestWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := Read(dir, 10, func([]byte) error { return nil }); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a folder: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := Write(file, nil); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(file, "things.json"), nil); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("below a file: %v", err)
	}
	if err := Write(dir, nil); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("over a folder: %v", err)
	}
}
