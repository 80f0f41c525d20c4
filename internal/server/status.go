package server

import (
	"fmt"
	"net/http"
	"strings"

	"karui/internal/api"
	"karui/internal/status"
)

// newRecorder begins the hour of the status page.
func (s *server) newRecorder() *status.Recorder {
	return status.NewRecorder(status.Sources{Facts: s.facts, Success: s.success.Of, Minutes: s.success.Minutes}, nil)
}

// statusPage makes the page for people.
func (s *server) statusPage(calls *api.Handler) (http.Handler, error) {
	return status.NewHandler(status.Options{Recorder: s.recorder, API: calls, Version: s.options.Version, Log: s.log})
}

// facts is how everything stands, for the status page.
func (s *server) facts() status.Facts {
	cfg := s.inForce()
	cached := s.cache.Stats()
	reloaded, since := s.reloaded.last()
	f := status.Facts{
		Sites: s.proxy.Sites(), Unrouted: s.proxy.Unrouted().Requests, DiskFull: s.proxy.DiskFull(), Ready: s.proxy.Well(),
		Dial: s.dialFacts(), Shed: map[string]status.Shed{}, Workers: workerStats(s.pool.Stats()), Cache: cacheStats(cached),
		Writes:  &status.Writes{Bytes: cached.QueueBytes, Max: cached.QueueMax, Dropped: cached.Dropped},
		Flights: flightStats(s.proxy.Flights()), Places: s.clients.status(),
		Reloaded: reloaded, ReloadedAt: since,
		Limits: status.Limits{
			Latency: cfg.Stress.Latency, Window: cfg.Stress.Window,
			High: float64(cfg.Disk.High), Low: float64(cfg.Disk.Low), Stress: float64(cfg.Disk.Stress),
		},
	}
	if s.backlog != nil {
		f.Backlog = &status.Backlog{Waiting: s.backlog.Counts()}
	}
	for _, site := range cfg.Sites {
		if share := s.proxy.Shares().Of(site.ID); share.Percent > 0 {
			f.Shed[site.ID] = status.Shed{Percent: share.Percent, Until: share.Until}
		}
	}
	for _, g := range s.proxy.Latency() {
		group := status.Group{Name: g.Group, Shedding: g.Shedding, Since: g.Since, Mean: g.Mean, Requests: g.Samples}
		if g.Site {
			group.Name, group.Site = "misses", g.Group
		}
		f.Groups = append(f.Groups, group)
	}
	if held, err := s.quarantine(nil); err == nil {
		if q, ok := held.(api.Quarantine); ok {
			f.Quarantine = q.Items
		}
	}
	return f
}

func (s *server) dialFacts() status.Dial {
	now := s.proxy.Dial().Status()
	d := status.Dial{
		Level: now.Level, Levels: now.Levels, Mode: now.Mode, Window: now.Window, Until: now.Until,
		Pins: make(map[string]status.Pin, len(now.Sites)), Moves: make([]status.Move, len(now.History)),
	}
	for id, pin := range now.Sites {
		d.Pins[id] = status.Pin{Level: pin.Level, Until: pin.Until}
	}
	for i, m := range now.History {
		d.Moves[i] = status.Move{At: m.At, Site: m.Site, From: m.FromName, To: m.ToName, Level: m.To, Cause: m.Cause, Detail: m.Detail}
	}
	return d
}

// noteOperator notes what operators did, for the events of the status page.
func (s *server) noteOperator(c *api.Call, err error) {
	e := status.Event{Kind: "operator", Tone: "plain", Machine: true, Caller: c.Caller, Text: deedOf(c).words(err != nil)}
	if site, only := c.Only(); only {
		e.Site, e.Machine = site, false
	}
	if c.Caller != "" {
		e.Cause = "by " + c.Caller
	}
	if err != nil {
		e.Refused, e.Tone, e.Cause = true, "warn", strings.TrimPrefix(fmt.Sprintf("%s, refused: %v", e.Cause, err), ", ")
	}
	s.recorder.Note(e)
}

// notePurge notes what the proxy has forgotten.
func (s *server) notePurge(site string, prefixes []string) {
	if len(prefixes) == 0 {
		return
	}
	e := status.Event{Kind: "purge", Tone: "plain", Site: site, Text: "Purged " + prefixes[0]}
	if n := len(prefixes); n > 1 {
		e.Text = fmt.Sprintf("Purged %s and %d more prefixes", prefixes[0], n-1)
	}
	s.recorder.Note(e)
}
