package status

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"karui/internal/api"
	"karui/proxy/origin"
	"karui/proxy/success"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is when the stories end.
func noon() time.Time { return time.Date(2026, 8, 1, 12, 0, 25, 0, time.UTC) }

// story is a karui that tests make up: its facts are told for each look.
type story struct {
	now      time.Time
	facts    func(at time.Time) Facts
	success  map[string]success.Record
	minutes  func(site string, n int) []success.Minute
	recorder *Recorder
}

// tell makes a recorder see the facts of an hour, one look each ten seconds.
func tell(hour time.Duration, facts func(at time.Time) Facts) *story {
	s := &story{now: noon().Add(-hour), facts: facts, success: map[string]success.Record{}}
	s.recorder = NewRecorder(Sources{
		Facts: func() Facts { return s.facts(s.now) },
		Success: func(site string) (success.Record, bool) {
			r, ok := s.success[site]
			return r, ok
		},
		Minutes: func(site string, n int) []success.Minute {
			if s.minutes == nil {
				return make([]success.Minute, n)
			}
			return s.minutes(site, n)
		},
	}, func() time.Time { return s.now })
	for !s.now.After(noon()) {
		s.recorder.look(0)
		s.now = s.now.Add(10 * time.Second)
	}
	s.now = noon()
	return s
}

// handler serves the story's page.
func (s *story) handler(t testing.TB, tokens ...api.Token) http.Handler {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	calls := api.New(api.Options{Routes: Routes(s.recorder), Tokens: tokens, Log: log, Now: func() time.Time { return s.now }})
	h, err := NewHandler(Options{Recorder: s.recorder, API: calls, Version: "v1.2.3", Log: log, Now: func() time.Time { return s.now }})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(Path, h)
	mux.Handle(Path+"/", h)
	mux.Handle(api.Prefix+"/", calls)
	return mux
}

// wave is a number that goes up and down over the day, the same for the same time.
func wave(at time.Time, mean float64, period time.Duration) float64 {
	return mean * (1 + 0.35*math.Sin(2*math.Pi*float64(at.Unix())/period.Seconds()) + 0.08*math.Sin(float64(at.Unix())/7))
}

// since counts what came at a rate, from an hour before noon until then.
func since(at time.Time, rate float64) uint64 {
	span := at.Sub(noon().Add(-90 * time.Minute)).Seconds()
	return uint64(max(rate*(span+400*math.Sin(span/400)), 0))
}

func siteNamed(i int) string {
	names := []string{"shop", "news", "photos", "travel-jp", "recipes"}
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("customer-%03d", i)
}

// healthy is a karui with n sites without trouble.
func healthy(at time.Time, n int) Facts {
	f := Facts{
		Ready: true, Reloaded: true, ReloadedAt: noon().Add(-3 * time.Hour), Shed: map[string]Shed{}, Unrouted: map[string]uint64{"503_route": since(at, 0.01), "ping": 700},
		Limits: Limits{Latency: 3 * time.Second, Window: 30 * time.Second, High: 90, Low: 85, Stress: 95},
		Dial:   Dial{Levels: []string{"full", "lean", "spare", "defer"}, Mode: "auto", Pins: map[string]Pin{}},
		Groups: []Group{
			{Name: "all", Mean: time.Duration(wave(at, 38, time.Hour)) * time.Millisecond, Requests: 400},
			{Name: "hits", Mean: time.Duration(wave(at, 1500, 20*time.Minute)) * time.Microsecond, Requests: 390},
		},
		Workers: &api.WorkerStats{
			Fast:  api.WorkerLoad{Workers: 2, Alive: 2, Busy: 1, BusySeconds: 0.3 * 2 * float64(since(at, 1)), CPUSeconds: 5100, Waiting: int(wave(at, 1.4, 11*time.Minute))},
			Slow:  api.WorkerLoad{Workers: 1, Alive: 1, BusySeconds: 0.12 * float64(since(at, 1)), CPUSeconds: 800},
			Ended: map[string]uint64{"recycled": 4},
		},
		Cache: &api.CacheStats{HitsMemory: 90210, HitsDisk: 40100, Misses: 8100, MemoryBytes: 201 << 20, MemoryMax: 256 << 20, Volumes: []api.VolumeStats{
			{Path: "/var/cache/karui", State: "ok", Loaded: true, Files: 412033, Bytes: 17 << 30, MaxBytes: 20 << 30, UsedRatio: wave(at, 0.62, 4*time.Hour), Evictions: 1204},
		}},
		Writes:  &Writes{Bytes: 1 << 20, Max: 64 << 20},
		Flights: &api.FlightStats{Flights: 3, Viewers: 5, MemoryBytes: 900 << 10},
		Backlog: &Backlog{Waiting: map[string]int{"shop": int(wave(at, 30, time.Hour))}},
	}
	for i := range n {
		rate := 40 / float64(i+1)
		id := siteNamed(i)
		f.Sites = append(f.Sites, api.SiteStats{ID: id, SavedBytes: since(at, rate*41_000), Requests: map[string]uint64{
			"hit": since(at, rate*0.8), "wait": since(at, rate*0.02), "miss": since(at, rate*0.03), "original": since(at, rate*0.12),
			"bypass": since(at, rate*0.05), "stale": since(at, rate*0.002), "aborted": since(at, rate*0.001), "503_origin": since(at, rate*0.00002),
		}})
		f.Groups = append(f.Groups, Group{Name: "misses", Site: id, Mean: time.Duration(wave(at, 90+7*float64(i%9), 17*time.Minute)) * time.Millisecond, Requests: 12})
		f.Places = append(f.Places, origin.PlacesStatus{Site: id, Retries: "on", Level: 2, Places: []origin.PlaceStatus{
			{Name: "tokyo", Weight: 1, State: origin.StateIn, InUse: true, Addresses: 2, Tries: 130, UnderWay: 2},
			{Name: "osaka", Weight: 1, State: origin.StateIn, InUse: true, Addresses: 1, Tries: 122},
		}})
	}
	return f
}

