// Package batch converts files as the proxy would, and reports what was decided
// and why: the work of `karui convert`.
//
// Guaranteed: every input gets exactly one report; no input and no other file
// that was there before is ever overwritten (unless asked for, and then never an
// input); a result appears whole or not at all; folders that contain themselves
// through links are read once.
//
// Not guaranteed: that a run that was stopped has reported all inputs. It says how
// many it did not reach.
package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/renameio/v2"
	"golang.org/x/sync/errgroup"

	"karui/convert"
	"karui/convert/header"
)

// Converter makes variants; *convert.Pool is one.
type Converter interface {
	Convert(ctx context.Context, source []byte, opt convert.Options) (convert.Result, error)
}

// Job is what to convert, and how.
type Job struct {
	Inputs []Input
	// Out is the folder for variants; empty means that nothing is written.
	Out string
	// Overwrite lets a variant replace a file that is there already, though never an input.
	Overwrite bool
	Options   convert.Options
	// Limits are those of the proxy.
	Limits convert.Config
	// Parallel is the number of files worked on at a time, at least 1.
	Parallel int
}

// Run works through the inputs, several at a time, and hands each report to tell
// as it comes, one at a time. The error is that of ctx when it ended the run
// early; what went wrong with single files stands in their reports.
func Run(ctx context.Context, c Converter, job Job, tell func(Report)) error {
	sources := identities(job.Inputs)
	var telling sync.Mutex
	var group errgroup.Group
	group.SetLimit(max(job.Parallel, 1))
	for _, in := range job.Inputs {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			report := job.one(ctx, c, in, sources)
			if report.Error != "" && ctx.Err() != nil {
				// It says only that the run was stopped.
				return nil
			}
			telling.Lock()
			defer telling.Unlock()
			tell(report)
			return nil
		})
	}
	_ = group.Wait() // nothing fails as a whole
	return ctx.Err()
}

// identities finds out which files the inputs are, whatever names lead to them.
func identities(inputs []Input) []os.FileInfo {
	infos := make([]os.FileInfo, 0, len(inputs))
	for _, in := range inputs {
		// Of what cannot be looked at, the report will say so.
		if info, err := os.Stat(in.Path); err == nil {
			infos = append(infos, info)
		}
	}
	return infos
}

// one works on a single input.
func (j Job) one(ctx context.Context, c Converter, in Input, sources []os.FileInfo) Report {
	report := Report{Path: in.Path}
	if in.err != nil {
		return report.failed(fmt.Errorf("read: %w", in.err))
	}
	body, size, err := read(in.Path, int64(j.Limits.MaxBytes))
	report.Bytes = size
	if err != nil {
		return report.failed(fmt.Errorf("read: %w", err))
	}
	if int64(len(body)) < size {
		info, plan := overSized(body, size, j)
		report.describe(info, plan)
		report.decided(plan.Decision, plan.Outcomes)
		return report
	}
	made, err := c.Convert(ctx, body, j.Options)
	if err != nil {
		return report.failed(err)
	}
	report.describe(made.Info, made.Plan)
	report.decided(made.Decision, made.Outcomes)
	report.CPUMillis = made.CPU.Milliseconds()
	if made.Decision.Code != convert.Converted {
		return report
	}
	report.Format, report.Lossless, report.VariantBytes = made.Format.String(), made.Lossless, int64(len(made.Body))
	if j.Out == "" {
		return report
	}
	target := filepath.Join(j.Out, in.Target(made.Format.Extension()))
	if err := j.write(target, made.Body, sources); err != nil {
		return report.failed(err)
	}
	report.Out = target
	return report
}

// overSized decides on a file of which only the beginning was read.
func overSized(prefix []byte, size int64, j Job) (header.Info, convert.Plan) {
	info, _ := header.Parse(prefix)
	plan, decided := convert.PlanPrefix(prefix, size, j.Options, j.Limits)
	if !decided {
		plan = convert.Plan{Keep: true, Decision: convert.Decide(convert.TooLarge,
			fmt.Sprintf("%d bytes: at most %s are converted", size, j.Limits.MaxBytes))}
	}
	return info, plan
}

// read gives a file's bytes and size; of one that is larger than most, only the
// beginning.
func read(path string, most int64) ([]byte, int64, error) {
	// Opening a pipe or a device could wait for ever, so the kind is looked at first.
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("it is a %s, and only files and folders are converted", kind(info.Mode()))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, info.Size(), withoutPath(err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	limit := most
	if info.Size() > most {
		limit = header.SniffLen
	}
	body, err := io.ReadAll(io.LimitReader(file, limit))
	if err != nil {
		return nil, info.Size(), withoutPath(err)
	}
	return body, max(info.Size(), int64(len(body))), nil
}

func kind(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&os.ModeNamedPipe != 0:
		return "pipe"
	case m&os.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// withoutPath drops the path from an error that is shown beside it.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// write puts a variant in its place, whole or not at all.
func (j Job) write(target string, body []byte, sources []os.FileInfo) error {
	existing, err := os.Stat(target)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("write %s: %w", target, withoutPath(err))
	case isAny(existing, sources):
		return fmt.Errorf("write %s: this is one of the originals; choose another folder with -o", target)
	case !j.Overwrite:
		return fmt.Errorf("write %s: the file exists already; remove it, choose another folder with -o, or add --overwrite", target)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // as open as any folder that its user makes
		return fmt.Errorf("write: %w", err)
	}
	if err := renameio.WriteFile(target, body, 0o644); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func isAny(info os.FileInfo, among []os.FileInfo) bool {
	for _, other := range among {
		if os.SameFile(info, other) {
			return true
		}
	}
	return false
}
