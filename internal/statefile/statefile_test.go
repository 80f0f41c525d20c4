package statefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// What cannot be taken over stays beside, each time, within a bound.
func TestWhatCannotBeReadIsMovedAside(t *testing.T) {
	name := filepath.Join(t.TempDir(), "things.json")
	strange := errors.New("strange")
	for i, aside := range []string{"", ".2", ".3", ".4", ".5", ".5"} {
		text, want := fmt.Sprint("damaged", i), "strange"
		if i%2 == 1 {
			text, want = fmt.Sprint("0123456789", i), "over 10 bytes"
		}
		if err := Write(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		err := Read(name, 10, func([]byte) error { return strange })
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name+Aside+aside+")") || errors.Is(err, strange) != (want == "strange") {
			t.Errorf("%s: %v", text, err)
		}
		if b, err := os.ReadFile(name + Aside + aside); err != nil || string(b) != text {
			t.Errorf("aside: %q, %v", b, err)
		}
		if err := Read(name, 10, func([]byte) error { return strange }); err != nil {
			t.Errorf("it is still there: %v", err)
		}
	}
	if b, err := os.ReadFile(name + Aside); err != nil || string(b) != "damaged0" {
		t.Errorf("the first one: %q, %v", b, err)
	}
	if files, err := os.ReadDir(filepath.Dir(name)); err != nil || len(files) != asideMost {
		t.Errorf("%v, %v", files, err)
	}
}

// A pipe is not waited for, whoever has its other end; what is written next takes its place.
func TestAPipeIsNotWaitedFor(t *testing.T) {
	for _, held := range []bool{false, true} {
		name := filepath.Join(t.TempDir(), "things.json")
		if err := unix.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
		if held {
			other, err := os.OpenFile(name, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
		}
		ended := make(chan error, 1)
		go func() { ended <- Read(name, 10, func([]byte) error { return nil }) }()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "no regular file") {
				t.Errorf("%v", err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("it waits")
		}
		for _, flags := range []int{os.O_WRONLY, os.O_RDWR} {
			if f, err := Open(name, flags); err == nil || !strings.Contains(err.Error(), "no regular file") {
				t.Errorf("%v, %v", f, err)
			}
		}
		if err := Write(name, []byte("text")); err != nil {
			t.Fatal(err)
		}
		if err := Read(name, 10, func(b []byte) error {
			if string(b) != "text" {
				return fmt.Errorf("%q", b)
			}
			return nil
		}); err != nil {
			t.Error(err)
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
