package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// bareCommand is a hidden word: bench starts itself with it, to have a server that does nothing but send one body
// with net/http. What karui costs above it is karui's own; what it costs above nginx is Go's.
const bareCommand = "bare-server"

// serveBare answers everything on address with the file, from memory, until it is told to stop.
func serveBare(ctx context.Context, address, file string, stderr io.Writer) int {
	body, err := os.ReadFile(file)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "bench: read body: %v\n", err)
		return 1
	}
	server := &http.Server{
		Addr: address, ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { sendImage(w, "image/webp", body) }),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // ends ListenAndServe, which reports it
	defer stop()
	if err := server.ListenAndServe(); ctx.Err() == nil {
		_, _ = fmt.Fprintf(stderr, "bench: serve: %v\n", err)
		return 1
	}
	return 0
}

// startBare starts the bare server with this body.
func startBare(ctx context.Context, b *bench, body []byte) (*server, error) {
	file := filepath.Join(b.dir, "body")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return nil, fmt.Errorf("write body: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	address := "127.0.0.1:" + strconv.Itoa(port)
	s, err := launch(ctx, "net/http alone", "http://"+address+"/", b.words, self, bareCommand, address, file)
	if err != nil {
		return nil, err
	}
	s.url = "http://" + address
	return s, nil
}
