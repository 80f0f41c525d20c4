package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"karui/internal/api"
)

// What operators ask for is told in words, and of what was refused only what it was about.
func TestDeeds(t *testing.T) {
	var got, refused string
	nothing := func(*api.Call) (any, error) { return struct{}{}, nil }
	var routes []api.Route
	for _, r := range []string{"PUT /dial", "PUT /places/{name}", "PUT /retry", "DELETE /quarantine/{digest}", "DELETE /backlog", "DELETE /backlog/{site}", "POST /purge", "POST /warm", "DELETE /warm/{id}", "POST /else"} {
		method, pattern, _ := strings.Cut(r, " ")
		most := int64(4 << 10)
		if method == http.MethodDelete {
			most = 0
		}
		routes = append(routes, api.Route{Method: method, Pattern: pattern, Right: api.Dial, MaxBody: most, Handle: nothing})
	}
	h := api.New(api.Options{Routes: routes, Log: slog.New(slog.DiscardHandler), Changed: func(c *api.Call, _ error) {
		got, refused = deedOf(c).words(false), deedOf(c).words(true)
	}})
	for _, tc := range []struct{ request, body, want, refused string }{
		{"PUT /dial", `{"level":"spare","for":"2h"}`, "An operator set the dial to spare, for 2h", "An operator asked in vain to set the dial"},
		{"PUT /dial", `{"level":"auto","site":"shop"}`, "An operator gave the dial back, of site shop", "An operator asked in vain to give the dial back"},
		{"PUT /dial", `{"shed":"30%"}`, "An operator set the share of requests that is turned away to 30%", "An operator asked in vain to set the share of requests that is turned away"},
		{"PUT /dial", `{"shed":"30%","level":"2","for":"1h"}`, "An operator set the share of requests that is turned away to 30%, and set the dial to 2, for 1h", "An operator asked in vain to set the share of requests that is turned away"},
		{"PUT /dial", `{"level":`, "An operator set the dial", "An operator asked in vain to set the dial"},
		{"PUT /places/osaka", `{"state":"out","for":"1h"}`, "An operator took place osaka out of use, for 1h", "An operator asked in vain to take place osaka out of use"},
		{"PUT /places/osaka", `{"state":"in"}`, "An operator let place osaka be used again", "An operator asked in vain to let place osaka be used again"},
		{"PUT /retry", `{"mode":"off","for":"6h"}`, "An operator switched second tries off, for 6h", "An operator asked in vain to switch second tries off"},
		{"PUT /retry", `{"mode":"auto"}`, "An operator allowed second tries", "An operator asked in vain to allow second tries"},
		{"DELETE /quarantine/0123456789abcdef", "", "An operator let original 0123456789ab be tried again", "An operator asked in vain to let original 0123456789ab be tried again"},
		{"DELETE /backlog/shop", "", "An operator emptied the backlog, of site shop", "An operator asked in vain to empty the backlog"},
		{"DELETE /backlog", "", "An operator emptied the backlog", "An operator asked in vain to empty the backlog"},
		{"POST /purge", `{}`, "An operator had something purged", "An operator asked in vain to have something purged"},
		{"POST /warm", `{}`, "An operator had pictures made ahead", "An operator asked in vain to have pictures made ahead"},
		{"DELETE /warm/7", "", "An operator ended /warm/7", "An operator asked in vain to end /warm/7"},
		{"POST /else", `{}`, "An operator called POST /api/v1/else", "An operator asked in vain to call POST /api/v1/else"},
	} {
		got, refused = "", ""
		method, path, _ := strings.Cut(tc.request, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+api.Prefix+path, strings.NewReader(tc.body))
		if tc.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got != tc.want || refused != tc.refused {
			t.Errorf("%s %s: %q and %q", tc.request, tc.body, got, refused)
		}
	}
}
