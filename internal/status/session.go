package status

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"karui/internal/api"
)

// Of the sessions of browsers.
const (
	cookieName = "karui_status"
	// sessionLife is counted from signing in, whatever is looked at meanwhile.
	sessionLife = 8 * time.Hour
	maxSessions = 256
)

// sessions are the browsers that have shown a token. They live in memory: a restart
// ends them, and with it any token that the configuration no longer has.
type sessions struct {
	now  func() time.Time
	mu   sync.Mutex
	byID map[[sha256.Size]byte]session
}

type session struct {
	visitor *api.Visitor
	ends    time.Time
}

// open begins a session. Where there are too many, one of the token with the most ends
// now, the one that ends first: nobody who signs in again and again signs others out.
func (s *sessions) open(v *api.Visitor) (id string) {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails, by its documentation
	id = base64.RawURLEncoding.EncodeToString(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	of := map[string]int{}
	for key, one := range s.byID {
		if !now.Before(one.ends) {
			delete(s.byID, key)
			continue
		}
		of[one.visitor.Name]++
	}
	if len(s.byID) >= maxSessions {
		delete(s.byID, s.first(of))
	}
	s.byID[sha256.Sum256([]byte(id))] = session{visitor: v, ends: now.Add(sessionLife)}
	return id
}

// first gives the session that ends first of those whose token has the most.
func (s *sessions) first(of map[string]int) (key [sha256.Size]byte) {
	var first session
	for k, one := range s.byID {
		n, most := of[one.visitor.Name], 0
		if first.visitor != nil {
			most = of[first.visitor.Name]
		}
		if n > most || n == most && one.ends.Before(first.ends) {
			key, first = k, one
		}
	}
	return key
}

// of gives the visitor of a request's session, nil for none. What is looked up is a
// hash, so that the time it takes tells nothing about the ids that there are.
func (s *sessions) of(r *http.Request) *api.Visitor {
	c, err := r.Cookie(nameOf(r))
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.byID[sha256.Sum256([]byte(c.Value))]
	if !ok || !s.now().Before(one.ends) {
		return nil
	}
	return one.visitor
}

// close ends a request's session, and tells whether the request has named one.
func (s *sessions) close(r *http.Request) bool {
	c, err := r.Cookie(nameOf(r))
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, sha256.Sum256([]byte(c.Value)))
	return true
}

// nameOf gives the cookie's name, which holds the port: browsers tell hosts apart but
// not ports, and several of karui may be on one, as behind tunnels.
func nameOf(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return cookieName
	}
	return cookieName + "_" + port
}

// cookie gives the session's id to the browser; an empty one takes it away.
func cookie(r *http.Request, id string) *http.Cookie {
	c := &http.Cookie{ // #nosec G124 -- Secure where it can be: the listener itself speaks plain HTTP
		Name: nameOf(r), Value: id, Path: Path, MaxAge: int(sessionLife / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
		// Also where a proxy in front of the listener has the certificate.
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	}
	if id == "" {
		c.MaxAge = -1
	}
	return c
}
