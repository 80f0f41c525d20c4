package convert

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"karui/convert/header"
)

// ErrClosed is returned by a pool that was closed.
var ErrClosed = errors.New("conversion pool is closed")

// Result is the outcome for one original.
type Result struct {
	// Body is the variant; nil means that the original is answered. It is shared by all who asked for the same
	// conversion at the same time: read only.
	Body []byte
	// Format is the variant's format, [header.Unknown] without a variant.
	Format   header.Format
	Decision Decision
	// Outcomes has each format of [Options.Formats] once, in that order, with what was decided about it.
	Outcomes []Outcome

	// Info is the header of the original as far as it could be read, Plan what was to be done in the end.
	Info header.Info
	Plan Plan
	// Width, Height and Frames are the variant's.
	Width, Height, Frames int
	// Lossless says that the variant holds the very pixels of the original (as 8 bit sRGB).
	Lossless bool
	// Encoded is the size in bytes of what was encoded, also when it was not smaller and dropped; 0 for nothing.
	Encoded int64
	// CPU is the CPU time that workers took, over all formats that were tried.
	CPU time.Duration
}

// Pool converts images in worker processes. It is safe for many goroutines.
type Pool struct {
	cfg   Config
	set   settings
	lanes map[Class]*lane

	starter    *starter
	flights    singleflight.Group
	seed       maphash.Seed
	quarantine *quarantine
	tally      *tally
	pinger     *pinger
	lastID     atomic.Uint64

	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex // guards closed against wg.Add
	closed bool
	wg     sync.WaitGroup // flights and slots
}

// settings is what [Option]s change.
type settings struct {
	command command
	log     *slog.Logger
	now     func() time.Time
	// slowNice is how far workers for slow codecs stand back, unused how long they stay without work.
	slowNice int
	unused   time.Duration
	// wallFactor is how much longer than its CPU time a conversion may take on the clock.
	wallFactor time.Duration
}

// niceOf is the priority of the workers of a class.
func (s settings) niceOf(class Class) int {
	if class == Slow {
		return s.slowNice
	}
	return workerNice
}

// Option changes how a pool works; the defaults are right outside of tests.
type Option func(*settings)

// WithCommand says what to start as a worker instead of this program's own `worker` command. The program must call
// [WorkerMain].
func WithCommand(path string, args ...string) Option {
	return func(s *settings) { s.command.path, s.command.args = path, args }
}

// WithLogger says where to log; the default is slog.Default.
func WithLogger(log *slog.Logger) Option {
	return func(s *settings) { s.log = log }
}

// WorkerCommand is the hidden command of the program that a pool starts as a worker.
const WorkerCommand = "worker"

// request is one conversion on its way through a worker.
type request struct {
	job    job
	source []byte
	done   chan verdict // takes one
	// attempts counts the processes that were given the job.
	attempts int
}

func (r *request) class() Class {
	if r.job.Look != nil {
		return classOf(r.job.Look.Format) // those libraries are loaded there only
	}
	return classOf(r.job.Plan.Target)
}

// New starts a pool with its workers. It does not wait for them: a conversion that comes early waits in the queue.
// Beside the cfg.Workers for WebP there are half as many (at least one) for slow codecs, which are started when there
// is work for them. An error means that cfg cannot be used.
func New(cfg Config, options ...Option) (*Pool, error) {
	if cfg.Workers < 0 || cfg.Timeout <= 0 || cfg.QueueWait <= 0 || cfg.MaxBytes <= 0 || cfg.MaxPixels <= 0 ||
		cfg.WorkerMemory <= 0 || cfg.Recycle <= 0 {
		return nil, fmt.Errorf("conversion pool: every limit must be over 0: %+v", cfg)
	}
	if cfg.Workers == 0 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	set := settings{
		// The very file that runs, also when a new version was installed over it.
		command: command{path: "/proc/self/exe", args: []string{WorkerCommand}},
		log:     slog.Default(), now: time.Now, slowNice: slowNice, unused: slowUnused, wallFactor: wallFactor,
	}
	for _, o := range options {
		o(&set)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pool{
		cfg: cfg, set: set, lanes: make(map[Class]*lane), starter: newStarter(), seed: maphash.MakeSeed(),
		quarantine: newQuarantine(set.now), tally: newTally(set.now),
		ctx: ctx, cancel: cancel,
	}
	p.pinger = newPinger(p)
	for _, class := range []Class{Fast, Slow} {
		p.lanes[class] = newLane(class, cfg, set.unused)
	}
	for _, l := range p.lanes {
		for n := range l.workers {
			p.wg.Go(func() { p.slot(l, n) })
		}
	}
	return p, nil
}

// Close ends all workers and waits for them. Conversions that wait or run end with [ErrClosed].
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.pinger.close()
	p.wg.Wait()
	p.starter.close()
}

