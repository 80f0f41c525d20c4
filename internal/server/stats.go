package server

import (
	"net/http"
	"slices"

	"karui/cache"
	"karui/convert"
	"karui/internal/api"
	"karui/proxy/flight"
)

// routes are the server's own.
func (s *server) routes() []api.Route {
	return append([]api.Route{
		{Method: http.MethodGet, Pattern: "/stats", Right: api.Read, Handle: s.stats},
		{Method: http.MethodGet, Pattern: "/success", Right: api.Read, Handle: s.successes},
		{Method: http.MethodGet, Pattern: "/quarantine", Right: api.Read, Whole: true, Handle: s.quarantine},
		{Method: http.MethodDelete, Pattern: "/quarantine/{digest}", Right: api.Dial, Whole: true, Handle: s.release},
	}, slices.Concat(s.placeRoutes(), s.dialRoutes(), s.backlogRoutes())...)
}

// stats answers GET /stats.
func (s *server) stats(c *api.Call) (any, error) {
	answer := api.Stats{Since: s.began.UTC(), Sites: []api.SiteStats{}}
	postponed := s.backlog.Counts()
	for _, site := range s.proxy.Sites() {
		if c.May(site.ID) {
			site.Backlog = postponed[site.ID]
			answer.Sites = append(answer.Sites, site)
		}
	}
	if c.Whole() {
		answer.Workers = workerStats(s.pool.Stats())
		answer.Cache = cacheStats(s.cache.Stats())
		answer.Flights = flightStats(s.proxy.Flights())
		answer.Backlog = backlogStats(s.backlog.Status(0))
	}
	return answer, nil
}

func workerStats(s convert.Stats) *api.WorkerStats {
	return &api.WorkerStats{
		Fast: workerLoad(s.Load), Slow: workerLoad(s.Slow),
		Decisions: words(s.Decisions), Ended: words(s.Ended), Blamed: words(s.Blamed), Quarantined: words(s.Quarantined),
	}
}

func workerLoad(l convert.Load) api.WorkerLoad {
	return api.WorkerLoad{
		Workers: l.Workers, Alive: l.Alive, Busy: l.Busy, Waiting: l.Waiting, OldestWaitSeconds: l.OldestWait.Seconds(),
		CPUSeconds: l.CPU.Seconds(), BusySeconds: l.BusyTime.Seconds(),
	}
}

func cacheStats(s cache.Stats) *api.CacheStats {
	out := &api.CacheStats{
		HitsMemory: s.HitsMemory, HitsDisk: s.HitsDisk, Misses: s.Misses, MemoryBytes: s.MemoryBytes, MemoryMax: s.MemoryMax,
		Volumes: []api.VolumeStats{},
	}
	for _, v := range s.Volumes {
		out.Volumes = append(out.Volumes, api.VolumeStats{
			Path: v.Path, State: string(v.State), Loaded: v.Loaded, Files: v.Files, Bytes: v.Bytes, MaxBytes: v.MaxBytes,
			UsedRatio: v.UsedPercent / 100, Evictions: v.Evictions, Errors: v.WriteErrors + v.ReadErrors,
		})
	}
	return out
}

func flightStats(s flight.Stats) *api.FlightStats {
	return &api.FlightStats{
		Flights: s.Flights, Viewers: s.Viewers, MemoryBytes: s.Memory, DiskBytes: s.Disk,
	}
}

// words gives a map with plain keys.
func words[K ~string, V any](m map[K]V) map[string]V {
	out := make(map[string]V, len(m))
	for k, v := range m {
		out[string(k)] = v
	}
	return out
}
