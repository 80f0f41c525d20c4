package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/image/webp"

	"karui/convert"
	"karui/convert/header"
	"karui/internal/sample"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == convert.WorkerCommand {
		os.Exit(convert.WorkerMain(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// tree writes files below a new folder.
func tree(t *testing.T, files map[string][]byte) string {
	t.Helper()
	root := t.TempDir()
	for name, body := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func inputsOf(paths []string) []Input {
	inputs, _ := Inputs(paths)
	return inputs
}

func names(inputs []Input) []string {
	var all []string
	for _, in := range inputs {
		all = append(all, in.Name)
	}
	slices.Sort(all)
	return all
}

func TestInputsOfAFolder(t *testing.T) {
	root := tree(t, map[string][]byte{
		"a.jpg": nil, "b.JPEG": nil, "notes.txt": nil, "deep/er/c.png": nil, "deep/d.gif": nil, "deep/e.jfif": nil,
	})
	for link, to := range map[string]string{"deep/loop": root, "again.jpg": filepath.Join(root, "a.jpg"), "dead.jpg": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe.jpg"), 0o600); err != nil {
		t.Fatal(err)
	}
	inputs := inputsOf([]string{root})
	want := []string{"a.jpg", "again.jpg", "b.JPEG", "deep/d.gif", "deep/e.jfif", "deep/er/c.png"}
	if got := names(inputs); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestOtherFilesAreCounted(t *testing.T) {
	root := tree(t, map[string][]byte{"a.jpg": nil, "notes.txt": nil, "deep/README": nil, "deep/b.webp": nil, "named.txt": nil})
	if err := os.Symlink(root, filepath.Join(root, "deep/loop")); err != nil {
		t.Fatal(err)
	}
	// Neither twice, nor what is named itself.
	inputs, left := Inputs([]string{root, filepath.Join(root, "deep"), filepath.Join(root, "named.txt")})
	if len(inputs) != 2 || left != 3 {
		t.Errorf("%d left out, taken: %v", left, inputs)
	}
	for left, want := range map[int]string{0: "", 1: "1 other file left out\n", 7: "7 other files left out\n"} {
		total := Summary{LeftOut: left}
		var out bytes.Buffer
		if err := WriteTable(&out, nil, total, 0); err != nil || !strings.HasSuffix(out.String(), total.String()+"\n"+want) {
			t.Errorf("%d: %v\n%s", left, err, out.String())
		}
	}
}

func TestInputsNamedTwiceAreTakenOnce(t *testing.T) {
	root := tree(t, map[string][]byte{"a.jpg": nil})
	inputs := inputsOf([]string{root, filepath.Join(root, "a.jpg"), filepath.Join(root, ".", "a.jpg")})
	if len(inputs) != 1 {
		t.Errorf("%v", inputs)
	}
}

func TestAPathThatLeadsNowhereCostsNoOther(t *testing.T) {
	root := tree(t, map[string][]byte{"photo.jpg": sample.Photo()})
	reports, total := runAll(t, Job{}, filepath.Join(root, "nowhere.jpg"), root)
	if r := reports["nowhere.jpg"]; r.Error != "read: no such file or directory" || total.Failed != 1 || total.Converted != 1 {
		t.Errorf("%+v %+v", r, total)
	}
}

func TestTargetsNeverMeet(t *testing.T) {
	root := tree(t, map[string][]byte{"a.jpg": nil, "a.png": nil, "A.gif": nil, "b.jpg": nil, "a/a.jpg": nil})
	inputs := inputsOf([]string{root})
	var targets []string
	for _, in := range inputs {
		targets = append(targets, in.Target(".webp"))
	}
	slices.Sort(targets)
	if want := []string{"A.gif.webp", "a.jpg.webp", "a.png.webp", "a/a.webp", "b.webp"}; !slices.Equal(targets, want) {
		t.Errorf("%q, not %q", targets, want)
	}
}

func TestInputsOfOneNameClash(t *testing.T) {
	root := tree(t, map[string][]byte{"1/a.jpg": nil, "2/a.jpg": nil, "3/a.png": nil})
	err := Clash(inputsOf([]string{filepath.Join(root, "1"), filepath.Join(root, "2")}))
	if err == nil || !strings.Contains(err.Error(), "1/a.jpg and ") || !strings.Contains(err.Error(), "2/a.jpg would both be written to a.jpg") {
		t.Errorf("%v", err)
	}
	if err := Clash(inputsOf([]string{filepath.Join(root, "1"), filepath.Join(root, "3")})); err != nil {
		t.Error(err)
	}
}

// pool is a real one.
func pool(t *testing.T, limits convert.Config) *convert.Pool {
	t.Helper()
	p, err := convert.New(limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// runAll runs a job over the paths, and gives the reports by the name of the file.
func runAll(t *testing.T, job Job, paths ...string) (map[string]Report, Summary) {
	t.Helper()
	inputs := inputsOf(paths)
	if job.Limits == (convert.Config{}) {
		job.Limits = convert.DefaultConfig()
	}
	job.Limits.Workers, job.Limits.QueueWait = 2, time.Hour
	job.Inputs, job.Parallel = inputs, 2
	if job.Options.Formats == nil {
		job.Options.Formats = []header.Format{header.WebP}
	}
	job.Options.Quality, job.Options.Keep = 80, []string{convert.KeepCopyright}
	reports, total := map[string]Report{}, Summary{}
	err := Run(t.Context(), pool(t, job.Limits), job, func(r Report) {
		total.Add(&r)
		reports[filepath.Base(r.Path)] = r
	})
	if err != nil {
		t.Fatal(err)
	}
	return reports, total
}

func TestFilesAreConvertedOrKeptWithAReason(t *testing.T) {
	photo := sample.Photo()
	root := tree(t, map[string][]byte{
		"sub/photo.jpg": photo, "logo.png": sample.Logo(), "film.gif": sample.Animation(),
		"cut.jpg": photo[:len(photo)/2], "page.jpg": []byte("<!doctype html><title>404</title>"), "empty.png": nil,
	})
	out := filepath.Join(t.TempDir(), "out")
	reports, total := runAll(t, Job{Out: out}, root)
	if total.Files != 6 || total.Converted != 3 || total.Kept != 3 || total.Failed != 0 || total.BytesAfter >= total.BytesBefore {
		t.Errorf("%+v", total)
	}
	for name, want := range map[string]string{"photo.jpg": "sub/photo.webp", "logo.png": "logo.webp", "film.gif": "film.webp"} {
		r := reports[name]
		body, err := os.ReadFile(filepath.Join(out, want))
		if err != nil || r.Out != filepath.Join(out, want) || r.Format != "webp" || r.Reason == "" ||
			int64(len(body)) != r.VariantBytes || r.Saved != r.Bytes-r.VariantBytes || r.Saved <= 0 || header.Sniff(body) != header.WebP {
			t.Errorf("%s: %v %+v", name, err, r)
		}
		if r.Frames > 1 {
			continue // the decoder knows no animations
		}
		if config, err := webp.DecodeConfig(bytes.NewReader(body)); err != nil || config.Width != r.Width || config.Height != r.Height {
			t.Errorf("%s: %v %v, not %d x %d", name, err, config, r.Width, r.Height)
		}
	}
	for name, want := range map[string]convert.Code{"cut.jpg": convert.Truncated, "page.jpg": convert.NotConvertible, "empty.png": convert.NotConvertible} {
		if r := reports[name]; r.Code != want || r.Reason == "" || r.Out != "" || r.VariantBytes != 0 || r.Error != "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if n := total.Codes[convert.Converted]; n != 3 {
		t.Errorf("%d counted as converted", n)
	}
}

// Of several formats each picture becomes the first that suits it, and the report says so of each.
func TestSeveralFormats(t *testing.T) {
	root := tree(t, map[string][]byte{"photo.jpg": sample.Photo(), "film.gif": sample.Animation(), "page.png": []byte("<html>")})
	out := t.TempDir()
	job := Job{Out: out, Options: convert.Options{Formats: []header.Format{header.AVIF, header.WebP}}}
	reports, _ := runAll(t, job, root)
	for name, want := range map[string]string{
		"photo.jpg": "photo.avif: avif converted, webp not_tried",
		"film.gif":  "film.webp: avif cannot_animate, webp converted",
		"page.png":  ": avif not_convertible, webp not_convertible",
	} {
		r := reports[name]
		var said []string
		for _, o := range r.Outcomes {
			said = append(said, o.Format+" "+string(o.Code))
			if o.Reason == "" {
				t.Errorf("%s: no reason for %s", name, o.Format)
			}
		}
		written := ""
		if r.Out != "" {
			written = filepath.Base(r.Out)
			if body, err := os.ReadFile(r.Out); err != nil || header.Sniff(body).String() != r.Format {
				t.Errorf("%s: %v, %s in the file", name, err, header.Sniff(body))
			}
		}
		if got := written + ": " + strings.Join(said, ", "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestNothingIsWrittenWithoutAFolder(t *testing.T) {
	root := tree(t, map[string][]byte{"photo.jpg": sample.Photo()})
	reports, _ := runAll(t, Job{}, root)
	if r := reports["photo.jpg"]; r.Code != convert.Converted || r.Out != "" {
		t.Errorf("%+v", r)
	}
	if files, err := os.ReadDir(root); err != nil || len(files) != 1 {
		t.Errorf("%v %v", files, err)
	}
}

func TestFilesThatAreThereStay(t *testing.T) {
	mine := []byte("mine")
	root := tree(t, map[string][]byte{"photo.jpg": sample.Photo(), "photo.webp": mine})
	reports, total := runAll(t, Job{Out: root}, filepath.Join(root, "photo.jpg"))
	if r := reports["photo.jpg"]; !strings.Contains(r.Error, "exists already") || total.Failed != 1 {
		t.Errorf("%+v", r)
	}
	if body, err := os.ReadFile(filepath.Join(root, "photo.webp")); err != nil || !bytes.Equal(body, mine) {
		t.Errorf("%q %v", body, err)
	}
	reports, _ = runAll(t, Job{Out: root, Overwrite: true}, filepath.Join(root, "photo.jpg"))
	if body, err := os.ReadFile(filepath.Join(root, "photo.webp")); err != nil || header.Sniff(body) != header.WebP || reports["photo.jpg"].Error != "" {
		t.Errorf("%v %+v", err, reports["photo.jpg"])
	}
}

func TestAnInputIsNeverOverwritten(t *testing.T) {
	// A JPEG under a WebP's name is converted as well, and its variant would take its place.
	photo := sample.Photo()
	root := tree(t, map[string][]byte{"photo.webp": photo})
	path := filepath.Join(root, "photo.webp")
	reports, _ := runAll(t, Job{Out: root, Overwrite: true}, path)
	if r := reports["photo.webp"]; !strings.Contains(r.Error, "one of the originals") {
		t.Errorf("%+v", r)
	}
	if body, err := os.ReadFile(path); err != nil || !bytes.Equal(body, photo) {
		t.Errorf("the original has changed: %v", err)
	}
}

func TestLargeFilesAreDecidedFromTheirBeginning(t *testing.T) {
	body := append(sample.Photo(), make([]byte, 1<<20)...)
	root := tree(t, map[string][]byte{"large.jpg": body})
	limits := convert.DefaultConfig()
	limits.MaxBytes = 512 << 10
	reports, _ := runAll(t, Job{Limits: limits}, root)
	r := reports["large.jpg"]
	if r.Code != convert.TooLarge || r.Bytes != int64(len(body)) || r.Width == 0 || r.Source != "jpeg" || r.CPUMillis != 0 {
		t.Errorf("%+v", r)
	}
}

func TestWhatIsNoFileFails(t *testing.T) {
	root := t.TempDir()
	pipe := filepath.Join(root, "pipe.jpg")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reports, total := runAll(t, Job{}, pipe)
	if r := reports["pipe.jpg"]; !strings.Contains(r.Error, "it is a pipe") || total.Failed != 1 {
		t.Errorf("%+v", r)
	}
}

// stopping is a converter in whose hands the run is stopped.
type stopping struct{ stop context.CancelFunc }

func (s stopping) Convert(ctx context.Context, _ []byte, _ convert.Options) (convert.Result, error) {
	s.stop()
	<-ctx.Done()
	return convert.Result{}, ctx.Err()
}

func TestAStopEndsTheRun(t *testing.T) {
	root := tree(t, map[string][]byte{"a.jpg": {1}, "b.jpg": {2}, "c.jpg": {3}})
	inputs := inputsOf([]string{root})
	ctx, stop := context.WithCancel(t.Context())
	told := 0
	err := Run(ctx, stopping{stop}, Job{Inputs: inputs, Limits: convert.DefaultConfig(), Parallel: 2}, func(Report) { told++ })
	if !errors.Is(err, context.Canceled) || told != 0 {
		t.Errorf("%v, %d reports", err, told)
	}
}

func TestJSONAndTable(t *testing.T) {
	reports := []Report{
		{
			Path: "b.jpg", Source: "jpeg", Width: 3, Height: 2, Frames: 1, Bytes: 1000, Format: "webp", VariantBytes: 400,
			Decision: convert.Decide(convert.Converted, "lossy: a JPEG, 400 bytes where the original has 1000"), CPUMillis: 12,
		},
		{Path: "a\x1b[2J.png", Source: "png", Bytes: 10, Decision: convert.Decide(convert.AnimatedPNG, "an animation of 3 frames")},
		{Path: "c.gif", Error: "read: permission denied"},
	}
	var total Summary
	for i := range reports {
		total.Add(&reports[i])
	}
	Sort(reports)
	var out bytes.Buffer
	if err := WriteJSON(&out, reports, total); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Files []map[string]any `json:"files"`
		Total map[string]any   `json:"total"`
	}
	if err := json.Unmarshal(out.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	if f := document.Files[1]; f["path"] != "b.jpg" || f["code"] != "converted" || f["reason"] != "lossy: a JPEG, 400 bytes where the original has 1000" || f["saved_bytes"] != 600.0 || f["cpu_ms"] != 12.0 {
		t.Errorf("%v", f)
	}
	if f := document.Files[2]; f["error"] != "read: permission denied" || document.Total["failed"] != 1.0 || document.Total["bytes_after"] != 410.0 {
		t.Errorf("%v %v", f, document.Total)
	}
	out.Reset()
	if err := WriteTable(&out, reports, total, 0); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{"3 x 2", "60 %", "animated_png", "an animation of 3 frames", "permission denied", "1 converted, 1 kept as they are, 1 failed: 410 B instead of 1010 B (59 % less)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "400 bytes where") {
		t.Error("the reason repeats the columns beside it")
	}
	if strings.Contains(text, "\x1b") {
		t.Error("a name reaches the terminal's controls")
	}
}
