package convert

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// usage is what a process holds and has used, as the kernel tells it to others.
type usage struct {
	cpu time.Duration // of all threads, user and system, in steps of 10 ms
	rss int64         // bytes resident
	// stopped: a signal has halted it. One that is held by a debugger is not meant.
	stopped bool
}

// tick is the unit of the times in /proc/PID/stat: USER_HZ, which is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// readUsage looks at /proc/PID/stat.
func readUsage(pid int) (usage, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("look at a worker: %w", err)
	}
	return parseStat(b)
}

// parseStat reads fields 14 (utime), 15 (stime) and 24 (rss, in pages) of proc_pid_stat(5). The name in field 2 may
// hold anything, so fields are counted from its closing bracket.
func parseStat(b []byte) (usage, error) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return usage{}, fmt.Errorf("look at a worker: no name in %q", b)
	}
	fields := bytes.Fields(b[end+1:])
	if len(fields) < 22 {
		return usage{}, fmt.Errorf("look at a worker: %d fields after the name, at least 22 are due", len(fields))
	}
	var n [3]int64
	for i, at := range [3]int{11, 12, 21} {
		v, err := strconv.ParseInt(string(fields[at]), 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("look at a worker: field %d: %w", at+3, err)
		}
		n[i] = v
	}
	return usage{
		cpu: time.Duration(n[0]+n[1]) * tick,
		rss: n[2] * int64(os.Getpagesize()), stopped: string(fields[0]) == "T",
	}, nil
}

// readDelay is how long the living threads of a process were ready to run and had to wait for a processor, in all;
// 0 where the kernel does not tell.
func readDelay(pid int) time.Duration {
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0
	}
	var sum time.Duration
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // that thread has ended
		}
		sum += parseDelay(b)
	}
	return sum
}

// parseDelay reads the second field of /proc/PID/schedstat, in nanoseconds.
func parseDelay(b []byte) time.Duration {
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0
	}
	n, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n)
}
