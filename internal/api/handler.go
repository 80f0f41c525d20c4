package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Options are what a Handler is made of.
type Options struct {
	Routes []Route
	// Tokens are the operators'. Without any, every caller has all rights: the
	// listener must be on the loopback then.
	Tokens []Token
	Log    *slog.Logger
	// Changed is told of each request that was to change something, with its error;
	// nil for nobody.
	Changed func(c *Call, err error)
	// Now is the clock of the limit on wrong tokens; nil means time.Now.
	Now func() time.Time
}

// Handler is the http.Handler of everything below Prefix.
type Handler struct {
	mux      *http.ServeMux
	tokens   keyring
	open     bool
	attempts *attempts
	foreign  *http.CrossOriginProtection
	log      *slog.Logger
	changed  func(*Call, error)
}

// New makes a Handler. It panics on a table that is no table: two routes for one
// method and pattern, or a pattern that cannot be read.
func New(o Options) *Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	h := &Handler{
		mux: http.NewServeMux(), tokens: newKeyring(o.Tokens), open: len(o.Tokens) == 0, attempts: newAttempts(o.Now),
		foreign: http.NewCrossOriginProtection(), log: o.Log, changed: o.Changed,
	}
	byPattern := map[string]resource{}
	for _, r := range o.Routes {
		if byPattern[r.Pattern] == nil {
			byPattern[r.Pattern] = resource{}
		}
		if _, twice := byPattern[r.Pattern][r.Method]; twice {
			panic("api: two routes for " + r.Method + " " + r.Pattern)
		}
		byPattern[r.Pattern][r.Method] = r
	}
	for pattern, methods := range byPattern {
		h.mux.HandleFunc(Prefix+pattern, func(w http.ResponseWriter, r *http.Request) { h.resource(w, r, methods) })
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if _, err := h.caller(r); err != nil {
			h.fail(w, r, err)
			return
		}
		h.fail(w, r, NotFound("there is nothing at "+r.URL.Path, "docs/metrics.md lists what there is"))
	})
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		v := recover()
		if v == nil || v == http.ErrAbortHandler { //nolint:errorlint // it is compared so by net/http
			return
		}
		h.log.Error("panic in the API", "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
		panic(http.ErrAbortHandler)
	}()
	h.mux.ServeHTTP(w, r)
}

// resource are the routes of one pattern by method.
type resource map[string]Route

