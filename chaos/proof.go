package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"karui/internal/picture"
	"karui/internal/sample"
)

// Options say what is proved. The zero value of a field has the default that the
// command line names.
type Options struct {
	// Seed decides files, faults, their order and their values.
	Seed     uint64
	Duration time.Duration
	// Corpus is a folder of real files; they are drawn where there is none.
	Corpus   string
	Pictures int
	Viewers  int
	// Formats are the site's, lightest first.
	Formats []string
	// Faults are the names of those that may happen; none means all.
	Faults []string
	// Tags are given to the build of karui, Environment to its process.
	Tags        string
	Environment []string
	// Binaries are built unless they are given.
	Binaries binaries
	// Evidence is the folder for what is found; it is kept.
	Evidence string
	// StopAtFirst ends the proof soon after the first broken answer.
	StopAtFirst bool
	// Log gets a line for each fault.
	Log io.Writer
}

// proof is one run.
type proof struct {
	options Options
	system  *system
	history *history
	rec     *recorder
	check   *checker
	leftOut []string
	log     io.Writer
	prober  *viewer
	made    int
	// operator changes pictures and purges.
	operator *operator
}

// probeID is the picture by which the prober sees whether the way is normal.
const probeID = "probe.jpg"

// Prove runs the system and its viewers, does harm to it, and reports what the
// viewers saw. An error means that it could not be run.
func Prove(ctx context.Context, o Options) (*Report, error) {
	dir, err := os.MkdirTemp("", "karui-chaos-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if o.Evidence == "" {
		o.Evidence = filepath.Join(os.TempDir(), fmt.Sprintf("karui-chaos-evidence-%d", o.Seed))
	}
	if o.Binaries == (binaries{}) {
		if o.Binaries, err = build(ctx, dir, o.Tags, o.Log); err != nil {
			return nil, err
		}
	}
	kinds, err := chosen(o.Faults)
	if err != nil {
		return nil, err
	}
	files, err := gather(o.Corpus, o.Pictures, o.Seed)
	if err != nil {
		return nil, err
	}
	small := parts(sample.Photo(), 24)
	if len(small) == 0 {
		return nil, errors.New("the sample photo cannot be cut into parts")
	}
	probe := &original{name: "drawn/probe", id: probeID, body: small[0], mediaType: "image/jpeg", header: map[string][]string{
		"Content-Type": {"image/jpeg"}, "Cache-Control": {"max-age=60"}, "Etag": {`"probe"`},
	}}
	card := small[1]
	changes, err := newChanging()
	if err != nil {
		return nil, err
	}
	all := append(slices.Clone(files), probe, large(small[2]))
	p := &proof{options: o, history: newHistory(), log: o.Log}
	p.rec = newRecorder(o.Seed, p.history, o.Evidence)
	profile := filepath.Join(dir, "srgb.icc")
	if err := os.WriteFile(profile, picture.SRGB(), 0o600); err != nil {
		return nil, err
	}
	p.check = newChecker(all, changes, card, picture.New(profile))
	p.check.nobodyThere = p.history.nobodyThere
	p.operator = newOperator(p, changes, o.Seed)
	p.system, err = startSystem(ctx, dir, o.Binaries, o, all, changes, card, func(how string) { p.rec.problem("%s", how) })
	if err != nil {
		return nil, err
	}
	defer p.system.close()
	p.history.start = time.Now()
	if err := p.run(ctx, kinds, files); err != nil {
		return nil, err
	}
	p.readLog()
	r := p.report(files)
	if len(p.rec.broken) > 0 || len(p.rec.problems) > 0 {
		p.saveLog()
	}
	return r, nil
}

// run lets the viewers ask while the faults happen.
func (p *proof) run(ctx context.Context, kinds []fault, files []*original) error {
	o := p.options
	base := p.system.front.server.URL
	viewing, leave := context.WithCancel(ctx)
	defer leave()
	p.prober = newViewer(0, o.Seed, base, p.check, p.rec, p.history, files)
	p.prober.id = -1
	defer p.prober.client.close()
	if took, ok := p.normal(viewing, normalLimit); !ok {
		return fmt.Errorf("no variant came within %v of the start, before anything was done", took)
	}
	var crowd sync.WaitGroup
	for i := range o.Viewers {
		v := newViewer(i, o.Seed, base, p.check, p.rec, p.history, files)
		crowd.Go(func() { v.run(viewing) })
	}
	crowd.Go(func() { p.operator.run(viewing) })
	defer crowd.Wait()
	defer leave()

	doing, stop := context.WithTimeout(viewing, o.Duration)
	defer stop()
	if o.StopAtFirst {
		go func() {
			select {
			case <-p.rec.first:
				pause(doing, time.Second) // whatever else it leads to
				stop()
			case <-doing.Done():
			}
		}()
	}
	p.schedule(doing, kinds)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if o.StopAtFirst && p.rec.brokenSoFar() > 0 {
		return nil
	}
	if took, ok := p.normal(viewing, normalLimit); !ok && ctx.Err() == nil {
		p.rec.problem("the way was not normal again within %v of the last fault", took.Round(time.Second))
	} else if ok {
		p.history.settle()
	}
	return ctx.Err()
}

