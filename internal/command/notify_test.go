package command

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReadyIsToldToSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Ready(t.Context()); err != nil {
		t.Errorf("without systemd: %v", err)
	}
	for _, address := range []string{filepath.Join(t.TempDir(), "notify"), "@karui-test-" + filepath.Base(t.TempDir()) + filepath.Base(filepath.Dir(t.TempDir()))} {
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("NOTIFY_SOCKET", address)
		if err := Ready(t.Context()); err != nil {
			t.Error(err)
		}
		got := make([]byte, 100)
		if err := l.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, err := l.Read(got); err != nil || string(got[:n]) != "READY=1\n" {
			t.Errorf("%s: %q, %v", address, got[:n], err)
		}
		_ = l.Close()
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	if err := Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "NOTIFY_SOCKET") {
		t.Errorf("%v", err)
	}
}