// enter keeps Close waiting until leave; it fails once the pool is closed.
func (p *Pool) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wg.Add(1)
	return true
}

func (p *Pool) leave() { p.wg.Done() }

// attempt makes one format, together with all others who want the same at this time.
func (p *Pool) attempt(ctx context.Context, source []byte, info header.Info, plan Plan) (Result, error) {
	f, err := p.join(ctx, p.flightKey(source, plan), source, info, plan)
	if err == nil && !bytes.Equal(f.source, source) {
		// Two originals with the same hash: the second one flies alone.
		f, err = p.join(ctx, fmt.Sprint("alone ", p.lastID.Add(1)), source, info, plan)
	}
	return f.result, err
}

// flight is a conversion that many may wait for, with the original that it is of.
type flight struct {
	result Result
	source []byte
}

// join waits for the conversion with this key, and starts it when there is none.
func (p *Pool) join(ctx context.Context, key string, source []byte, info header.Info, plan Plan) (flight, error) {
	results := p.flights.DoChan(key, func() (any, error) {
		if !p.enter() {
			return flight{}, ErrClosed
		}
		defer p.leave()
		r, err := p.convert(source, info, plan)
		if err == nil {
			p.tally.decided(r, len(source))
		}
		return flight{r, source}, err
	})
	select {
	case r := <-results:
		if r.Err != nil {
			return flight{}, r.Err
		}
		return r.Val.(flight), nil
	case <-ctx.Done():
		return flight{}, ctx.Err()
	}
}

// flightKey is the same for conversions that cannot differ in their result, as far as a hash tells. A cryptographic
// one would take up to 3 % of the conversion's own time.
func (p *Pool) flightKey(source []byte, plan Plan) string {
	return fmt.Sprintf("%x %d %d %d %d %d %s %t", maphash.Bytes(p.seed, source), len(source),
		plan.Target, plan.Quality, plan.Dial, plan.Effort, plan.PNG, plan.KeepCopyright)
}

// convert takes one conversion through a worker.
func (p *Pool) convert(source []byte, info header.Info, plan Plan) (Result, error) {
	r := Result{Info: info, Plan: plan}
	if q, held := p.held(source); held {
		r.Decision = Decide(Quarantined, fmt.Sprintf("it ended a worker before (%s), and is left alone until %s",
			q.Cause, q.Until.UTC().Format(time.RFC3339)))
		return r, nil
	}
	req := &request{
		job: newJob(p.lastID.Add(1), info, plan, p.cfg.Timeout), source: source, done: make(chan verdict, 1),
	}
	if d, ok := p.queue(req); !ok {
		if d.Code == "" {
			return Result{}, ErrClosed
		}
		r.Decision = d
		return r, nil
	}
	v := <-req.done
	if v.closed {
		return Result{}, ErrClosed
	}
	r.CPU = v.cpu
	if v.fault == "" {
		return p.finish(r, v), nil
	}
	r.Decision = p.faulted(v, req)
	return r, nil
}

// held returns the entry of a source that must not be tried. The digest is worked out only when there is anything in
// quarantine.
func (p *Pool) held(source []byte) (Quarantine, bool) {
	if p.quarantine.empty() {
		return Quarantine{}, false
	}
	return p.quarantine.check(sha256.Sum256(source))
}

