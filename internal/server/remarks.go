package server

import (
	"fmt"

	"karui/internal/config"
	"karui/proxy"
)

// shortToken is what a token should have at least: as many random characters are about
// 80 bits. A wrong one is answered at once, so that only the length keeps whoever can ask
// a thousand times a second from finding it.
const shortToken = 16

// Remarks lists what is allowed but most likely not meant, in sentences for the
// log of a start.
func (c Config) Remarks() []string {
	var remarks []string
	for i, s := range c.Sites {
		if len(s.Hosts) == 0 && !s.Default {
			remarks = append(remarks, fmt.Sprintf(
				"%s has no hosts and is not the default: it answers only requests with %s: %s",
				config.Key("sites", i), c.Edge.RoutingHeader, s.ID))
		}
		if d := s.Distribution; d.ID != "" {
			key := config.Key("sites", i, "distribution")
			switch {
			case d.ID == proxy.Placeholder || d.RoleARN == proxy.Placeholder || d.ExternalID == proxy.Placeholder:
				remarks = append(remarks, fmt.Sprintf("%s holds a placeholder (%s): `karui purge` will fail at the edge", key, proxy.Placeholder))
			case d.RoleARN != "" && d.ExternalID == "":
				remarks = append(remarks, fmt.Sprintf(
					"%s.external_id is empty: whoever may assume roles for others could use %s (the confused deputy)", key, d.RoleARN))
			}
		}
	}
	for i, t := range c.Admin.Tokens {
		if len(t.Token) < shortToken {
			remarks = append(remarks, fmt.Sprintf("%s has fewer than %d characters and could be guessed: `openssl rand -hex 16` makes a good one",
				config.Key("admin", "tokens", i, "token"), shortToken))
		}
	}
	return remarks
}
