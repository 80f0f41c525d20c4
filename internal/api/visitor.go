package api

import "net/http"

// Visitor is somebody who looks at a page beside the API. Unlike a Call it holds
// nothing of a request, so that a session may keep it.
type Visitor struct {
	// Name is the token's, "" where none is needed.
	Name  string
	token Token
}

// Whole tells whether he may look at everything.
func (v *Visitor) Whole() bool { return len(v.token.Sites) == 0 }

// May tells whether he may look at the site.
func (v *Visitor) May(site string) bool { return (&Call{token: v.token}).May(site) }

// Visitor tells who asks, by the same rules as for the API, if he has the right; for
// some sites is enough. An error is for Refuse.
func (h *Handler) Visitor(r *http.Request, right Right) (*Visitor, error) {
	return h.visitor(r, bearer(r.Header), right)
}

// Enter is Visitor for a token that came in another way than in the header: wrong
// ones are held up in the same way, and together with those.
func (h *Handler) Enter(r *http.Request, secret string, right Right) (*Visitor, error) {
	return h.visitor(r, secret, right)
}

func (h *Handler) visitor(r *http.Request, secret string, right Right) (*Visitor, error) {
	call, err := h.identify(r, secret)
	if err == nil {
		err = h.permit(call, Route{Right: right})
	}
	if err != nil {
		return nil, err
	}
	return &Visitor{Name: call.Caller, token: call.token}, nil
}

// Near refuses what the API refuses whatever it asks for: what a web page of another
// origin sends, and, without tokens, what comes under a name that may be anybody's. An
// error is for Refuse.
func (h *Handler) Near(r *http.Request) error { return h.near(r) }

// Screen lets what Near does not refuse to a handler beside the API, which need not know
// who asks.
func (h *Handler) Screen(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.near(r); err != nil {
			h.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Local tells whether a request names this machine by the loopback or an address. Any
// other name may have been made to lead here by somebody else.
func Local(r *http.Request) bool { return local(r.Host) }

// Refuse answers with an error as the API does.
func (h *Handler) Refuse(w http.ResponseWriter, r *http.Request, err error) { h.fail(w, r, err) }
