package server

import (
	"context"
	"path/filepath"
	"time"

	"karui/internal/api"
	"karui/proxy/success"
)

// successFile holds what share of requests was answered well, over restarts.
const successFile = "success.json"

// successEvery is how often it is written: what a killed process loses at most.
const successEvery = time.Minute

func (s *server) successPath() string { return filepath.Join(s.stateDir(), successFile) }

// restoreSuccess goes on counting where the last process ended.
func (s *server) restoreSuccess() {
	s.success = success.New(nil)
	if err := s.success.Load(s.successPath()); err != nil {
		s.log.Warn("the share of requests that were answered well is counted from now on", "error", err)
	}
}

// keepSuccess writes it until ctx ends, and then for the last time.
func (s *server) keepSuccess(ctx context.Context) {
	s.success.Keep(ctx, s.successPath(), successEvery, func(err error) {
		s.log.Warn("the share of requests that were answered well is not kept over a restart", "error", err)
	})
}

// SuccessAnswer is what GET /success answers.
type SuccessAnswer struct {
	// All is about all sites together, for those who may see all of them.
	All   *success.Record           `json:"all,omitempty"`
	Sites map[string]success.Record `json:"sites"`
	// The targets of a minute and of a day.
	MinuteTarget float64 `json:"minute_target"`
	DayTarget    float64 `json:"day_target"`
}

// successes answers GET /success.
func (s *server) successes(c *api.Call) (any, error) {
	snapshot := s.success.Snapshot()
	answer := SuccessAnswer{Sites: map[string]success.Record{}, MinuteTarget: success.MinuteTarget, DayTarget: success.DayTarget}
	if c.Whole() {
		answer.All = &snapshot.All
	}
	for _, id := range s.inForce().ids() {
		if record, ok := snapshot.Sites[id]; ok && c.May(id) {
			answer.Sites[id] = record
		}
	}
	return answer, nil
}

// collectSuccess shows the shares in metrics.
func collectSuccess(snapshot success.Snapshot, gauge send) {
	all := describe("success_ratio", "Share of requests that were answered well: in the last full minute, and in the last 24 hours.", "span")
	site := describe("site_success_ratio", "Share of a site's requests that were answered well: in the last full minute, and in the last 24 hours.", "site", "span")
	missed := describe("success_minutes_missed", "Minutes of the last 24 hours in which fewer than 99.9 % of requests were answered well.")
	gauge(all, snapshot.All.LastMinute.Rate(), "minute")
	gauge(all, snapshot.All.LastDay.Rate(), "day")
	gauge(missed, float64(snapshot.All.MinutesMissed))
	for id, record := range snapshot.Sites {
		gauge(site, record.LastMinute.Rate(), id, "minute")
		gauge(site, record.LastDay.Rate(), id, "day")
	}
}