// good is a day in which nearly all was answered well.
func good() success.Record {
	return success.Record{
		LastMinute: success.Minute{Share: success.Share{Good: 2400, Total: 2400}}, Minutes: 1440,
		LastDay: success.Share{Good: 3_460_300, Total: 3_460_321}, Reasons: []success.Reason{{Word: "origin", Count: 21}},
	}
}

// minutesOf gives minutes of which those that bad names had failures.
func minutesOf(bad map[int]uint64) func(string, int) []success.Minute {
	return func(_ string, n int) []success.Minute {
		out := make([]success.Minute, n)
		for i := range out {
			out[i] = success.Minute{Share: success.Share{Good: 2400 - bad[i], Total: 2400}}
		}
		return out
	}
}

// told makes a story whole: all sites did well.
func told(s *story) *story {
	for _, site := range s.facts(s.now).Sites {
		s.success[site.ID] = good()
	}
	s.success[""] = good()
	s.minutes = minutesOf(map[int]uint64{41: 1})
	return s
}

// stories are the states in which the page is looked at.
func stories() map[string]func() *story {
	hour := 80 * time.Minute
	return map[string]func() *story{
		"healthy":   func() *story { return told(tell(hour, func(at time.Time) Facts { return healthy(at, 3) })) },
		"start":     func() *story { return quiet(4 * time.Second) },
		"idle":      func() *story { return quiet(25 * time.Minute) },
		"one-site":  func() *story { return told(tell(22*time.Minute, func(at time.Time) Facts { return healthy(at, 1) })) },
		"50-sites":  func() *story { return told(tell(hour, func(at time.Time) Facts { return healthy(at, 50) })) },
		"200-sites": func() *story { return told(tell(hour, func(at time.Time) Facts { return healthy(at, 200) })) },
		"shedding":  shedding,
		"pinned":    pinned,
		"disk-full": diskFull,
		"places":    placesOut,
		"no-origin": noOrigin,
		"hostile":   hostile,
	}
}

// quiet is a karui that nobody has asked yet.
func quiet(span time.Duration) *story {
	return tell(span, func(at time.Time) Facts {
		f := healthy(at, 1)
		f.Sites[0].Requests, f.Sites[0].SavedBytes, f.Unrouted, f.Groups = nil, 0, nil, nil
		f.Places[0].Places = f.Places[0].Places[:1]
		f.Places[0].Places[0].Tries, f.Places[0].Places[0].UnderWay, f.Places[0].Places[0].Addresses = 0, 0, 1
		f.Workers.Fast.BusySeconds, f.Workers.Slow.BusySeconds, f.Backlog.Waiting, f.Flights = 0, 0, nil, &api.FlightStats{}
		f.Workers.Fast.Busy, f.Workers.Fast.Waiting, f.Workers.Ended = 0, 0, nil
		return f
	})
}

