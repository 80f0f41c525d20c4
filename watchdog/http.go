package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"karui/internal/page"
)

// listenAgain is how long it takes until a listener that could not be had is
// tried again.
const listenAgain = 30 * time.Second

// listen serves /healthz, /metrics and /status until ctx ends. An address in use
// does not end the watch.
func (w *Watchdog) listen(ctx context.Context) {
	for {
		err := w.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		hint := "listen must be an address of this machine"
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = "another program has the address, perhaps another karui-watchdog: end that one (`ss -ltnp` shows it) or choose another address for listen"
		}
		w.log.Error("listener failed; it is tried again", "listen", w.Config().Listen, "error", err, "hint", hint)
		timer := time.NewTimer(listenAgain)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (w *Watchdog) serve(ctx context.Context) error {
	l, err := w.listener(ctx, w.Config().Listen)
	if err != nil {
		return err
	}
	w.log.Info("listening", "address", l.Addr().String())
	server := &http.Server{
		Handler:           w.Handler(),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if server.Shutdown(ending) != nil {
			server.Close()
		}
	})
	err = server.Serve(l)
	if !stop() {
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}

// listenTCP is the real listener.
func listenTCP(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", address)
}

// Handler serves the watchdog's own pages. They hold no secrets and change
// nothing.
func (w *Watchdog) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = rw.Write([]byte("ok\n"))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(w.metrics.registry, promhttp.HandlerOpts{}))
	w.page.register(mux)
	mux.HandleFunc("GET "+statusPath, func(rw http.ResponseWriter, r *http.Request) {
		if !wantsJSON(r) {
			w.page.whole(rw, r)
			return
		}
		page.Secure(rw.Header())
		rw.Header().Set("Content-Type", "application/json")
		enc := json.NewEncoder(rw)
		enc.SetIndent("", "  ")
		_ = enc.Encode(w.Status()) // who left needs no status
	})
	return mux
}

func wantsJSON(r *http.Request) bool {
	return r.URL.Query().Get("format") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json")
}
