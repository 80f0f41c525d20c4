package server

import (
	"fmt"

	"karui/internal/config"
	"karui/proxy"
)

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
	return remarks
}