// shedding: an origin hangs for the last ten minutes, workers are pressed, and the
// dial has moved twice.
func shedding() *story {
	began := noon().Add(-10 * time.Minute)
	up := Move{At: began.Add(2 * time.Minute), From: "full", To: "lean", Level: 1, Cause: "load", Detail: "all of the workers' time was used for 10s, and a conversion waited over 500ms"}
	more := Move{At: began.Add(5 * time.Minute), From: "lean", To: "spare", Level: 2, Cause: "load", Detail: up.Detail}
	s := told(tell(80*time.Minute, func(at time.Time) Facts {
		f := healthy(at, 8)
		if at.Before(began) {
			return f
		}
		seconds := at.Sub(began).Seconds()
		f.Groups[2] = Group{Name: "misses", Site: "shop", Shedding: true, Since: began, Mean: 4100 * time.Millisecond, Requests: 3}
		f.Sites[0].Requests["503_latency"] = uint64(2.4 * seconds)
		f.Sites[1].Requests["503_shed"] = uint64(5 * seconds)
		f.Shed["news"] = Shed{Percent: 30, Until: noon().Add(100 * time.Minute)}
		f.Workers.Fast.BusySeconds = 0.3*2*float64(since(began, 1)) + 2*seconds
		f.Workers.Fast.Waiting, f.Workers.Fast.OldestWaitSeconds = 8+int(seconds/20), 1.8
		f.Workers.Ended = map[string]uint64{"recycled": 4, "crash": uint64(seconds) / 250, "memory": 1}
		f.Quarantine = []api.Quarantined{
			{Digest: strings.Repeat("3fa9c1d2", 8), Cause: "crash", Until: noon().Add(23 * time.Hour), Held: true},
			{Digest: strings.Repeat("77ab00ce", 8), Cause: "memory", Until: noon().Add(19 * time.Hour), Held: true},
			{Digest: strings.Repeat("0c5588fe", 8), Cause: "timeout", Until: noon().Add(20 * time.Hour)},
		}
		f.Dial.Moves, f.Dial.Level = nil, 0
		if !at.Before(up.At) {
			f.Dial.Moves, f.Dial.Level = []Move{up}, 1
		}
		if !at.Before(more.At) {
			f.Dial.Moves, f.Dial.Level = []Move{more, up}, 2
		}
		f.Cache.Volumes[0].UsedRatio = 0.88
		return f
	}))
	bad := map[int]uint64{}
	for i := 50; i < 60; i++ {
		bad[i] = 240
	}
	s.minutes = minutesOf(bad)
	r := good()
	r.LastMinute.Good, r.LastDay.Good, r.MinutesMissed = 2160, 3_455_500, 9
	r.Worst = success.Minute{Start: began, Share: success.Share{Good: 2110, Total: 2400}}
	r.Reasons = []success.Reason{{Word: "shed", Count: 3000}, {Word: "latency", Count: 1440}, {Word: "origin", Count: 21}}
	s.success[""], s.success["shop"], s.success["news"] = r, r, r
	return s
}

// noOrigin: the only origin of a site, of whose pictures few are in the cache, refuses
// connections for a quarter of an hour.
func noOrigin() *story {
	began := noon().Add(-15 * time.Minute)
	s := told(tell(80*time.Minute, func(at time.Time) Facts {
		f := healthy(at, 2)
		f.Sites[1].ID, f.Places[1].Site, f.Groups[3].Site = "blog", "blog", "blog"
		f.Places[1].Places = f.Places[1].Places[:1]
		main := &f.Places[1].Places[0]
		main.Name, main.Addresses, main.Tries, main.UnderWay = "main", 1, 11, 0
		for word := range f.Sites[1].Requests {
			f.Sites[1].Requests[word] /= 100
		}
		if !at.Before(began) {
			f.Sites[1].Requests = map[string]uint64{"503_origin": uint64(at.Sub(began).Seconds() * 11 / 60)}
			main.Unavailable, main.LastFailure = 11, "connection refused"
			f.Places[1].Retries = "cut"
		}
		return f
	}))
	r := good()
	r.LastMinute.Good, r.LastMinute.Total = 0, 11
	r.LastDay = success.Share{Good: 310, Total: 475}
	s.success["blog"] = r
	all := good()
	all.LastMinute.Good, all.LastMinute.Total = 124, 135
	s.success[""] = all
	shop := good()
	shop.LastDay.Good -= 700
	s.success["shop"] = shop
	return s
}

