package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"karui/internal/origintest"
)

// warmed is what a test reads of the report of karui warm.
type warmed struct {
	Images  int `json:"images"`
	Foreign int `json:"other_hosts"`
	LeftOut int `json:"left_out"`
	Formats []struct {
		Format  string
		Made    int
		Ready   int
		Kept    int
		Bypass  int
		Before  int `json:"done_before"`
		Failed  int
		Missing int
	}
	DeadLinks      int `json:"dead_links"`
	Failures, Dead []struct{ Name, Reason string }
	Finished       bool
}

// warm runs karui warm to its end.
func (k *instance) warm(args ...string) (code int, report warmed, stderr string) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*settleLimit)
	defer cancel()
	cmd := k.warmCommand(ctx, append([]string{"--json"}, args...)...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	err := begin(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		k.t.Fatalf("karui warm: %v", err)
	}
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			k.t.Fatalf("karui warm: %v\n%s%s", err, &out, &problem)
		}
	}
	return cmd.ProcessState.ExitCode(), report, problem.String()
}

func (k *instance) warmCommand(ctx context.Context, args ...string) *exec.Cmd {
	args = append([]string{"warm", "--config", k.file, "--site", "shop", "--state", filepath.Join(k.dir, "warm.json")}, args...)
	cmd := exec.CommandContext(ctx, built, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// warmState gives how many images a state file says are done.
func (k *instance) warmState() int {
	b, err := os.ReadFile(filepath.Join(k.dir, "warm.json"))
	if err != nil {
		return 0
	}
	done := 0
	for line := range bytes.Lines(b) {
		var of struct{ Done map[string]int64 }
		if err := json.Unmarshal(line, &of); err != nil {
			k.t.Errorf("the state file is not whole: %v", err)
		}
		if len(of.Done) > 0 {
			done++
		}
	}
	return done
}

// mapped lays out a site: an index of two sitemaps, one with 60 images and one with
// three pages of 20 images each, and whatever should be left alone.
func mapped(t *testing.T, origin *origintest.Origin) (targets []string) {
	t.Helper()
	const site = "https://www.example.com"
	var images, pages strings.Builder
	for i := range 60 {
		target := fmt.Sprintf("/named/%d.jpg", i)
		if i%10 == 0 {
			target = fmt.Sprintf("/named/写%%2F%d.jpg?v=%d&w=1", i, i)
		}
		fmt.Fprintf(&images, "<url><loc>%s/p%d</loc><image:image><image:loc>%s%s</image:loc></image:image></url>", site, i, site, strings.ReplaceAll(target, "&", "&amp;"))
		targets = append(targets, strings.ReplaceAll(target, "写", "%E5%86%99"))
	}
	for p := range 3 {
		var page strings.Builder
		page.WriteString("<base href='/page/'><img src='https://cdn.example.net/x.jpg'><img src=icon.svg><img src=data:image/gif;base64,AA>")
		for i := range 20 {
			target := fmt.Sprintf("%d-%d.png", p, i)
			targets = append(targets, "/page/"+target)
			switch i % 4 {
			case 0:
				fmt.Fprintf(&page, "<img src='%s'>", target)
			case 1:
				fmt.Fprintf(&page, "<picture><source srcset='%s 2x'></picture>", target)
			case 2:
				fmt.Fprintf(&page, "<p style=\"background: url('%s')\">", target)
			default:
				fmt.Fprintf(&page, "<meta property=og:image content='%s/page/%s'><img src=%s>", site, target, target)
			}
		}
		path := fmt.Sprintf("/html/%d", p)
		origin.Set(path, origintest.Text(200, "text/html; charset=utf-8", page.String()))
		fmt.Fprintf(&pages, "<url><loc>%s%s</loc></url>", origin.URL(), path)
	}
	pages.WriteString("<url><loc>http://127.0.0.1:1/internal</loc></url>")
	origin.Set("/sitemap.xml", origintest.Text(200, "text/xml", fmt.Sprintf(
		"<sitemapindex><sitemap><loc>%s/1.xml</loc></sitemap><sitemap><loc>%s/2.xml.gz</loc></sitemap></sitemapindex>", origin.URL(), origin.URL())))
	origin.Set("/1.xml", origintest.Text(200, "text/xml", "<urlset xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'>"+images.String()+"</urlset>"))
	origin.Set("/2.xml.gz", origintest.Image("application/x-gzip", gzipped(t, []byte("<urlset>"+pages.String()+"</urlset>"))))
	photos := [][]byte{photo(t, 1), photo(t, 2), photo(t, 3)}
	drawing := logo(t, 4)
	origin.SetDefault(func(r origintest.Request) origintest.Answer {
		if strings.HasPrefix(r.Target, "/named/") {
			return origintest.Image("image/jpeg", photos[len(r.Target)%len(photos)])
		}
		return origintest.Image("image/png", drawing)
	})
	return targets
}

func TestWarm(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	targets := mapped(t, origin)
	k := serve(t, origin, with("edge", map[string]any{"secrets": []any{"a-secret-of-the-edge-1234"}}))
	sitemap := origin.URL() + "/sitemap.xml"

	// The first run is killed, and what it did is not lost.
	first := k.warmCommand(t.Context(), "--sitemap", sitemap, "--rate", "100/s")
	if err := begin(first); err != nil {
		t.Fatal(err)
	}
	seen := became(settleLimit, func() bool { return k.warmState() >= 10 })
	_ = first.Process.Kill()
	_ = first.Wait() // it was killed
	if !seen {
		t.Fatal("nothing was done")
	}
	done := k.warmState()

	code, report, stderr := k.warm("--sitemap", sitemap, "--rate", "200/s", "--parallel", "8")
	if code != 0 || !report.Finished || report.Images != len(targets) || len(report.Formats) != 1 || report.Formats[0].Before != done ||
		report.Formats[0].Before+report.Formats[0].Made+report.Formats[0].Ready != len(targets) {
		t.Fatalf("%d, %d were done: %+v\n%s", code, done, report, stderr)
	}
	for _, target := range targets {
		a := k.get(target, "Accept: image/webp", "X-Karui-Key: a-secret-of-the-edge-1234")
		if a.karui() != "hit" || !a.webp() {
			t.Errorf("%s: %v", target, a)
		}
		path, _, _ := strings.Cut(target, "?")
		if n := origin.Count(path); n != 1 {
			t.Errorf("%s: %d requests to the origin", target, n)
		}
	}
	// All is done now, and --again finds it in the cache.
	if code, report, _ = k.warm("--sitemap", sitemap); code != 0 || report.Formats[0].Before != len(targets) {
		t.Errorf("%d %+v", code, report)
	}
	code, report, _ = k.warm("--sitemap", sitemap, "--again", "--rate", "500/s", "--original")
	if code != 0 || report.Formats[0].Ready != len(targets) || report.Formats[1].Kept != len(targets) || report.Foreign != 3+1 || report.LeftOut != 3 {
		t.Errorf("%d %+v", code, report)
	}
}

func TestWarmLeavesAStressedProxyAlone(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	mapped(t, origin)
	k := serve(t, origin)
	sitemap := origin.URL() + "/1.xml"
	if code, _, stderr := command(t, nil, "dial", "--config", k.file, "--shed", "100%"); code != 0 {
		t.Fatal(stderr)
	}
	code, report, stderr := k.warm("--sitemap", sitemap, "--rate", "100/s", "--patience", "4s")
	if code != 1 || report.Finished || !strings.Contains(stderr, "an operator has requests turned away") || !strings.Contains(stderr, "goes on from here") {
		t.Errorf("%d %+v\n%s", code, report, stderr)
	}
	if n := k.metric("karui_requests_total", `outcome="503_shed"`); n > 8 {
		t.Errorf("%v requests to a proxy that turned them away", n)
	}
	// The dial is above 0: nothing is asked at all.
	if code, _, stderr := command(t, nil, "dial", "2", "--config", k.file, "--shed", "0%"); code != 0 {
		t.Fatal(stderr)
	}
	code, _, stderr = k.warm("--sitemap", sitemap, "--patience", "2s", "--rate", "1/s")
	if code != 1 || !strings.Contains(stderr, "its dial is at 2 (spare)") {
		t.Errorf("%d\n%s", code, stderr)
	}
	if n := origin.Count(""); n > 10 {
		t.Errorf("%d requests to the origin", n)
	}
	// Nobody is there.
	k.stop()
	code, _, stderr = k.warm("--sitemap", sitemap, "--patience", "2s")
	if code != 1 || !strings.Contains(stderr, "could not be reached") {
		t.Errorf("%d\n%s", code, stderr)
	}
}

func TestWarmEndsCleanlyWhenStopped(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	mapped(t, origin)
	k := serve(t, origin)
	var stderr journal
	cmd := k.warmCommand(t.Context(), "--sitemap", origin.URL()+"/1.xml", "--rate", "10/s")
	cmd.Stderr = &stderr
	if err := begin(cmd); err != nil {
		t.Fatal(err)
	}
	seen := became(settleLimit, func() bool { return k.warmState() >= 1 })
	_ = cmd.Process.Signal(syscall.SIGTERM)
	err := cmd.Wait()
	if !seen || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "karui: stopped; the same command goes on from here") {
		t.Errorf("%v %v\n%s", seen, err, &stderr)
	}
}

// What a sitemap says cannot make karui warm ask anybody else, or take memory without
// bounds.
func TestWarmWithHostileSitemaps(t *testing.T) {
	t.Parallel()
	origin, other := origintest.New(t), origintest.New(t)
	other.SetDefault(func(origintest.Request) origintest.Answer { return origintest.Text(200, "text/xml", "<urlset/>") })
	origin.Set("/robots.jpg", origintest.Image("image/jpeg", photo(t, 1)))
	origin.Set("/loop.xml", origintest.Text(200, "text/xml", fmt.Sprintf(
		"<sitemapindex><sitemap><loc>%s/loop.xml</loc></sitemap><sitemap><loc>%s/in.xml</loc></sitemap><sitemap><loc>%s/away.xml</loc></sitemap><sitemap><loc>%s/good.xml</loc></sitemap><sitemap><loc>file:///etc/passwd</loc></sitemap></sitemapindex>",
		origin.URL(), other.URL(), origin.URL(), origin.URL())))
	origin.Set("/away.xml", origintest.Text(302, "text/xml", "").With("Location", other.URL()+"/in.xml"))
	origin.Set("/good.xml", origintest.Text(200, "text/xml", "<urlset><url><loc>/robots.jpg</loc></url><url><loc>"+other.URL()+"/page</loc></url></urlset>"))
	origin.Set("/bomb.xml", origintest.Image("text/xml", gzipped(t, make([]byte, 80<<20))))
	k := serve(t, origin)
	code, report, stderr := k.warm("--sitemap", origin.URL()+"/loop.xml", "--sitemap", origin.URL()+"/bomb.xml", "--rate", "50/s")
	if code != 1 || report.Images != 1 || report.Formats[0].Made+report.Formats[0].Ready != 1 || len(report.Failures) != 4 || report.Foreign != 1 {
		t.Errorf("%d %+v\n%s", code, report, stderr)
	}
	if n := other.Connections(); n > 0 {
		t.Errorf("%d connections to a host that nobody named", n)
	}
}

// A dead link is listed and leaves the exit code 0; with nothing else it is 1.
func TestWarmListsDeadLinks(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", photo(t, 1)))
	origin.SetDefault(func(origintest.Request) origintest.Answer { return origintest.Text(404, "text/html", "no") })
	origin.Set("/map.xml", origintest.Text(200, "text/xml", "<urlset><url><loc>/a.jpg</loc></url><url><loc>/gone.jpg</loc></url><url><loc>/page</loc></url></urlset>"))
	origin.Set("/dead.xml", origintest.Text(200, "text/xml", "<urlset><url><loc>/gone.jpg</loc></url></urlset>"))
	k := serve(t, origin)
	code, report, stderr := k.warm("--sitemap", origin.URL()+"/map.xml", "--rate", "50/s")
	if code != 0 || report.Images != 2 || report.DeadLinks != 2 || len(report.Failures) != 0 || report.Formats[0].Missing != 1 {
		t.Errorf("%d %+v\n%s", code, report, stderr)
	}
	for _, d := range report.Dead {
		if !strings.HasSuffix(d.Name, "/gone.jpg") && !strings.HasSuffix(d.Name, "/page") || !strings.Contains(d.Reason, "404") {
			t.Errorf("%+v", d)
		}
	}
	code, report, stderr = k.warm("--sitemap", origin.URL()+"/dead.xml", "--state", filepath.Join(k.dir, "dead.json"))
	if code != 1 || report.DeadLinks != 1 || !strings.Contains(stderr, "not one of the 1 images of site shop exists") {
		t.Errorf("%d %+v\n%s", code, report, stderr)
	}
}