func (m resource) allow() string {
	var methods []string
	for method := range m {
		methods = append(methods, method)
		if method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// resource answers a request whose path is known.
func (h *Handler) resource(w http.ResponseWriter, r *http.Request, methods resource) {
	call, err := h.caller(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	route, ok := methods[method]
	if !ok {
		h.fail(w, r, &Error{
			Status: http.StatusMethodNotAllowed, Code: CodeMethod, Message: r.Method + " is not for " + r.URL.Path,
			Remedy: "use " + methods.allow(), header: http.Header{"Allow": {methods.allow()}},
		})
		return
	}
	value, err := h.run(w, route, call)
	if route.writes() {
		h.audit(call, err)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.answer(w, http.StatusOK, value)
}

// Guard lets only callers with the right for all sites to a handler beside the
// API.
func (h *Handler) Guard(right Right, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call, err := h.caller(r)
		if err == nil {
			err = h.permit(call, Route{Right: right, Whole: true})
		}
		if err != nil {
			h.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// permit tells whether the caller may use the route.
func (h *Handler) permit(call *Call, route Route) error {
	if !h.open && !call.token.allows(route.Right) {
		return Forbidden(fmt.Sprintf("the token %q lacks the right %s", call.Caller, route.Right),
			fmt.Sprintf("use one whose rights in admin.tokens hold %s", route.Right))
	}
	if route.Whole {
		return call.RequireWhole()
	}
	return nil
}

// run hands the call to its route, if the caller may use it.
func (h *Handler) run(w http.ResponseWriter, route Route, call *Call) (any, error) {
	if err := h.permit(call, route); err != nil {
		return nil, err
	}
	if err := call.readBody(w, route.MaxBody); err != nil {
		return nil, err
	}
	return route.Handle(call)
}

// caller tells who asks, or why the request is refused whatever it asks for.
func (h *Handler) caller(r *http.Request) (*Call, error) { return h.identify(r, bearer(r.Header)) }

// identify is caller for a token wherever it came from.
func (h *Handler) identify(r *http.Request, secret string) (*Call, error) {
	if err := h.near(r); err != nil {
		return nil, err
	}
	if h.open {
		return &Call{Request: r}, nil
	}
	if secret == "" {
		return nil, unauthorized("a token is needed", "send one of admin.tokens in Authorization: Bearer")
	}
	// A right token is let in whatever came before it: behind a proxy, all have one
	// address, and whoever guesses there would lock out everybody.
	token, ok := h.tokens.find(secret)
	if ok {
		return &Call{Request: r, Caller: token.Name, token: token}, nil
	}
	if !h.attempts.wrong(r.RemoteAddr) {
		return nil, &Error{
			Status: http.StatusTooManyRequests, Code: CodeTooMany, Message: "the token is none of admin.tokens, and too many wrong ones came from this address",
			Remedy: "compare it with the configuration that karui was started with, and wait some seconds", header: http.Header{"Retry-After": {"5"}},
		}
	}
	h.log.Warn("wrong token for the API", "peer", r.RemoteAddr)
	return nil, unauthorized("the token is none of admin.tokens", "compare it with the configuration that karui was started with")
}

// near refuses what a web page of another origin sends. Without tokens, the only proof
// of being an operator is being on this machine, and a browser on it can be led here
// under any name that resolves to it: such names are refused, too.
func (h *Handler) near(r *http.Request) error {
	if err := h.foreign.Check(r); err != nil {
		return foreign("the request comes from a web page of another origin")
	}
	if h.open && !local(r.Host) {
		return foreign(fmt.Sprintf("the host %q may be anybody's name for this machine", r.Host))
	}
	return nil
}

func unauthorized(message, remedy string) *Error {
	return &Error{
		Status: http.StatusUnauthorized, Code: CodeUnauthorized, Message: message, Remedy: remedy,
		header: http.Header{"Www-Authenticate": {`Bearer realm="karui"`}},
	}
}

func foreign(message string) *Error {
	return &Error{
		Status: http.StatusForbidden, Code: CodeForeign, Message: message,
		Remedy: "ask http://127.0.0.1 or http://localhost at admin.listen's port, or configure admin.tokens",
	}
}

// local tells whether a Host header is an address or names the loopback. Any
// other name may have been made to resolve to this machine by somebody else.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil
}

// audit notes who changed what. The query may hold anything and is left out.
func (h *Handler) audit(c *Call, err error) {
	result := "done"
	if err != nil {
		result = "refused"
	}
	h.log.Info("operator's request", "token", c.Caller, "peer", c.RemoteAddr, "method", c.Method, "path", c.URL.Path, "result", result)
	if h.changed != nil {
		h.changed(c, err)
	}
}

// answer sends a value.
func (h *Handler) answer(w http.ResponseWriter, status int, value any) {
	head := w.Header()
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	if value == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	b, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		h.log.Error("an answer of the API cannot be written as JSON", "error", err)
		status, b = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the answer cannot be written"}}`)
	}
	head.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // a caller that left needs no answer
}

// fail sends an error.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	var e *Error
	if !errors.As(err, &e) {
		h.log.Error("the API failed", "method", r.Method, "path", r.URL.Path, "error", err)
		e = &Error{Status: http.StatusInternalServerError, Code: CodeInternal, Message: "it failed inside karui", Remedy: "its log says why"}
	}
	for name, values := range e.header {
		w.Header()[name] = values
	}
	h.answer(w, e.Status, map[string]*Error{"error": e})
}