// pinned: a festival, for which an operator holds the dial.
func pinned() *story {
	began := noon().Add(-40 * time.Minute)
	move := Move{At: began, From: "full", To: "spare", Level: 2, Cause: "pin", Detail: "an operator has set it, until 2026-08-01T14:00:00Z"}
	return told(tell(80*time.Minute, func(at time.Time) Facts {
		f := healthy(at, 3)
		if !at.Before(began) {
			f.Dial.Level, f.Dial.Mode, f.Dial.Until, f.Dial.Moves = 2, "pinned", noon().Add(2*time.Hour), []Move{move}
			f.Dial.Pins["photos"] = Pin{Level: 0}
		}
		return f
	}))
}

// diskFull: of three volumes one is out and two are full.
func diskFull() *story {
	began := noon().Add(-6 * time.Minute)
	s := told(tell(80*time.Minute, func(at time.Time) Facts {
		f := healthy(at, 3)
		one := f.Cache.Volumes[0]
		f.Cache.Volumes = nil
		for i := range 3 {
			v := one
			v.Path, v.UsedRatio = fmt.Sprintf("/mnt/disk%d/karui", i), min(0.8+0.02*float64(i)+0.00004*float64(since(at, 1)), 0.962)
			if i == 1 && at.After(began.Add(-20*time.Minute)) {
				v.State, v.Errors = "out", 12
			}
			f.Cache.Volumes = append(f.Cache.Volumes, v)
		}
		if !at.Before(began) {
			f.DiskFull = true
			for i := range f.Sites {
				f.Sites[i].Requests["503_disk"] = uint64(at.Sub(began).Seconds() * 20)
			}
			f.Groups = nil
			f.Writes.Dropped = 210
		}
		return f
	}))
	bad := map[int]uint64{}
	for i := 54; i < 60; i++ {
		bad[i] = 2400
	}
	s.minutes = minutesOf(bad)
	r := good()
	r.LastMinute.Good, r.LastDay.Good, r.MinutesMissed = 0, 3_445_921, 5
	r.Reasons = append([]success.Reason{{Word: "disk", Count: 14400}}, r.Reasons...)
	s.success[""] = r
	return s
}

// placesOut: an operator has taken a place out, one is down, one is sick.
func placesOut() *story {
	began := noon().Add(-12 * time.Minute)
	return told(tell(80*time.Minute, func(at time.Time) Facts {
		f := healthy(at, 5)
		if at.Before(began) {
			return f
		}
		p := f.Places
		p[0].Places[0].State, p[0].Places[0].InUse, p[0].Places[0].Until = origin.StateOut, false, noon().Add(48*time.Minute)
		p[1].Places[1].State, p[1].Places[1].InUse, p[1].Places[1].AddressesDown, p[1].Places[1].Unavailable = origin.StateDown, false, 1, 3
		p[2].Places[1].State, p[2].Places[1].TimedOut = origin.StateSick, 31
		p[2].Retries = "cut"
		p[3].Retries, p[3].Until = "off", noon().Add(5*time.Hour)
		return f
	}))
}

// hostile: a configuration with long and ugly names.
func hostile() *story {
	ugly := `<script>alert("1")</script>'&` + strings.Repeat("長い", 20)
	return told(tell(80*time.Minute, func(at time.Time) Facts {
		f := healthy(at, 2)
		f.Sites[0].ID, f.Sites[1].ID = ugly, strings.Repeat("w", 120)
		f.Places[0].Site, f.Places[1].Site = ugly, f.Sites[1].ID
		f.Places[0].Places[0].Name, f.Places[0].Places[0].State = ugly, origin.StateOut
		f.Groups[2] = Group{Name: "misses", Site: ugly, Shedding: true, Since: noon().Add(-time.Minute), Mean: 9 * time.Second, Requests: 3}
		f.Shed[ugly] = Shed{Percent: 12.5}
		f.Dial.Pins[ugly] = Pin{Level: 99}
		f.Dial.Levels = []string{ugly, "x"}
		f.Dial.Window, f.Dial.Mode, f.Dial.Level = ugly, "schedule", 1
		f.Dial.Moves = []Move{{At: noon().Add(-5 * time.Minute), Site: ugly, From: ugly, To: "x", Level: 1, Cause: ugly, Detail: ugly}}
		f.Cache.Volumes[0].Path = "/" + strings.Repeat("deep/", 40) + ugly
		f.Cache.Volumes[0].State = "readonly"
		f.Quarantine = []api.Quarantined{{Digest: ugly, Cause: ugly, Held: true, Until: noon().Add(time.Hour)}}
		return f
	}))
}
