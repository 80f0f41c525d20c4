package watchdog

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
)

// An address in use is tried again, and the log says what to do about it.
func TestAnAddressInUseComesWithARemedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		tries := 0
		w := &Watchdog{
			log: slog.New(slog.NewTextHandler(&log, nil)),
			listener: func(context.Context, string) (net.Listener, error) {
				tries++
				return nil, &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), listenAgain+listenAgain/2)
		defer cancel()
		w.listen(ctx)
		if tries != 2 || strings.Count(log.String(), "another program has the address") != 2 || !strings.Contains(log.String(), "address already in use") {
			t.Errorf("%d tries: %s", tries, &log)
		}
	})
}
