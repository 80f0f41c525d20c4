package server

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"karui/convert"
	"karui/internal/api"
)

// quarantine answers GET /quarantine. An original is known by its bytes alone, not
// by the sites that have it, so the list is for tokens of all sites.
func (s *server) quarantine(*api.Call) (any, error) {
	items, now := s.pool.Quarantine(), time.Now()
	answer := api.Quarantine{Items: make([]api.Quarantined, len(items))}
	for i, q := range items {
		answer.Items[i] = api.Quarantined{Digest: q.Digest.String(), Cause: string(q.Cause), Until: q.Until.UTC(), Held: q.Held(now)}
	}
	return answer, nil
}

// release answers DELETE /quarantine/{digest}: the original is tried again when
// its next viewer asks. What the cache has noted of it no longer holds either, even
// where the pool does not know the digest any more.
func (s *server) release(c *api.Call) (any, error) {
	text := strings.ToLower(c.PathValue("digest"))
	b, err := hex.DecodeString(text)
	var digest convert.Digest
	if err != nil || len(b) != len(digest) {
		return nil, api.Invalid(fmt.Sprintf("%.100q is no digest", text), "name it in 64 hexadecimal digits, as GET /quarantine does")
	}
	copy(digest[:], b)
	known := s.pool.Release(digest)
	s.proxy.Pardon(digest)
	s.saveQuarantine()
	if !known {
		return nil, api.NotFound("no original with this digest is in quarantine",
			"if the cache still notes that one was, it is tried again from now on; GET "+api.Prefix+"/quarantine lists those that are")
	}
	return nil, nil
}
