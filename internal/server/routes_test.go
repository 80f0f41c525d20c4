package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"karui/internal/api"
)

// Every route and every right is on docs/metrics.md.
func TestRoutesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	routes := (&server{}).routes()
	if len(routes) < 5 {
		t.Fatalf("%d routes", len(routes))
	}
	for _, r := range routes {
		if row := "`" + r.Method + " " + api.Prefix + r.Pattern + "`"; !strings.Contains(string(page), row) {
			t.Errorf("docs/metrics.md lacks %s", row)
		}
	}
	for _, right := range []api.Right{api.Read, api.Purge, api.Dial} {
		if !strings.Contains(string(page), "\n| `"+string(right)+"` | ") {
			t.Errorf("docs/metrics.md does not say what the right %s allows", right)
		}
	}
}

// What asks for a version that there is not reads an error like any other.
func TestErrorsOfOtherVersionsAreJSON(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	h := operators(AdminConfig{Listen: "127.0.0.1:9090"}, func() bool { return true }, prometheus.NewRegistry(), api.New(api.Options{Log: log}), http.NotFoundHandler(), http.NotFoundHandler())
	for _, path := range []string{"/api/v2/stats", "/api/v1/nosuch", "/api/"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		r.Host = "127.0.0.1:9090"
		h.ServeHTTP(w, r)
		var body struct{ Error api.Error }
		if err := json.Unmarshal(w.Body.Bytes(), &body); w.Code != 404 || err != nil || body.Error.Code != api.CodeNotFound {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