const (
	// normalLimit is the hard limit for the way to become normal at the start and
	// in the end, on a machine that does other things.
	normalLimit = 3 * time.Minute
	// nextAfter is how long the next fault waits for the way to become normal.
	nextAfter = 15 * time.Second
)

// schedule does the faults of the timetable, as far as the machine allows them.
func (p *proof) schedule(ctx context.Context, kinds []fault) {
	var usable []fault
	for _, f := range kinds {
		if f.needsDisk && !p.system.disk {
			p.leftOut = append(p.leftOut, f.name+": "+p.system.noDisk)
			continue
		}
		usable = append(usable, f)
	}
	if len(usable) == 0 {
		return
	}
	table := newTimetable(p, usable, p.options.Seed)
	for ctx.Err() == nil {
		deeds, calm := table.next()
		p.do(ctx, deeds)
		pause(ctx, calm)
	}
}

// do does one fault, or two at once, and waits until the way is normal again, but
// not for long.
func (p *proof) do(ctx context.Context, deeds []named) {
	var doing sync.WaitGroup
	healed := make([]time.Time, len(deeds))
	events := make([]*event, len(deeds))
	for i, d := range deeds {
		events[i] = p.history.begin(d.name, d.what)
		_, _ = fmt.Fprintf(p.log, "%7.1f s  %s: %s\n", events[i].Began, d.name, d.what)
		doing.Go(func() {
			err := d.do(ctx)
			healed[i] = time.Now()
			p.history.change(func() {
				events[i].Healed = p.history.since(healed[i])
				if err != nil {
					events[i].Problem = err.Error()
				}
			})
			if err != nil {
				p.rec.problem("%s could not be done: %v", d.name, err)
			}
		})
	}
	doing.Wait()
	p.made += len(deeds)
	if _, ok := p.normal(ctx, nextAfter); ok {
		now := time.Now()
		p.history.change(func() {
			for i, e := range events {
				e.Normal = now.Sub(healed[i]).Seconds()
			}
		})
	}
}

// normal waits until a variant of a picture that nobody has asked for comes
// through karui, and says how long that took.
func (p *proof) normal(ctx context.Context, limit time.Duration) (time.Duration, bool) {
	began := time.Now()
	v := p.prober
	// All of the site's formats: under load, the dial leaves the dear ones out for a minute.
	q := request{method: "GET", accept: "image/" + strings.Join(p.options.Formats, ",image/")}
	q.takes = takenBy(q.accept)
	for tries := 0; time.Since(began) < limit && ctx.Err() == nil; tries++ {
		if tries%10 == 0 {
			v.serial++
			v.aim(&q, fmt.Sprintf("%s%s?v=probe-%d", nearPath, probeID, v.serial))
		}
		// Also one that is broken: that is noted elsewhere.
		if _, got := v.ask(ctx, q); got == gotVariant {
			return time.Since(began), true
		}
		pause(ctx, 150*time.Millisecond)
	}
	return time.Since(began), false
}

// alarms are words that no program may say, whatever is done to it.
var alarms = []string{"DATA RACE", "panic", "fatal error"}

// readLog looks for alarms in what karui and the watchdog said.
func (p *proof) readLog() {
	b, err := os.ReadFile(p.system.log.Name())
	if err != nil {
		p.rec.problem("the log of the programs cannot be read: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		for _, word := range alarms {
			if strings.Contains(line, word) {
				p.rec.problem("a program said: %.300s", strings.TrimSpace(line))
			}
		}
	}
}

// saveLog keeps what karui and the watchdog said.
func (p *proof) saveLog() {
	b, err := os.ReadFile(p.system.log.Name())
	if err == nil {
		err = os.MkdirAll(p.options.Evidence, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(p.options.Evidence, "programs.log"), b, 0o600)
	}
	if err != nil {
		_, _ = fmt.Fprintf(p.log, "the log of the programs was not kept: %v\n", err)
	}
}
