// Command bench measures karui as a whole: real processes, real sockets, real photographs. It prints tables.
//
// What counts is CPU time per request of the whole process tree, and ratios of servers that take turns in the same
// run; times on the clock depend on the machine and on its neighbours, and are printed only where they are what is
// asked about. Nothing here fails on a slow day.
//
// Not guaranteed: the same numbers twice.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// bench is what all measurements share.
type bench struct {
	dir      string // removed at the end
	karui    string // the program
	photos   string // the folder of photographs
	album    album
	origin   *origin
	peers    []string
	classes  []string // that are converted
	rounds   int
	mixes    []int
	files    int // in the cache of millionTable
	out      io.Writer
	words    io.Writer // progress
	markdown bool
}

// measurement is one table.
type measurement struct {
	name string
	run  func(context.Context, *bench) error
	// asked: only made when it is asked for, since it takes long.
	asked bool
}

var measurements = []measurement{
	{name: "convert", run: convertTable},
	{name: "cached", run: cachedTable},
	{name: "firstbyte", run: firstByteTable},
	{name: "stampede", run: stampedeTable},
	{name: "busy", run: busyTable},
	{name: "slow", run: slowTable},
	{name: "memory", run: memoryTable},
	{name: "overload", run: overloadTable, asked: true},
	{name: "dial", run: dialTable, asked: true},
	{name: "slowness", run: slownessTable, asked: true},
	{name: "corpus", run: corpusTable, asked: true},
	{name: "million", run: millionTable, asked: true},
}

type texts []string

func (t *texts) String() string { return strings.Join(*t, " ") }

func (t *texts) Set(s string) error { *t = append(*t, s); return nil }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 3 && args[0] == bareCommand {
		return serveBare(ctx, args[1], args[2], stderr)
	}
	var names, usual []string
	for _, m := range measurements {
		names = append(names, m.name)
		if !m.asked {
			usual = append(usual, m.name)
		}
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var peers texts
	flags.Var(&peers, "peer", "a server that converts, `NAME=URL` with {origin} for the original's address; may be repeated")
	sizes := flags.String("classes", "S,M,L", "which sizes of photographs are converted")
	only := flags.String("only", strings.Join(usual, ","), "which tables of "+strings.Join(names, ", "))
	rounds := flags.Int("rounds", 7, "rounds, in which all take turns; medians are printed")
	corpus := flags.String("photos", "../shared/corpus/photos", "a `folder` of photographs; without one they are drawn")
	program := flags.String("karui", "", "the karui to measure; built when empty")
	mixes := flags.String("conversions", "2000,5000", "how many conversions after which memory is looked at")
	files := flags.Int("files", 1_000_000, "how many files the cache of the table million has")
	markdown := flags.Bool("markdown", false, "tables for a document")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	wanted := strings.Split(*only, ",")
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			_, _ = fmt.Fprintf(stderr, "bench: there is no table %q; there are %s\n", name, strings.Join(names, ", "))
			return 2
		}
	}
	chosen := strings.Split(*sizes, ",")
	counts, err := parseCounts(*mixes)
	if err != nil || *rounds < 1 || *rounds > 1000 || *files < 1000 || *files > 100_000_000 {
		_, _ = fmt.Fprintf(stderr, "bench: -conversions %q, -rounds %d or -files %d is out of range\n", *mixes, *rounds, *files)
		return 2
	}
	b := &bench{
		classes: chosen, peers: peers, rounds: *rounds, mixes: counts, files: *files,
		out: stdout, words: stderr, markdown: *markdown, karui: *program, photos: *corpus,
	}
	if err := b.measure(ctx, *corpus, wanted); err != nil {
		_, _ = fmt.Fprintf(stderr, "bench: %v\n", err)
		return 1
	}
	return 0
}

func (b *bench) measure(ctx context.Context, corpus string, wanted []string) (err error) {
	if b.dir, err = os.MkdirTemp("", "karui-bench-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(b.dir)
	if b.karui == "" {
		b.karui = filepath.Join(b.dir, "karui")
		b.say("building karui")
		build := exec.CommandContext(ctx, "go", "build", "-o", b.karui, "karui/cmd/karui")
		build.Stderr = b.words
		if err := build.Run(); err != nil {
			return fmt.Errorf("build karui: %w", err)
		}
	}
	b.say("making photographs")
	a, source, err := makeAlbum(corpus)
	if err != nil {
		return err
	}
	b.album = a
	b.describe(source)
	if b.origin, err = startOrigin(a); err != nil {
		return err
	}
	defer b.origin.close()
	for _, m := range measurements {
		if slices.Contains(wanted, m.name) {
			if err := m.run(ctx, b); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
	}
	return nil
}

// say tells how far it is.
func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.words, "bench: "+format+"\n", args...)
}

// describe prints what is converted.
func (b *bench) describe(source string) {
	t := newTable("Originals, from "+source, "class", "photographs", "pixels", "mean bytes")
	for _, c := range classes {
		total := 0
		for _, p := range b.album[c.name] {
			total += len(p.body)
		}
		t.row(c.name, len(b.album[c.name]), c.pixels, total/max(len(b.album[c.name]), 1))
	}
	t.print(b)
}
