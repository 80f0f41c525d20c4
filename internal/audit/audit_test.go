package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"karui/convert"
	"karui/convert/header"
	"karui/internal/batch"
	"karui/internal/sample"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == convert.WorkerCommand {
		os.Exit(convert.WorkerMain(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

func newPool(t *testing.T) *convert.Pool {
	t.Helper()
	cfg := convert.DefaultConfig()
	cfg.Workers, cfg.QueueWait, cfg.Timeout = 2, time.Hour, 2*time.Minute
	p, err := convert.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func newJob(formats ...header.Format) Job {
	return Job{
		Options: convert.Options{Formats: formats, Quality: 80, Keep: []string{convert.KeepCopyright}},
		Limits:  convert.DefaultConfig(), Parallel: 2, Pictures: PicturesMost, Pixels: 60_000,
	}
}

// folder writes files below a new folder.
func folder(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// collect finds the items of the words.
func collect(t *testing.T, limits Limits, words ...string) (Found, error) {
	t.Helper()
	return Collect(t.Context(), words, limits, t.TempDir(), func(int, int) {})
}

// page audits the items and gives the report, too.
func page(t *testing.T, items []Item, job Job) ([]Image, batch.Summary, string) {
	t.Helper()
	images, total, err := Run(t.Context(), newPool(t), items, job, func(batch.Summary) {})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteHTML(&out, Subject{Names: []string{"photos"}, Settings: "as webp", When: time.Unix(0, 0).UTC()}, images, total); err != nil {
		t.Fatal(err)
	}
	return images, total, out.String()
}

const hostile = `"><script>alert(1)</script>&<img src=x onerror=alert(2)>`

func TestAFolderIsAudited(t *testing.T) {
	photo := sample.Photo()
	dir := folder(t, map[string][]byte{
		"photo.jpg": photo, "logo.png": sample.Logo(), "film.gif": sample.Animation(), "cut.jpg": photo[:len(photo)/2],
		"page.jpg": []byte("<!doctype html><title>404</title>"), "drawing.png": []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`),
		strings.ReplaceAll(hostile, "/", "-") + ".jpg": photo, "notes.txt": nil,
	})
	found, err := collect(t, DefaultLimits(), dir, filepath.Join(dir, "nowhere.jpg"))
	if err != nil || len(found.Items) != 8 || found.LeftOut != 1 || found.Pages {
		t.Fatalf("%+v %v", found, err)
	}
	images, total, report := page(t, found.Items, newJob(header.WebP))

	// Everything but the scores is what karui convert says.
	inputs, _ := batch.Inputs([]string{dir, filepath.Join(dir, "nowhere.jpg")})
	var want batch.Summary
	job := newJob(header.WebP)
	if err := batch.Run(t.Context(), newPool(t), batch.Job{Inputs: inputs, Options: job.Options, Limits: job.Limits, Parallel: 2},
		func(r batch.Report) { want.Add(&r) }); err != nil {
		t.Fatal(err)
	}
	want.CPUMillis, total.CPUMillis = 0, 0
	if a, b := fmt.Sprintf("%+v", total), fmt.Sprintf("%+v", want); a != b {
		t.Errorf("%s\nbut convert says\n%s", a, b)
	}
	if total.Converted != 4 || total.Kept != 3 || total.Failed != 1 {
		t.Errorf("%+v", total)
	}
	for _, m := range images {
		converted := m.Error == "" && m.Code == convert.Converted
		if (m.Score != nil) != converted || m.NoScore != "" || converted && (m.pair.before.body == nil || m.Looks == "") {
			t.Errorf("%s: %v %q %q", m.Path, m.Score, m.NoScore, m.Looks)
		}
		if m.Lossless && *m.Score != 100 {
			t.Errorf("%s is lossless, and scores %v", m.Path, *m.Score)
		}
		if m.Source == "jpeg" && converted && (*m.Score < 70 || *m.Score > 99.9) {
			t.Errorf("%s: %v", m.Path, *m.Score)
		}
	}
	for _, want := range []string{
		Mark, inBytes(total.BytesBefore) + " → " + inBytes(total.BytesAfter), percent(float64(total.BytesBefore-total.BytesAfter) / float64(total.BytesBefore)),
		"8 images: 4 converted, 3 kept, 1 not read", inBytes(1000 * (total.BytesBefore - total.BytesAfter)), "<code>truncated</code>",
		"no such file or directory", html.EscapeString(strings.ReplaceAll(hostile, "/", "-")),
	} {
		if !strings.Contains(report, want) && !strings.Contains(html.UnescapeString(report), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if strings.Count(report, "<script") != 1 || strings.Contains(report, "onerror=alert(2)>") || strings.Contains(report, "svg+xml") {
		t.Error("the report holds what an audited name says as it is")
	}
	for _, outside := range []string{"http://", "https://", "//cdn", "@import", "url("} {
		if strings.Contains(report, outside) {
			t.Errorf("the report names %q", outside)
		}
	}
}

// site is one with pages that name images in many ways.
func site(t *testing.T) *httptest.Server {
	t.Helper()
	photo := sample.Photo()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, `<!doctype html><title>&lt;script&gt;</title><img src="/a.jpg?x=`+strings.ReplaceAll(hostile, `"`, "&quot;")+`">
<img srcset="/a.jpg 1x, /moved.jpg 2x"><img src="/gone.jpg"><img src="javascript:alert(1)"><img src="file:///etc/passwd"><img src="/away.jpg">
<img src="/endless.jpg"><img src="/round.jpg"><meta property="og:image" content="/drawing.svg">`)
	})
	mux.HandleFunc("/a.jpg", func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "image/webp") || r.Header.Get("User-Agent") != agent {
			http.Error(w, "not as a browser asks", http.StatusTeapot)
			return
		}
		_, _ = w.Write(photo)
	})
	mux.HandleFunc("/drawing.svg", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`)
	})
	mux.Handle("/moved.jpg", http.RedirectHandler("/a.jpg", http.StatusFound))
	mux.Handle("/round.jpg", http.RedirectHandler("/round.jpg", http.StatusFound))
	mux.Handle("/away.jpg", http.RedirectHandler("ftp://127.0.0.1/a.jpg", http.StatusFound))
	mux.HandleFunc("/endless.jpg", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(photo); err != nil {
				return
			}
		}
	})
	return server
}

func TestAPageIsAudited(t *testing.T) {
	server := site(t)
	limits := DefaultLimits()
	limits.Bytes = 4 << 20
	found, err := collect(t, limits, server.URL+"/")
	if err != nil || !found.Pages {
		t.Fatal(err)
	}
	images, total, report := page(t, found.Items, newJob(header.WebP))
	outcomes := map[string]string{}
	for _, m := range images {
		name := strings.TrimPrefix(m.Path, server.URL)
		name, _, _ = strings.Cut(name, "?")
		outcomes[name] += m.Error + string(m.Code)
	}
	for name, want := range map[string]string{
		"/a.jpg": "convertedconverted", "/moved.jpg": "converted", "/gone.jpg": "it was answered with 404 Not Found", "/round.jpg": "more than 5 redirects",
		"/endless.jpg": "it is over 4.0 MiB", "/drawing.svg": "not_convertible",
	} {
		if outcomes[name] != want {
			t.Errorf("%s: %q, not %q", name, outcomes[name], want)
		}
	}
	if len(outcomes) != 7 || outcomes["/away.jpg"] == "" || total.Converted != 3 {
		t.Errorf("%q %+v", outcomes, total)
	}
	if strings.Count(report, "<script") != 1 {
		t.Error("a script in the report")
	}
	if found, err = collect(t, limits, server.URL+"/a.jpg"); err != nil || len(found.Items) != 1 || found.Items[0].Path == "" {
		t.Errorf("%+v %v", found, err)
	}
	if _, err = collect(t, limits, server.URL+"/nothing"); err == nil || !strings.Contains(err.Error(), "/nothing: it was answered with 404") {
		t.Error(err)
	}
}

func TestPagesAreBounded(t *testing.T) {
	server := site(t)
	limits := DefaultLimits()
	limits.Images = 1
	found, err := collect(t, limits, server.URL+"/")
	if err != nil || len(found.Items) != 1 || found.TooMany != 7 {
		t.Errorf("%+v %v", found, err)
	}
	limits = DefaultLimits()
	limits.Total, limits.Parallel = 1, 1
	if found, err = collect(t, limits, server.URL+"/"); err != nil || !errors.Is(found.Items[0].Err, errTotal) {
		t.Errorf("%+v %v", found, err)
	}
	limits = DefaultLimits()
	limits.Page, limits.Bytes = 100, 100
	if _, err = collect(t, limits, server.URL+"/"); err == nil || !strings.Contains(err.Error(), "it is over 100 B") {
		t.Error(err)
	}
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hung.Close)
	limits = DefaultLimits()
	limits.Fetch = 50 * time.Millisecond
	if _, err = collect(t, limits, hung.URL); err == nil || !strings.Contains(err.Error(), "no whole answer within 50ms") {
		t.Error(err)
	}
	limits = DefaultLimits()
	limits.All = 50 * time.Millisecond
	if _, err = collect(t, limits, hung.URL); err == nil || !strings.Contains(err.Error(), "not within 50ms") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = Collect(ctx, []string{hung.URL}, DefaultLimits(), t.TempDir(), nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A page that is a file takes what lies below its folder, and nothing else of the disk.
func TestAnHTMLFileReachesOnlyItsFolder(t *testing.T) {
	dir := folder(t, map[string][]byte{
		"secret.jpg": sample.Photo(), "saved/page_files/a b.jpg": sample.Photo(), "saved/page": []byte("<!doctype html><img src=nowhere.png>"),
		"saved/page.html": []byte(`<img src="page_files/a%20b.jpg"><img src="../secret.jpg"><img src="/link.jpg"><img src="page_files"><img src="%2e%2e%2fsecret.jpg">`),
	})
	if err := os.Symlink(filepath.Join(dir, "secret.jpg"), filepath.Join(dir, "saved/link.jpg")); err != nil {
		t.Fatal(err)
	}
	found, err := collect(t, DefaultLimits(), filepath.Join(dir, "saved/page.html"), filepath.Join(dir, "saved/page"))
	if err != nil {
		t.Fatal(err)
	}
	var read []string
	for _, item := range found.Items {
		if item.Err == nil {
			read = append(read, item.Name)
		}
	}
	if want := []string{filepath.Join(dir, "saved/page_files/a b.jpg")}; !slices.Equal(read, want) || len(found.Items) != 6 {
		t.Errorf("%q of %+v", read, found.Items)
	}
}

func TestEveryFormatHasAScore(t *testing.T) {
	dir := folder(t, map[string][]byte{"photo.jpg": sample.Photo()})
	for _, f := range []header.Format{header.AVIF, header.HEIC} {
		images, _, report := page(t, []Item{{Name: "photo.jpg", Path: filepath.Join(dir, "photo.jpg")}}, newJob(f))
		m := images[0]
		if m.Code == convert.NoEncoder {
			t.Logf("%s cannot be written here", f)
			continue
		}
		if m.Score == nil || *m.Score < 70 || m.Format != f.String() {
			t.Errorf("%s: %v %q %s", f, m.Score, m.NoScore, m.Reason)
		}
		if strings.Contains(report, "image/heic") {
			t.Error("a picture that most browsers do not show")
		}
	}
}

func TestWithoutPicturesThereAreNone(t *testing.T) {
	dir := folder(t, map[string][]byte{"photo.jpg": sample.Photo()})
	job := newJob(header.WebP)
	job.Pictures = 0
	images, _, report := page(t, []Item{{Name: "photo.jpg", Path: filepath.Join(dir, "photo.jpg")}}, job)
	if images[0].Score == nil || strings.Contains(report, "data:image") {
		t.Errorf("%+v", images[0].Score)
	}
}

func TestJSON(t *testing.T) {
	value := Image{Report: batch.Report{Path: "a.jpg"}}
	var out bytes.Buffer
	if err := WriteJSON(&out, []Image{value}, batch.Summary{Files: 1}, "r.html"); err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(out.Bytes(), &document); err != nil || document["report"] != "r.html" || strings.Contains(out.String(), "score") {
		t.Errorf("%v %s", err, out.String())
	}
}

func TestOnlyReportsAreReplaced(t *testing.T) {
	dir := folder(t, map[string][]byte{"other.html": []byte("<!doctype html>mine"), "empty.html": nil})
	report := filepath.Join(dir, "report.html")
	if err := MayWrite(report, false); err != nil {
		t.Error(err)
	}
	if err := WriteFile(report, Subject{}, nil, batch.Summary{}); err != nil {
		t.Fatal(err)
	}
	for _, overwrite := range []bool{false, true} {
		if err := MayWrite(report, overwrite); err != nil {
			t.Error(err)
		}
		if err := MayWrite(dir, overwrite); err == nil {
			t.Error("a folder is replaced")
		}
		for _, name := range []string{"other.html", "empty.html"} {
			if err := MayWrite(filepath.Join(dir, name), overwrite); (err == nil) != overwrite {
				t.Errorf("%s, %t: %v", name, overwrite, err)
			}
		}
	}
	if err := WriteFile(filepath.Join(dir, "nowhere", "r.html"), Subject{}, nil, batch.Summary{}); err == nil {
		t.Error("written nowhere")
	}
}
