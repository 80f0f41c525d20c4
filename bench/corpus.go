package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// corpusTable sends all files beside the folder of photographs through `karui convert`, in every format, and looks at
// the memory of all processes together and at the slowest file. The proxy itself is not in it.
func corpusTable(ctx context.Context, b *bench) error {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(b.photos), "*", "*"))
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	if len(files) == 0 {
		b.say("no corpus: there are no folders beside %s", b.photos)
		return nil
	}
	t := newTable(fmt.Sprintf("%d files of every kind, 2 workers and 1 for slow codecs", len(files)),
		"format", "variants", "kept", "workers ended by a fault", "CPU-s of all", "CPU-s of the slowest file", "which", "MiB of all processes at most", "s on the clock")
	for _, format := range []string{"webp", "avif", "heic", "avif,heic,webp"} {
		b.say("all files to %s", format)
		r, err := convertAll(ctx, b, format, files)
		if err != nil {
			return fmt.Errorf("to %s: %w", format, err)
		}
		b.say("%d variants, %d MiB, slowest %s: %s", r.converted, r.memory>>20, filepath.Base(r.which), r.slowest)
		t.row(format, r.converted, r.kept, r.faults, fmt.Sprintf("%.0f", r.cpu.Seconds()), fmt.Sprintf("%.1f", r.slowest.Seconds()),
			filepath.Base(r.which), r.memory>>20, fmt.Sprintf("%.0f", r.clock.Seconds()))
	}
	t.print(b)
	return nil
}

type corpusRun struct {
	converted, kept, faults int
	cpu, slowest, clock     time.Duration
	which                   string
	memory                  int64
}

// faultCodes are the decisions that mean the end of a worker.
var faultCodes = map[string]bool{"crashed": true, "out_of_memory": true, "timeout": true, "unavailable": true}

func convertAll(ctx context.Context, b *bench, format string, files []string) (corpusRun, error) {
	var out, words bytes.Buffer
	args := append([]string{"convert", "--json", "--jobs", "3", "--format", format}, files...)
	cmd := exec.CommandContext(ctx, b.karui, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2") // of which the number of workers follows
	cmd.Stdout, cmd.Stderr = &out, &words
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return corpusRun{}, fmt.Errorf("start karui convert: %w", err)
	}
	watch := watchMemory([]int{cmd.Process.Pid})
	err := cmd.Wait()
	watch.stop()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return corpusRun{}, fmt.Errorf("run karui convert: %w", err)
	}
	var report struct {
		Files []struct {
			Path  string `json:"path"`
			Code  string `json:"code"`
			CPU   int64  `json:"cpu_ms"`
			Error string `json:"error"`
		} `json:"files"`
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return corpusRun{}, fmt.Errorf("read what karui convert said: %w\n%s", err, strings.TrimSpace(words.String()))
	}
	r := corpusRun{memory: watch.most(), clock: time.Since(begin)}
	for _, f := range report.Files {
		switch {
		case f.Code == "converted":
			r.converted++
		case faultCodes[f.Code]:
			r.faults++
			b.say("%s: %s: %s", format, filepath.Base(f.Path), f.Code)
		default:
			r.kept++
		}
		cpu := time.Duration(f.CPU) * time.Millisecond
		r.cpu += cpu
		if cpu > r.slowest {
			r.slowest, r.which = cpu, f.Path
		}
	}
	return r, nil
}
