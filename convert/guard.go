package convert

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// guards is what keeps a worker from doing anything but converting, as far as this kernel has it.
type guards struct {
	on, missing []string
}

func (g *guards) note(name string, err error) {
	if err != nil {
		g.missing = append(g.missing, fmt.Sprintf("%s: %v", name, err))
		return
	}
	g.on = append(g.on, name)
}

const (
	// workerOOM is added, in thousandths of all memory, to what a worker takes when the kernel chooses whom to end
	// (proc(5), oom_score_adj): more than any share that the front process may have.
	workerOOM = "800"
	// workerNice puts workers behind the process that answers viewers.
	workerNice = 10
	// slowNice puts workers for slow codecs behind those for WebP: the kernel gives them an eighth as much of a
	// processor that both want.
	slowNice = 19
)

// workerFiles is how many files a worker may have open. It has its socket, stdin to stderr and what the Go runtime
// polls with; starting libvips opens its modules one after the other.
const workerFiles = 64

// lowerWorker does what must not wait until libvips is started.
func lowerWorker(class Class) *guards {
	g := &guards{}
	if class == Slow {
		g.note("one processor", onOneCPU())
	}
	g.note("nice", standBack(workerNice))
	g.note("oom", firstToGo())
	// No core dumps: they would hold people's pictures.
	g.note("core", unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}))
	g.note("nofile", unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: workerFiles, Max: workerFiles}))
	g.note("fsize", unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{}))
	return g
}

// standBack lowers the priority of all threads: by group, since nice is a property of threads, and the group has them
// all; the pool gave us one of our own.
func standBack(nice int) error { return unix.Setpriority(unix.PRIO_PGRP, 0, nice) }

// firstToGo makes the kernel end workers before the process that answers viewers, should the whole machine or
// container run out of memory: a worker costs one viewer the variant, that process all of them everything.
func firstToGo() error {
	return os.WriteFile("/proc/self/oom_score_adj", []byte(workerOOM), 0)
}

// onOneCPU checks what the pool has arranged before this process began. How many threads an encoder starts is its own
// affair, so that nothing else bounds what a conversion takes of the machine at a time.
func onOneCPU() error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return err
	}
	if n := set.Count(); n != 1 {
		return fmt.Errorf("free to use %d", n)
	}
	return nil
}

// confine takes away files, network and other processes, and bounds memory. The last step back comes here and not
// before: on a busy machine a slow worker must not take long to start.
func (g *guards) confine(memory int64, nice int) {
	if nice != workerNice {
		g.note(fmt.Sprintf("nice %d", nice), standBack(nice))
	}
	g.note("data", limitData(memory))
	// No file at all, no TCP, no signals to others. BestEffort takes what the kernel has.
	g.note("landlock", landlock.V7.BestEffort().Restrict())
	if abi := landlockABI(); abi < 1 {
		g.on = g.on[:len(g.on)-1]
		g.missing = append(g.missing, "landlock: not in this kernel")
	}
	g.note("seccomp", allowFewCalls())
}

// landlockABI is 0 where Landlock is missing: BestEffort does nothing then, without an error.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// limitData bounds the memory that the process may map to write to. The pool looks at the memory in use and is the
// one to judge; this holds when it is too slow. Half as much again, since not all that is mapped is used.
func limitData(memory int64) error {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	now, err := parseVmData(b)
	if err != nil {
		return err
	}
	most := uint64(now + memory + memory/2)
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most})
}

// parseVmData finds the line "VmData:  123 kB" of /proc/PID/status and returns bytes.
func parseVmData(b []byte) (int64, error) {
	_, rest, ok := bytes.Cut(b, []byte("\nVmData:"))
	fields := bytes.Fields(rest)
	if !ok || len(fields) < 2 || string(fields[1]) != "kB" {
		return 0, fmt.Errorf("no VmData in /proc/self/status")
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("VmData in /proc/self/status: %w", err)
	}
	return n << 10, nil
}

// allowedCalls is what the Go runtime, glibc's malloc and threads, and two open descriptors need. Everything else is
// answered with "not permitted": opening files, sockets, other processes, new programs. So is sched_setaffinity, with
// which x265 would spread over all processors.
var allowedCalls = []string{
	// the socket and stderr
	"read", "write", "readv", "writev", "close", "fcntl", "fstat", "lseek", "ppoll", "poll",
	// memory
	"mmap", "munmap", "mremap", "mprotect", "madvise", "brk", "mincore", "membarrier", "prctl",
	// threads
	"clone", "clone3", "futex", "set_robust_list", "get_robust_list", "rseq", "exit", "exit_group", "gettid", "getpid",
	"sched_yield", "sched_getaffinity", "sched_getscheduler", "sched_setscheduler",
	"sched_getparam", "sched_get_priority_max", "sched_get_priority_min", "sched_getattr", "sched_setattr", "getcpu",
	// signals
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "sigaltstack", "tgkill", "restart_syscall",
	"setitimer", "timer_create", "timer_settime", "timer_delete",
	// time and limits
	"clock_gettime", "clock_getres", "clock_nanosleep", "gettimeofday", "nanosleep", "getrusage", "prlimit64",
	"getrlimit", "setrlimit", "getrandom", "sysinfo", "uname",
	// the runtime's poller
	"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait", "eventfd2", "pipe2",
}

// allowFewCalls installs the filter on all threads, and no_new_privs with it.
func allowFewCalls() error {
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionErrno,
			Syscalls:      []seccomp.SyscallGroup{{Names: allowedCalls, Action: seccomp.ActionAllow}},
		},
	})
}