// queue hands the request to a worker as soon as one is free. The zero Decision means that the pool was closed.
func (p *Pool) queue(req *request) (Decision, bool) {
	l := p.lanes[req.class()]
	if n, ok := p.tally.wait(l, req); !ok {
		return Decide(QueueFull, fmt.Sprintf("%d conversions are waiting already (%s codecs)", n, l.class)), false
	}
	defer p.tally.waited(req)
	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	select {
	case l.jobs <- req:
		return Decision{}, true
	case <-l.outage.all():
		return Decide(Unavailable, "no worker can be started at present"), false
	case <-timer.C:
		return Decide(QueueFull, fmt.Sprintf("no worker became free within %s (%s codecs)", l.wait, l.class)), false
	case <-p.ctx.Done():
		return Decision{}, false
	}
}

// finish turns a worker's answer into a result, and checks once more what will be sent to viewers.
func (p *Pool) finish(r Result, v verdict) Result {
	r.Decision = Decide(v.result.Code, v.result.Reason)
	r.Encoded = v.result.Bytes
	if v.result.Code != Converted {
		return r
	}
	got, err := inspect(r.Plan.Target, v.body)
	if why := got.differs(r.Info, v.result); err != nil || why != "" {
		if err != nil {
			why = err.Error()
		}
		r.Decision = Decide(Mismatch, why)
		return r
	}
	r.Body, r.Format = v.body, r.Plan.Target
	r.Width, r.Height, r.Frames, r.Lossless = got.width, got.height, got.frames, got.lossless
	return r
}

// faulted decides about a source whose conversion ended a worker.
func (p *Pool) faulted(v verdict, req *request) Decision {
	digest := Digest(sha256.Sum256(req.source))
	log := p.set.log.With("digest", digest.String(), "bytes", len(req.source), "format", req.job.Info.Format.String(),
		"cause", string(v.fault), "detail", v.detail)
	if !v.started {
		// The processes were gone before they had read it. That says nothing about the image.
		log.Warn("workers were gone before they had read a job", "attempts", req.attempts)
		return Decide(Unavailable, "the workers were gone before they had read it")
	}
	if v.fault == CauseStopped {
		log.Warn("a worker was stopped from outside during a conversion")
		return Decide(Unavailable, v.detail)
	}
	code := map[Cause]Code{CauseTimeout: Timeout, CauseMemory: OutOfMemory}[v.fault]
	if code == "" {
		code = Crashed
	}
	if v.starved {
		// Not the image's fault: another attempt is made, however many it takes.
		log.Warn("a conversion got too little of the machine")
		return Decide(code, v.detail)
	}
	p.tally.blame(v.fault)
	held := p.quarantine.strike(digest, v.fault)
	log.Warn("a conversion ended its worker", "quarantined", held)
	d := Decide(code, v.detail)
	if held {
		d.Settled = true
		d.Reason += fmt.Sprintf("; it is left alone for %s", quarantineFor)
	}
	return d
}

// Stats returns what the pool has done and is doing.
func (p *Pool) Stats() Stats {
	s := p.tally.stats()
	s.Workers, s.Slow.Workers = p.lanes[Fast].workers, p.lanes[Slow].workers
	s.Quarantined = p.quarantine.counts()
	return s
}

// Quarantine returns the sources that hurt a worker within the last day, the one released first at the front.
func (p *Pool) Quarantine() []Quarantine { return p.quarantine.snapshot() }

// RestoreQuarantine adds what [Pool.Quarantine] of an earlier pool returned, without what is over by now.
func (p *Pool) RestoreQuarantine(items []Quarantine) { p.quarantine.restore(slices.Clone(items)) }

// Release takes one source out of quarantine, and reports whether it was in there.
func (p *Pool) Release(d Digest) bool { return p.quarantine.release(d) }

// logGuards says once what the kernel does not keep workers from.
func (p *Pool) logGuards(l *lane, r ready) {
	l.guards.Do(func() {
		p.set.log.Debug("worker is ready", "class", string(l.class), "guards", strings.Join(r.Guards, ", "),
			"missing", strings.Join(r.Missing, "; "), "memory", r.MaxRSS, "cpu", r.CPU)
	})
}
