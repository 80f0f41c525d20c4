package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the kernel's CPU times: USER_HZ is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// stat is what /proc/PID/stat says of one process.
type stat struct {
	parent int
	// self is the CPU time of the process, waited that of its children which ended and were waited for.
	self, waited time.Duration
}

// parseStat reads /proc/PID/stat. The name in it may hold spaces and parentheses.
func parseStat(b []byte) (stat, error) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return stat{}, errors.New("parse stat: no name")
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 15 {
		return stat{}, fmt.Errorf("parse stat: %d fields behind the name, want at least 15", len(f))
	}
	parent, err := strconv.Atoi(f[1])
	if err != nil {
		return stat{}, fmt.Errorf("parse stat: parent: %w", err)
	}
	var t [4]int64 // utime, stime, cutime, cstime: fields 14 to 17 of the line
	for i := range t {
		if t[i], err = strconv.ParseInt(f[11+i], 10, 64); err != nil {
			return stat{}, fmt.Errorf("parse stat: time: %w", err)
		}
	}
	return stat{parent, time.Duration(t[0]+t[1]) * tick, time.Duration(t[2]+t[3]) * tick}, nil
}

// readStats reads all processes.
func readStats() (map[int]stat, error) {
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	all := map[int]stat{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		s, err := parseStat(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			all[pid] = s
		}
	}
	return all, nil
}

// tree gives the processes of all and their descendants, out of what was read.
func tree(roots []int, all map[int]stat) []int {
	in := map[int]bool{}
	for _, pid := range roots {
		if _, ok := all[pid]; ok {
			in[pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for pid, s := range all {
			if !in[pid] && in[s.parent] {
				in[pid], grown = true, true
			}
		}
	}
	pids := make([]int, 0, len(in))
	for pid := range in {
		pids = append(pids, pid)
	}
	return pids
}

// cpuOf is the CPU time that the processes and all their descendants have used, those that ended included.
func cpuOf(roots []int) (time.Duration, error) {
	all, err := readStats()
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, pid := range tree(roots, all) {
		total += all[pid].self + all[pid].waited
	}
	return total, nil
}

// settledCPU is cpuOf as soon as the processes do nothing any more, after three seconds at most.
func settledCPU(roots []int) (time.Duration, error) {
	before, err := cpuOf(roots)
	for range 30 {
		if err != nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
		var now time.Duration
		if now, err = cpuOf(roots); now-before < 2*tick {
			return now, err
		}
		before = now
	}
	return before, err
}

// memoryOf is the memory of the processes and their descendants in bytes: the proportional set size, in which pages
// that several processes share count once.
func memoryOf(roots []int) (int64, error) {
	all, err := readStats()
	if err != nil {
		return 0, err
	}
	var total int64
	for _, pid := range tree(roots, all) {
		n, err := memoryOfOne(pid)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// memoryOfOne is the memory of one process; 0 when it has ended.
func memoryOfOne(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, nil //nolint:nilerr // it has ended
	}
	return parsePSS(b)
}

// parsePSS finds the line "Pss:  123 kB" and returns bytes; 0 for a process that is ending.
func parsePSS(b []byte) (int64, error) {
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) == 3 && f[0] == "Pss:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("parse Pss: %w", err)
			}
			return n << 10, nil
		}
	}
	return 0, nil
}

// listeners finds the processes that have a TCP port of this machine open for listening.
func listeners(port int) ([]int, error) {
	sockets := map[string]bool{}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read sockets: %w", err)
		}
		for _, inode := range parseListening(string(b), port) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return nil, fmt.Errorf("list open files: %w", err)
	}
	found := map[int]bool{}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !sockets[target] {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(link, "/")[2]); err == nil {
			found[pid] = true
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("find who listens on port %d: nobody, or it belongs to somebody else", port)
	}
	pids := make([]int, 0, len(found))
	for pid := range found {
		pids = append(pids, pid)
	}
	return pids, nil
}

// parseListening gives the inodes of the listening sockets with that port in /proc/net/tcp.
func parseListening(table string, port int) []string {
	var inodes []string
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		const listening = "0A"
		if len(f) > 9 && f[3] == listening && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
			inodes = append(inodes, f[9])
		}
	}
	return inodes
}
