package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
)

// Token is one operator's word.
type Token struct {
	Name   string
	Secret string
	Rights []Right
	// Sites are what it is for; none means all.
	Sites []string
}

// allows tells whether the token has the right.
func (t Token) allows(r Right) bool { return slices.Contains(t.Rights, r) }

// keyring are the tokens with their secrets hashed, so that comparing takes the
// same time whatever is sent and however long it is.
type keyring []key

type key struct {
	Token
	sum [sha256.Size]byte
}

func newKeyring(tokens []Token) keyring {
	var ring keyring
	for _, t := range tokens {
		if t.Secret != "" {
			ring = append(ring, key{t, sha256.Sum256([]byte(t.Secret))})
		}
	}
	return ring
}

// find gives the token that was sent. It looks at all of them.
func (ring keyring) find(secret string) (Token, bool) {
	sum := sha256.Sum256([]byte(secret))
	at := -1
	for i := range ring {
		if subtle.ConstantTimeCompare(sum[:], ring[i].sum[:]) == 1 {
			at = i
		}
	}
	if at < 0 {
		return Token{}, false
	}
	return ring[at].Token, true
}

// bearer gives the token of a request, "" for none.
func bearer(h http.Header) string {
	scheme, token, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
