package command

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"
)

// Ready tells systemd, where it has started the process with Type=notify, that the
// service is ready, so that `systemctl start` and `restart` end only now
// (sd_notify(3)). Elsewhere it does nothing. It takes a second at most.
func Ready(ctx context.Context) error {
	// An @ in front is an address without a file, which package net writes the same way.
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "unixgram", address)
	if err != nil {
		return fmt.Errorf("tell systemd at NOTIFY_SOCKET that the service is ready: %w", err)
	}
	defer conn.Close()
	if err = conn.SetDeadline(time.Now().Add(time.Second)); err == nil {
		_, err = conn.Write([]byte("READY=1\n"))
	}
	if err != nil {
		return fmt.Errorf("tell systemd at NOTIFY_SOCKET that the service is ready: %w", err)
	}
	return nil
}
