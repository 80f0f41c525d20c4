package status

import (
	"net/http"
	"strconv"
	"time"
)

// maxOffset is that of the farthest zone of the world, in minutes.
const maxOffset = 14 * 60

// zoneOf gives the zone that times are shown in: that of the browser, whose script says
// by how many minutes it is ahead of UTC, else the server's own.
func zoneOf(r *http.Request, own *time.Location) *time.Location {
	minutes, err := strconv.Atoi(r.URL.Query().Get("offset"))
	if err != nil || minutes < -maxOffset || minutes > maxOffset {
		return own
	}
	return time.FixedZone("", minutes*60)
}

// in gives the picture with the time as it is in a zone. All other times are written
// in the zone of that one.
func (p picture) in(zone *time.Location) picture {
	f := *p.facts // others have the same
	f.At = f.At.In(zone)
	p.facts = &f
	return p
}
