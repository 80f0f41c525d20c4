package server

import (
	"fmt"

	"karui/internal/config"
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
	}
	return remarks
}
