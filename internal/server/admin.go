package server

import (
	"net"
	"net/http"
	"path"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"karui/internal/api"
	"karui/internal/purging"
	"karui/internal/status"
)

// operators is the handler of the operators' listener.
//
// /healthz says that the process lives, /readyz that it would serve; neither
// needs a token, since orchestrators have none. /metrics, which is about all
// sites, needs one with the right `read` for all of them, unless the listener can
// be reached from this machine only and is asked for under this machine's name: what
// collects metrics there often has none, and a browser may be led there under others.
// /status is for people, and asks them for a token itself. /purge is too, and holds
// nothing: its script asks the API.
// Below /api/v1, tokens are needed wherever some are configured, also on the
// loopback, since a proxy of the operators' own may stand in front of it.
func operators(cfg AdminConfig, ready func() bool, registry *prometheus.Registry, calls *api.Handler, people, purge http.Handler) http.Handler {
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
	guarded := calls.Guard(api.Read, metrics)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if isLoopback(cfg.Listen) && api.Local(r) {
			metrics.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
	mux.Handle(status.Path, people)
	mux.Handle(status.Path+"/", people)
	mux.Handle(purging.Path, calls.Screen(purge))
	mux.Handle(purging.Path+"/", calls.Screen(purge))
	mux.Handle(path.Dir(api.Prefix)+"/", calls) // which also says so of versions that there are not
	return mux
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // a client that left needs no text
}

// keys gives the tokens in the form of the API.
func (c AdminConfig) keys() []api.Token {
	tokens := make([]api.Token, len(c.Tokens))
	for i, t := range c.Tokens {
		tokens[i] = api.Token{Name: t.Name, Secret: t.Token, Sites: t.Sites}
		for _, r := range t.Rights {
			tokens[i].Rights = append(tokens[i].Rights, api.Right(r))
		}
	}
	return tokens
}

// isLoopback tells whether an address can be reached from this machine only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
