package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// folder holds the binaries of all tests; TestMain makes and removes it.
var folder string

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if folder, err = os.MkdirTemp("", "karui-chaos-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

var (
	shipped    = sync.OnceValues(func() (binaries, error) { return built("shipped", "") })
	sabotaged  = sync.OnceValues(func() (binaries, error) { return built("sabotaged", "sabotage") })
	corpusTest = filepath.Join("..", "..", "shared", "corpus")
)

func built(name, tags string) (binaries, error) {
	dir := filepath.Join(folder, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return binaries{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return build(ctx, dir, tags, os.Stderr)
}

// logger writes the lines of a proof into a test's log.
type logger struct{ t *testing.T }

func (l logger) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// prove runs a proof with the options that most tests use.
func prove(t *testing.T, o Options) *Report {
	t.Helper()
	o.Corpus, o.Pictures, o.Viewers, o.Formats, o.Log = corpusTest, 40, 6, []string{"webp"}, logger{t}
	t.Logf("seed %d", o.Seed)
	r, err := Prove(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *Report) log(t *testing.T) {
	t.Helper()
	var b bytes.Buffer
	r.write(&b)
	t.Logf("%s", b.String())
}

// The proof itself, for as long as KARUI_CHAOS_DURATION says. KARUI_CHAOS_SEED
// repeats a run, as far as the faults and their order go.
func TestNoBrokenImages(t *testing.T) {
	duration := 2 * time.Minute
	if testing.Short() {
		duration = 20 * time.Second
	}
	if text := os.Getenv("KARUI_CHAOS_DURATION"); text != "" {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatalf("KARUI_CHAOS_DURATION: %v", err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("KARUI_CHAOS_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatalf("KARUI_CHAOS_SEED: %v", err)
		}
	}
	b, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	r := prove(t, Options{Seed: seed, Duration: duration, Binaries: b})
	r.log(t)
	if !r.Good() {
		t.Errorf("%d broken images, problems: %q; repeat with KARUI_CHAOS_SEED=%d, evidence in %s", r.Broken, r.Problems, seed, r.Folder)
	}
}

// controls are the faults that can be built into karui, with how the proof has to
// notice each, and what else it leads to. Each is looked for under the faults named.
var controls = []struct {
	sabotage string
	want     reason
	also     []reason
	faults   []string
}{
	// Without Vary a browser shows what it keeps for one Accept to another.
	{"vary", noVary, []reason{wrongFormat}, []string{"restart", "kill-workers"}},
	// The edge asks with the tag of whoever answered before, browsers with all they have.
	{"foreign-etag", foreignETag, []reason{wrongType, wrongFormat}, []string{"restart", "kill-workers"}},
	// The half that is left has the tag of the whole.
	{"truncated", truncated, []reason{foreignETag, wrongPart, wrongType, undecodable}, []string{"restart", "kill-workers"}},
	{"set-cookie", sharedCookie, nil, []string{"restart", "kill-workers"}},
	// It needs a moment in which nobody has the picture; kept, the 503 outlives it.
	{"keep-503", kept503, []reason{badStatus}, []string{"outage"}},
	{"old-picture", oldPicture, nil, []string{"restart", "kill-workers"}},
	// What a purge said is gone with the process.
	{"lost-purge", oldPicture, nil, []string{"purge-kill", "restart"}},
}

// A proof that cannot fail is none: the same one finds every fault that is built in
// on purpose, and for the reason that is its own.
func TestSabotageIsFound(t *testing.T) {
	b, err := sabotaged()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range controls {
		t.Run(c.sabotage, func(t *testing.T) {
			r := prove(t, Options{
				Seed: 5, Duration: 2 * time.Minute, Binaries: b, Environment: []string{"KARUI_SABOTAGE=" + c.sabotage},
				Faults: c.faults, StopAtFirst: true, Evidence: t.TempDir(),
			})
			if r.Good() || r.Broken == 0 || r.Reasons[c.want] == 0 {
				r.log(t)
				t.Fatalf("not found as %s: %v", c.want, r.Reasons)
			}
			for why := range r.Reasons {
				if why != c.want && !slices.Contains(c.also, why) {
					r.log(t)
					t.Errorf("found as %s, too", why)
				}
			}
			if len(r.Evidence) == 0 || r.Evidence[0].Body == "" || r.Evidence[0].Target == "" {
				t.Errorf("no evidence: %+v", r.Evidence)
			}
			t.Logf("found after %.1f s: %v, %q", r.Seconds, r.Reasons, r.Evidence[0].Words)
		})
	}
}

// The faults under which the sabotage is found break nothing of a karui without it;
// nor of one built with the hooks when none of them is chosen.
func TestNothingIsFoundWithoutSabotage(t *testing.T) {
	for name, get := range map[string]func() (binaries, error){"shipped": shipped, "with hooks": sabotaged} {
		t.Run(name, func(t *testing.T) {
			b, err := get()
			if err != nil {
				t.Fatal(err)
			}
			r := prove(t, Options{Seed: 5, Duration: 10 * time.Second, Binaries: b, Faults: []string{"restart", "kill-workers", "outage", "purge-kill"}})
			// In seconds not every kind of request meets its answer: that it tested too little
			// for a proof is no fault here, as long as it tested.
			wrong := slices.DeleteFunc(slices.Clone(r.Problems), func(p string) bool { return slices.Contains(r.emptiness(), p) })
			if r.Broken != 0 || len(wrong) > 0 || r.Requests < leastRequests || r.Outcomes[gotVariant] == 0 {
				r.log(t)
				t.Errorf("%d broken images, problems: %q", r.Broken, r.Problems)
			}
		})
	}
}

// What is shipped has no trace of the hooks.
func TestShippedBinaryHoldsNoHooks(t *testing.T) {
	for _, c := range []struct {
		get  func() (binaries, error)
		want bool
	}{{shipped, false}, {sabotaged, true}} {
		b, err := c.get()
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(b.karui)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"KARUI_SABOTAGE", "internal/sabotage"} {
			if got := bytes.Contains(file, []byte(word)); got != c.want {
				t.Errorf("%s holds %q: %v, want %v", b.karui, word, got, c.want)
			}
		}
	}
}
