package convert

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"karui/convert/header"
)

// BenchmarkWorkerEnv compares environments of workers: the CPU time of the whole worker for each conversion, the most
// memory it ever held and what it holds at the end, between jobs. What stands in workerEnv is "as it is". Compare
// medians of several -count with a fixed -benchtime such as 50x, in which the variants take turns.
func BenchmarkWorkerEnv(b *testing.B) {
	startVips(b)
	sizes := map[string][]byte{
		"S": benchPhoto(b, "photos/kodim01_q75_2x2.jpg"), "M": benchPhoto(b, "photos/testdata__flower_cropped.jpg"),
		"L": benchPhoto(b, ""),
	}
	const jemalloc = "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
	for _, work := range []struct {
		name   string
		sizes  string
		format header.Format
	}{
		{"S", "S", header.WebP},
		{"M", "M", header.WebP},
		{"L", "L", header.WebP},
		{"mix", "SSSMSMSSML", header.WebP},
		{"avif", "M", header.AVIF},
		{"heic", "M", header.HEIC},
	} {
		for _, env := range []struct {
			name  string
			words []string
		}{
			{"as it is", nil},
			{"glibc", []string{"-u", "MALLOC_ARENA_MAX"}},
			{"1 arena", []string{"MALLOC_ARENA_MAX=1"}},
			{"trim 128k", []string{"MALLOC_TRIM_THRESHOLD_=131072"}},
			{"mmap 1M", []string{"MALLOC_MMAP_THRESHOLD_=1048576"}},
			{"jemalloc", []string{jemalloc}},
			{"jemalloc decay 0", []string{jemalloc, "MALLOC_CONF=narenas:2,dirty_decay_ms:0,muzzy_decay_ms:0"}},
			{"GOMAXPROCS 2", []string{"GOMAXPROCS=2"}},
			{"GOGC 400", []string{"GOGC=400"}},
		} {
			if env.words != nil && strings.HasPrefix(env.words[0], "LD_PRELOAD=") {
				if _, err := os.Stat(strings.TrimPrefix(jemalloc, "LD_PRELOAD=")); err != nil {
					continue
				}
			}
			if work.format != header.WebP && !CanMake(work.format) {
				continue
			}
			b.Run(work.name+"/"+env.name, func(b *testing.B) {
				var sources [][]byte
				for _, size := range strings.Split(work.sizes, "") {
					sources = append(sources, sizes[size])
				}
				benchEnv(b, env.words, sources, work.format)
			})
		}
	}
}

// benchEnv converts the sources in turn in one worker with a changed environment.
func benchEnv(b *testing.B, env []string, sources [][]byte, format header.Format) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	p := newPool(b, func(c *Config) { c.Workers = 1; c.Recycle = 1 << 30 },
		WithCommand("/usr/bin/env", append(append([]string{}, env...), self, WorkerCommand)...))
	opt := webpOptions(80)
	opt.Formats = []header.Format{format}
	convertOne(b, p, sources[0], opt)
	pid := 0
	for _, child := range children(b) {
		words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", child))
		if strings.Contains(string(words), envClass+"="+string(classOf(format))+"\x00") {
			pid = child
		}
	}
	begin, i := threadsCPU(b, pid), 0
	dead := p.Stats()
	for b.Loop() {
		if r := convertOne(b, p, sources[i%len(sources)], opt); r.Decision.Code != Converted {
			b.Fatalf("%+v", r.Decision)
		}
		i++
	}
	// The threads of slow encoders end with their job, and what they took with them: there, what the worker says counts.
	used := threadsCPU(b, pid) - begin
	if classOf(format) == Slow {
		used = p.Stats().Slow.CPU - dead.Slow.CPU
	}
	b.ReportMetric(float64(used)/float64(b.N)/1e6, "cpu-ms/op")
	b.ReportMetric(statusMiB(b, pid, "VmHWM"), "peak-MiB")
	b.ReportMetric(statusMiB(b, pid, "VmRSS"), "rest-MiB")
}

// statusMiB reads one of the sizes in /proc/PID/status.
func statusMiB(b *testing.B, pid int, name string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name+":")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) / 1024
}
