package proxy

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"time"

	"karui/convert/header"
)

// Bounds of what the access log takes from a request, in bytes. CloudFront's request
// ids have 56 characters, and its URLs up to 8,192.
const (
	maxLoggedPath   = 1024
	maxLoggedID     = 128
	maxLoggedMethod = 16
)

// logAccess writes the line of the access log; docs/access-log.md describes it. Left
// out are health checks. Of a request it holds the method, the path and the edge's
// request id, each bounded: never the query, a cookie or any other header, since
// those may be secret or somebody's own. JSON keeps a line one line, whatever the
// path holds.
func (x *exchange) logAccess(took time.Duration) {
	if !x.set.accessLog || x.unlogged {
		return
	}
	site := ""
	if x.site != nil {
		site = x.site.config.ID
	}
	// UTC, and no finer than what the clocks of two machines have in common.
	record := slog.NewRecord(time.Now().UTC().Truncate(time.Millisecond), slog.LevelInfo, "request", 0)
	var room [16]slog.Attr
	all := append(
		room[:0],
		slog.String("site", site),
		slog.String("method", bounded(x.r.Method, maxLoggedMethod)),
		slog.String("path", bounded(x.target.Path, maxLoggedPath)),
		slog.Int("status", x.status),
		slog.String("outcome", string(x.did)),
		slog.Int64("bytes", x.bytes),
		slog.Float64("ttfb_ms", milliseconds(x.firstByte)),
		slog.Float64("total_ms", milliseconds(took)),
	)
	if why, ok := strings.CutPrefix(string(x.did), "503_"); ok {
		all = append(all, slog.String("reason", why))
	}
	if x.kept != "" {
		all = append(all, slog.String("kept", string(x.kept)))
	}
	if x.variant != header.Unknown {
		all = append(all, slog.String("format", x.variant.String()), slog.Int64("saved", x.saved))
		if x.dialled > 0 {
			all = append(all, slog.Int("dial", x.dialled))
		}
	}
	if x.tries > 0 {
		all = append(all, slog.String("place", x.place), slog.Int("tries", x.tries))
	}
	if id := x.r.Header.Get("X-Amz-Cf-Id"); id != "" {
		all = append(all, slog.String("cf_id", bounded(id, maxLoggedID)))
	}
	record.AddAttrs(all...)
	_ = x.p.access.Handler().Handle(context.Background(), record) // there is nobody else to tell
}

// bounded cuts a text that is too long, so that it shows.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

// milliseconds gives a time with three decimals.
func milliseconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e3 }
