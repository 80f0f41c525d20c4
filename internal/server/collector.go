package server

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"karui/cache"
	"karui/convert"
	"karui/internal/purging"
	"karui/proxy/backlog"
	"karui/proxy/flight"
	"karui/proxy/origin"
	"karui/proxy/success"
)

// collector shows what the parts count themselves. Labels are fixed words and the
// numbers of volumes.
type collector struct {
	cache   func() cache.Stats
	pool    func() convert.Stats
	flights func() flight.Stats
	places  func() []origin.PlacesStatus
	success func() success.Snapshot
	// backlog gives what is to be made later, and the ids of the sites.
	backlog func() (backlog.Status, []string)
	self    func() self
	edge    func() map[string]purging.Stats
}

// desc is one metric of the collector.
type desc = *prometheus.Desc

func describe(name, help string, labels ...string) desc {
	return prometheus.NewDesc("karui_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector. It sends nothing, which is how a
// collector says that it is not to be checked for what it collects.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	counter := func(d desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge := func(d desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	c.collectCache(counter, gauge)
	c.collectPool(counter, gauge)
	collectPlaces(c.places(), counter, gauge)
	collectSuccess(c.success(), gauge)
	postponed, sites := c.backlog()
	collectBacklog(postponed, sites, counter, gauge)
	collectSelf(c.self(), counter, gauge)
	collectEdge(c.edge(), counter, gauge)
	f := c.flights()
	gauge(describe("flights", "Shared fetches that can be joined, those that are being converted included."), float64(f.Flights))
	gauge(describe("flight_viewers", "Viewers of shared fetches."), float64(f.Viewers))
	gauge(describe("flight_memory_bytes", "Bodies of shared fetches in memory."), float64(f.Memory))
	gauge(describe("flight_disk_bytes", "Bodies of shared fetches in temporary files."), float64(f.Disk))
	counter(describe("flights_spilled_total", "Bodies that went to a temporary file."), float64(f.Spilled))
	counter(describe("flights_paced_total", "Bodies for which there was neither memory nor disk."), float64(f.Paced))
}

type send func(d desc, v float64, labels ...string)

func (c collector) collectCache(counter, gauge send) {
	s := c.cache()
	gets := describe("cache_gets_total", "Looks into the cache by what answered them.", "tier")
	counter(gets, float64(s.HitsMemory), "memory")
	counter(gets, float64(s.HitsDisk), "disk")
	counter(gets, float64(s.Misses), "none")
	gauge(describe("cache_memory_bytes", "Bodies kept in memory."), float64(s.MemoryBytes))
	gauge(describe("cache_queue_bytes", "What waits in memory to be written to the volumes."), float64(s.QueueBytes))
	gauge(describe("cache_queue_max_bytes", "cache.write_queue."), float64(s.QueueMax))
	gauge(describe("purges_remembered", "Purges that are remembered, until every volume has been looked through for what they hit."), float64(s.Purges))
	counter(describe("purges_swept_files_total", "Files that were removed from the volumes because of a purge."), float64(s.Swept))
	counter(describe("cache_dropped_total", "Writes given up, since the queue was full or no volume took them."), float64(s.Dropped))
	for i, v := range s.Volumes {
		n := strconv.Itoa(i)
		gauge(describe("cache_volume_up", "1 while a volume is in use.", "volume"), truth(v.State == cache.StateOK), n)
		gauge(describe("cache_volume_bytes", "Blocks on disk that a volume's files take.", "volume"), float64(v.Bytes), n)
		gauge(describe("cache_volume_max_bytes", "A volume's max_size.", "volume"), float64(v.MaxBytes), n)
		gauge(describe("cache_volume_files", "Entries of a volume.", "volume"), float64(v.Files), n)
		gauge(describe("cache_volume_used_ratio", "Used share of a volume's file system.", "volume"), v.UsedPercent/100, n)
		gauge(describe("cache_volume_weight", "What a volume's share of new entries follows from.", "volume"), v.Weight, n)
		counter(describe("cache_volume_evictions_total", "Entries removed for room.", "volume"), float64(v.Evictions), n)
		counter(describe("cache_volume_puts_total", "Entries written.", "volume"), float64(v.Puts), n)
		counter(describe("cache_volume_broken_total", "Files found torn, changed or foreign.", "volume"), float64(v.Broken), n)
		failures := describe("cache_volume_errors_total", "Failed operations of a volume's disk.", "volume", "operation")
		counter(failures, float64(v.WriteErrors), n, "write")
		counter(failures, float64(v.ReadErrors), n, "read")
	}
}

// faults are the ends of workers that somebody may be alerted to. They are counted
// from 0: of a counter that begins at 1, Prometheus does not see the increase.
var faults = []convert.Cause{
	convert.CauseCrash, convert.CauseTimeout, convert.CauseMemory, convert.CauseGarbage, convert.CauseIdle, convert.CauseStart,
}

// collectPool is about the worker processes. Their class is fast for WebP, and
// slow for AVIF and HEIC.
func (c collector) collectPool(counter, gauge send) {
	s := c.pool()
	workers := describe("convert_workers", "Conversions that may run at a time.", "class")
	alive := describe("convert_workers_alive", "Worker processes that are ready or busy.", "class")
	busy := describe("convert_busy", "Conversions running.", "class")
	waiting := describe("convert_waiting", "Conversions waiting for a worker.", "class")
	waitingBytes := describe("convert_waiting_bytes", "Originals that wait for a worker.", "class")
	oldest := describe("convert_oldest_wait_seconds", "How long the longest waiting of these has waited.", "class")
	cpu := describe("convert_cpu_seconds_total", "CPU time of conversions.", "class")
	busyTime := describe("convert_busy_seconds_total", "Time that workers spent on conversions.", "class")
	for class, l := range map[string]convert.Load{"fast": s.Load, "slow": s.Slow} {
		gauge(workers, float64(l.Workers), class)
		gauge(alive, float64(l.Alive), class)
		gauge(busy, float64(l.Busy), class)
		gauge(waiting, float64(l.Waiting), class)
		gauge(waitingBytes, float64(l.WaitingBytes), class)
		gauge(oldest, l.OldestWait.Seconds(), class)
		counter(cpu, l.CPU.Seconds(), class)
		counter(busyTime, l.BusyTime.Seconds(), class)
	}
	bytes := describe("convert_bytes_total", "Sizes of converted originals and of their variants.", "direction")
	counter(bytes, float64(s.BytesIn), "in")
	counter(bytes, float64(s.BytesOut), "out")
	ended := describe("convert_workers_ended_total", "Worker processes that ended by cause.", "cause")
	for _, cause := range faults {
		if _, known := s.Ended[cause]; !known {
			counter(ended, 0, string(cause))
		}
	}
	for cause, n := range s.Ended {
		counter(ended, float64(n), string(cause))
	}
	blamed := describe("convert_blamed_total", "Faults of workers that were laid to an original, by cause.", "cause")
	for cause, n := range s.Blamed {
		counter(blamed, float64(n), string(cause))
	}
	quarantined := describe("convert_quarantined", "Originals that are left alone by cause.", "cause")
	for cause, n := range s.Quarantined {
		gauge(quarantined, float64(n), string(cause))
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
