// Command chaos proves, on one machine and without AWS, that no viewer ever sees a
// broken image because of karui.
//
// It starts the real programs (karui and karui-watchdog, built from this checkout)
// behind a double of CloudFront and in front of an origin of its own, lets clients
// of several kinds ask for real images all the time, and meanwhile does harm to
// everything in an order that a seed decides. Every answer has to be the original
// to the byte, or a variant that decodes to the right picture, in a format that
// the client named. docs/proof.md says what that proves and what not.
//
//	go run ./chaos -duration 2m -seed 1
//
// The exit code is 0 when nothing was broken and enough was tested, 1 when not,
// 2 for a wrong command line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	code, ok := asRoot(os.Args[1:], os.Stdout, os.Stderr)
	if !ok {
		code = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.SetOutput(stderr)
	o := Options{Log: stderr}
	var seed, formats, kinds, sabotage, ready string
	var asJSON bool
	f.DurationVar(&o.Duration, "duration", 2*time.Minute, "how long faults are made")
	f.StringVar(&seed, "seed", "", "decides files, faults, their order and values; a number, by default a random one")
	f.StringVar(&o.Corpus, "corpus", "../shared/corpus", "folder of real images; where it is missing, some are drawn")
	f.IntVar(&o.Pictures, "pictures", 40, "how many files there are")
	f.IntVar(&o.Viewers, "viewers", 6, "how many clients ask at a time")
	f.StringVar(&formats, "formats", "webp", "the site's formats, with commas")
	f.StringVar(&kinds, "faults", "", "names of the faults that may happen, with commas; all of them by default")
	f.StringVar(&o.Evidence, "evidence", "", "folder for what is found broken; by default in the folder for temporary files")
	f.StringVar(&ready, "binaries", "", "folder with karui and karui-watchdog, instead of building them from this checkout")
	f.StringVar(&sabotage, "sabotage", "", "build karui with this fault in it, which the proof has to find")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	o.Seed = rand.Uint64()
	if seed != "" {
		if _, err := fmt.Sscan(seed, &o.Seed); err != nil {
			_, _ = fmt.Fprintf(stderr, "chaos: -seed %q: expected a number from 0 on\n", seed)
			return 2
		}
	}
	o.Formats = strings.Split(formats, ",")
	if kinds != "" {
		o.Faults = strings.Split(kinds, ",")
	}
	if ready != "" {
		o.Binaries = binaries{karui: filepath.Join(ready, "karui"), watchdog: filepath.Join(ready, "karui-watchdog")}
	}
	if sabotage != "" {
		o.Tags, o.Environment, o.StopAtFirst = "sabotage", []string{"KARUI_SABOTAGE=" + sabotage}, true
	}
	if _, err := chosen(o.Faults); err != nil || f.NArg() > 0 || o.Duration <= 0 || o.Pictures < 1 || o.Viewers < 1 {
		if err == nil {
			err = errors.New("expected flags alone, and -duration, -pictures and -viewers over 0")
		}
		_, _ = fmt.Fprintf(stderr, "chaos: %v\n", err)
		return 2
	}
	_, _ = fmt.Fprintf(stderr, "seed %d\n", o.Seed)
	r, err := Prove(ctx, o)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "chaos: %v\n", err)
		return 1
	}
	if asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		r.write(stdout)
	}
	if err != nil || !r.Good() {
		return 1
	}
	return 0
}
