package status

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"karui/internal/api"
	"karui/internal/page"
)

//go:embed assets
var templates embed.FS

// Path is where the page is.
const Path = "/status"

// maxForm bounds what a form may send, in bytes.
const maxForm = 8 << 10

// Options are what a Handler is made of.
type Options struct {
	Recorder *Recorder
	API      *api.Handler
	// Version is karui's, empty where it is not known.
	Version string
	Log     *slog.Logger
	// Now is the clock of sessions; nil means time.Now.
	Now func() time.Time
}

// Handler serves the page. With tokens configured, whoever looks must show one with
// the right to read: in Authorization, as for the API, or in a form, which gives the
// browser a cookie for a while. Wrong ones are held up together with those of the API.
type Handler struct {
	mux      *http.ServeMux
	set      *page.Set
	recorder *Recorder
	api      *api.Handler
	sessions *sessions
	log      *slog.Logger
	host     string
	version  string
}

// NewHandler makes a Handler.
func NewHandler(o Options) (*Handler, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	set, err := page.New(Path, templates, "assets/*.html",
		append(machineParts(), "facts", "verdict", "charts", "sites", "events", "success", "places", "dial", "foot")...)
	if err != nil {
		return nil, fmt.Errorf("status page: %w", err)
	}
	h := &Handler{
		mux: http.NewServeMux(), set: set, recorder: o.Recorder, api: o.API, log: o.Log, version: o.Version,
		sessions: &sessions{now: o.Now, byID: map[[sha256.Size]byte]session{}},
	}
	h.host, _ = os.Hostname() // a machine without a name has a page all the same
	set.Assets(h.mux)
	h.mux.HandleFunc("GET "+Path, h.whole)
	h.mux.HandleFunc("GET "+Path+"/live", h.live)
	h.mux.HandleFunc("POST "+Path+"/enter", h.enter)
	h.mux.HandleFunc("POST "+Path+"/leave", h.leave)
	return h, nil
}

// machineParts are those of the page that are about the machine, and not for tokens
// of some sites.
func machineParts() []string { return []string{"workers", "volumes", "quarantine"} }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Routes are those of the API: GET /events.
func Routes(r *Recorder) []api.Route {
	return []api.Route{{Method: http.MethodGet, Pattern: "/events", Right: api.Read, Handle: func(c *api.Call) (any, error) {
		return Events{Events: r.Events(c)}, nil
	}}}
}

// Events is what GET /events answers, the newest first.
type Events struct {
	Events []Event `json:"events"`
}

// visitor tells who asks: by a session, by a token, or because none is needed.
func (h *Handler) visitor(r *http.Request) (v *api.Visitor, session bool, err error) {
	if r.Header.Get("Authorization") == "" {
		if v = h.sessions.of(r); v != nil {
			return v, true, nil
		}
	}
	v, err = h.api.Visitor(r, api.Read)
	return v, false, err
}

// whole is the page.
func (h *Handler) whole(w http.ResponseWriter, r *http.Request) {
	v, session, err := h.visitor(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.wrote(h.set.Whole(w, http.StatusOK, "status.html", h.view(r, v, session)))
}

// live is the parts of the page that have changed.
func (h *Handler) live(w http.ResponseWriter, r *http.Request) {
	v, session, err := h.visitor(r)
	if err != nil {
		page.Secure(w.Header())
		h.api.Refuse(w, r, err)
		return
	}
	var without []string
	if !v.Whole() {
		without = machineParts()
	}
	h.wrote(h.set.Live(w, r, h.view(r, v, session), without...))
}

func (h *Handler) view(r *http.Request, who *api.Visitor, session bool) view {
	all := r.URL.Query().Get("rows") == "all"
	p := h.recorder.picture(who)
	v := newMaker(p.in(zoneOf(r, p.facts.At.Location())), h.recorder.sources).view(all)
	v.Host, v.Version, v.Caller, v.Session = h.host, h.version, who.Name, session
	return v
}

func (h *Handler) wrote(err error) {
	if err != nil {
		h.log.Error("the status page failed", "error", err)
	}
}

// form is what the page of the token shows.
type form struct{ Host, Message string }

// refuse asks people for a token, and tells programs what is wrong.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var e *api.Error
	if !strings.Contains(r.Header.Get("Accept"), "text/html") || !errors.As(err, &e) || e.Code == api.CodeForeign {
		page.Secure(w.Header())
		h.api.Refuse(w, r, err)
		return
	}
	message := ""
	if r.Method == http.MethodPost || r.Header.Get("Authorization") != "" || e.Status != http.StatusUnauthorized {
		message = strings.ToUpper(e.Message[:1]) + e.Message[1:] + "."
	}
	h.wrote(h.set.Whole(w, e.Status, "enter.html", form{Host: h.host, Message: message}))
}

// enter takes a token and gives a session for it.
func (h *Handler) enter(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	v, err := h.api.Enter(r, strings.TrimSpace(r.PostFormValue("token")), api.Read)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	page.Secure(w.Header())
	http.SetCookie(w, cookie(r, h.sessions.open(v)))
	http.Redirect(w, r, Path, http.StatusSeeOther)
}

// leave ends the browser's session. Another site's page cannot: its requests are
// refused, bear no cookie, and to those without none is given or taken.
func (h *Handler) leave(w http.ResponseWriter, r *http.Request) {
	page.Secure(w.Header())
	if err := h.api.Near(r); err != nil {
		h.api.Refuse(w, r, err)
		return
	}
	if h.sessions.close(r) {
		http.SetCookie(w, cookie(r, ""))
	}
	http.Redirect(w, r, Path, http.StatusSeeOther)
}
