package convert

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/davidbyttow/govips/v2/vips"

	"karui/convert/header"
)

// BenchmarkConvert takes photos of about 0.4, 1 and 6 MP through the pool and through libvips in this process, with
// the same settings, and reports the CPU time of each: cpu-ms/op is that of both processes together. The names sort
// so that the two of a size run one after the other; compare medians of several -count.
func BenchmarkConvert(b *testing.B) {
	startVips(b)
	for _, photo := range []struct{ name, path string }{
		{"S", "photos/kodim01_q75_2x2.jpg"}, {"M", "photos/testdata__flower_cropped.jpg"}, {"L", ""},
	} {
		source := benchPhoto(b, photo.path)
		info, plan := PlanWhole(source, webpOptions(80), DefaultConfig())
		size := fmt.Sprintf("%s=%.1fMP", photo.name, float64(info.Width*info.Height)/1e6)
		b.Run(size+"/bare", func(b *testing.B) { benchBare(b, source, plan) })
		b.Run(size+"/pool", func(b *testing.B) { benchPool(b, source) })
	}
}

// BenchmarkEffort makes WebP of the photos with each cheap effort, as far down the dial as goes.
func BenchmarkEffort(b *testing.B) {
	startVips(b)
	for _, photo := range []struct{ name, path string }{
		{"S", "photos/kodim01_q75_2x2.jpg"}, {"M", "photos/testdata__flower_cropped.jpg"}, {"L", ""},
	} {
		source := benchPhoto(b, photo.path)
		for _, quality := range []int{50, 70, 80} {
			_, plan := PlanWhole(source, webpOptions(quality), DefaultConfig())
			for effort := range 3 {
				plan.Effort = effort
				b.Run(fmt.Sprintf("%s/quality=%d/effort=%d", photo.name, quality, effort), func(b *testing.B) { benchBare(b, source, plan) })
			}
		}
	}
}

// startVips starts libvips in this process, as a worker does.
func startVips(b *testing.B) {
	b.Helper()
	vips.LoggingSettings(func(string, vips.LogLevel, string) {}, vips.LogLevelError)
	if err := vips.Startup(&vips.Config{ConcurrencyLevel: 1}); err != nil {
		b.Fatal(err)
	}
}

// benchPhoto is a photo of the corpus; "" makes one of 6 MP from a larger one.
func benchPhoto(b *testing.B, path string) []byte {
	b.Helper()
	if path != "" {
		return read(b, filepath.Join(corpusDir, path))
	}
	large := read(b, filepath.Join(corpusDir, "photos/deb-lomiri-wallpapers-16.04__Wine_by_Jakkub_Mede.jpg"))
	img, err := load(large, header.JPEG, func(p *vips.ImportParams) {})
	if err != nil {
		b.Fatal(err)
	}
	defer img.Close()
	if err := img.ExtractArea(0, 0, 2448, 2448); err != nil {
		b.Fatal(err)
	}
	p := vips.NewJpegExportParams()
	p.Quality, p.Interlace = 85, false
	out, _, err := img.ExportJpeg(p)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

func benchBare(b *testing.B, source []byte, plan Plan) {
	bytesOut := 0
	begin := cpuUsed()
	for b.Loop() {
		img, err := load(source, header.JPEG, func(p *vips.ImportParams) { p.AutoRotate.Set(true) })
		if err != nil {
			b.Fatal(err)
		}
		p := vips.NewWebpExportParams()
		p.Quality, p.ReductionEffort = plan.Quality, plan.Effort
		out, _, err := img.ExportWebp(p)
		img.Close()
		if err != nil {
			b.Fatal(err)
		}
		bytesOut = len(out)
	}
	report(b, cpuUsed()-begin, bytesOut)
}

func benchPool(b *testing.B, source []byte) {
	p := newPool(b, func(c *Config) { c.Workers = 1; c.Recycle = 1 << 30 })
	convertOne(b, p, source, webpOptions(80))
	pids := children(b)
	if len(pids) != 1 {
		b.Fatalf("%d workers", len(pids))
	}
	bytesOut := 0
	inJob := p.Stats().CPU
	begin, worker := cpuUsed(), threadsCPU(b, pids[0])
	for b.Loop() {
		r := convertOne(b, p, source, webpOptions(80))
		if r.Decision.Code != Converted {
			b.Fatalf("%+v", r.Decision)
		}
		bytesOut = len(r.Body)
	}
	own, worker := cpuUsed()-begin, threadsCPU(b, pids[0])-worker
	report(b, own+worker, bytesOut)
	b.ReportMetric(float64(own)/float64(b.N)/1e6, "pool-ms/op")
	b.ReportMetric(float64(worker-(p.Stats().CPU-inJob))/float64(b.N)/1e6, "handover-ms/op")
}

func report(b *testing.B, cpu time.Duration, bytesOut int) {
	b.ReportMetric(float64(cpu)/float64(b.N)/1e6, "cpu-ms/op")
	b.ReportMetric(float64(bytesOut), "B-out")
}

// threadsCPU is the CPU time of all living threads of a process, to the nanosecond.
func threadsCPU(b *testing.B, pid int) time.Duration {
	b.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(paths) == 0 {
		b.Skip("no schedstat here")
	}
	var sum int64
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		first, _, _ := bytes.Cut(line, []byte(" "))
		n, err := strconv.ParseInt(string(first), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return time.Duration(sum)
}
