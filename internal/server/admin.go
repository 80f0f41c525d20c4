package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// admin is the handler of the operators' listener.
//
// /healthz says that the process lives, /readyz that it would serve; neither
// needs a token, since orchestrators have none. /metrics needs one with the right
// `read`, unless the listener can be reached from this machine only.
func admin(cfg AdminConfig, ready func() bool, registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusOK, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			plain(w, http.StatusServiceUnavailable, "not ready\n")
			return
		}
		plain(w, http.StatusOK, "ready\n")
	})
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry})
	mux.Handle("GET /metrics", authorized(cfg, "read", metrics))
	return mux
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // a client that left needs no text
}

// authorized asks for a token with the right.
func authorized(cfg AdminConfig, right string, next http.Handler) http.Handler {
	if loopback(cfg.Listen) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !cfg.allows(r.Header.Get("Authorization"), right) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="karui"`)
			plain(w, http.StatusUnauthorized, "a token with the right "+right+" is needed\n")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allows tells whether an Authorization header carries a token with the right. It
// takes the same time for every token.
func (c AdminConfig) allows(authorization, right string) bool {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	allowed := 0
	for _, t := range c.Tokens {
		own := sha256.Sum256([]byte(t.Token))
		same := subtle.ConstantTimeCompare(sum[:], own[:])
		if t.Token != "" && slices.Contains(t.Rights, right) {
			allowed |= same
		}
	}
	return allowed == 1
}

// loopback tells whether an address can be reached from this machine only.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
