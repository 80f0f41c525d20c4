package server

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"karui/internal/api"
)

// Under a name that somebody else may have made to lead to this machine, nothing is
// shown that asks for no token; what orchestrators ask has nothing to show.
func TestNamesOfTheOperatorsListener(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	token := TokenConfig{Name: "ops", Token: "operator-0123456", Rights: []string{"read"}}
	for _, tt := range []struct {
		name, listen, host, path, bearer string
		tokens                           bool
		want                             int
	}{
		{"", "127.0.0.1:9090", "127.0.0.1:9090", "/metrics", "", false, 200},
		{"", "127.0.0.1:9090", "localhost:9090", "/metrics", "", false, 200},
		{"", "127.0.0.1:9090", "[::1]:9090", "/purge", "", false, 200},
		{"rebound", "127.0.0.1:9090", "evil.example:9090", "/metrics", "", false, 403},
		{"rebound", "127.0.0.1:9090", "evil.example:9090", "/purge", "", false, 403},
		{"rebound", "127.0.0.1:9090", "evil.example:9090", "/purge/purge.js", "", false, 403},
		{"rebound", "127.0.0.1:9090", "evil.example:9090", "/healthz", "", false, 200},
		{"rebound", "127.0.0.1:9090", "evil.example:9090", "/readyz", "", false, 200},
		{"with tokens", "127.0.0.1:9090", "127.0.0.1:9090", "/metrics", "", true, 200},
		{"rebound with tokens", "127.0.0.1:9090", "evil.example:9090", "/metrics", "", true, 401},
		{"behind a proxy", "127.0.0.1:9090", "karui.example", "/metrics", token.Token, true, 200},
		{"behind a proxy", "127.0.0.1:9090", "karui.example", "/purge", "", true, 200},
		{"beyond the loopback", ":9090", "127.0.0.1:9090", "/metrics", "", true, 401},
		{"beyond the loopback", ":9090", "127.0.0.1:9090", "/metrics", token.Token, true, 200},
	} {
		cfg := AdminConfig{Listen: tt.listen}
		if tt.tokens {
			cfg.Tokens = []TokenConfig{token}
		}
		calls := api.New(api.Options{Tokens: cfg.keys(), Log: log})
		h := operators(cfg, func() bool { return true }, prometheus.NewRegistry(), calls, page, page)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+tt.host+tt.path, nil)
		if tt.bearer != "" {
			r.Header.Set("Authorization", "Bearer "+tt.bearer)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s: %s at %s for %s: %d, want %d", tt.name, tt.path, tt.host, tt.listen, w.Code, tt.want)
		}
	}
}
