package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"karui/internal/cloudfront/edge"
	"karui/internal/origintest"
)

// fronted is karui behind an edge that caches, with the control plane that a purge
// needs.
type fronted struct {
	*instance
	*edge.Sample
	origin *origintest.Origin
}

// behindEdge starts an edge in front of karui, and karui in front of an origin. Karui's
// own identity may assume the role for purges and nothing else.
func behindEdge(t *testing.T, changes ...change) *fronted {
	t.Helper()
	origin := origintest.New(t)
	role := func(s settings) {
		s.site()["distribution"] = map[string]any{
			"id": edge.SampleDistribution, "role_arn": "arn:aws:iam::111122223333:role/karui-purge", "external_id": edge.SampleExternalID,
		}
	}
	k := prepare(t, origin.URL(), append([]change{patient, role}, changes...)...)
	sample, err := edge.StartSample(edge.SampleOptions{
		Proxy: k.addr, Origin: origin.Addr(), ProxyTimeout: 60 * time.Second, // of a busy machine
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := sample.Close(ctx); err != nil {
			t.Errorf("close the edge: %v", err)
		}
	})
	k.env = []string{
		"AWS_ENDPOINT_URL_CLOUDFRONT=" + sample.ControlURL, "AWS_ENDPOINT_URL_STS=" + sample.ControlURL,
		"AWS_ACCESS_KEY_ID=" + sample.Purger.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + sample.Purger.SecretAccessKey,
		"AWS_EC2_METADATA_DISABLED=true",
	}
	k.start()
	return &fronted{instance: k, Sample: sample, origin: origin}
}

// put lets the origin have a picture that may be kept for a day.
func (f *fronted) put(path string, picture []byte) {
	f.origin.Set(path, origintest.Image("image/jpeg", picture, origintest.Field{Name: "Cache-Control", Value: "public, max-age=86400"}))
}

// visit asks the edge as a viewer.
func (f *fronted) visit(path, accept string) (body []byte, header http.Header) {
	f.t.Helper()
	return f.fetch(f.URL+path, accept)
}

// direct asks karui as the edge does.
func (f *fronted) direct(path, accept string) (body []byte, header http.Header) {
	f.t.Helper()
	return f.fetch("http://"+f.addr+path, accept)
}

func (f *fronted) fetch(url, accept string) (body []byte, header http.Header) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		f.t.Error(err)
		return nil, http.Header{}
	}
	r.Host = edge.SampleHost
	name, value, _ := strings.Cut(accept, ": ")
	r.Header.Set(name, value)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		f.t.Errorf("%s: %v", url, err)
		return nil, http.Header{}
	}
	defer func() { _ = response.Body.Close() }()
	if body, err = io.ReadAll(response.Body); err != nil || response.StatusCode != 200 {
		f.t.Errorf("%s: %d, %v", url, response.StatusCode, err)
	}
	return body, response.Header
}

// kept waits until the edge answers by itself, and gives what.
func (f *fronted) kept(path, accept string) (body []byte, header http.Header) {
	f.t.Helper()
	eventually(f.t, settleLimit, path+" is kept at the edge", func() bool {
		body, header = f.visit(path, accept)
		return strings.HasPrefix(header.Get("X-Cache"), "Hit")
	})
	return body, header
}

// purge runs karui purge to its end.
func (k *instance) purge(args ...string) (code int, stdout, stderr string) {
	k.t.Helper()
	cmd := exec.Command(built, append([]string{"purge", "--config", k.file}, args...)...)
	cmd.Dir, cmd.WaitDelay = k.dir, 5*time.Second
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := begin(cmd); err != nil {
		k.t.Fatalf("karui purge: %v", err)
	}
	late := time.AfterFunc(settleLimit, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		k.t.Fatalf("karui purge: %v", err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), problem.String()
}

func wantWords(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%s lacks %q:\n%s", what, word, text)
		}
	}
}

// A picture is changed at the origin while karui and the edge keep the old one: after
// karui purge the next viewer gets the new one, in every format. The edge is asked only
// when karui already gives the new one.
func TestAPurgeReachesTheNextViewer(t *testing.T) {
	t.Parallel()
	f := behindEdge(t)
	was, is := photo(t, 1), photo(t, 2)
	names := []string{"/images/spring/a.jpg", "/images/spring/%E5%86%99%E7%9C%9F.jpg", "/images/spring/a.jpg?v=2", "/images/other.jpg"}
	f.origin.SetDefault(func(origintest.Request) origintest.Answer {
		return origintest.Image("image/jpeg", was, origintest.Field{Name: "Cache-Control", Value: "public, max-age=86400"})
	})
	for _, name := range names {
		if body, header := f.kept(name, takesWebP); header.Get("Content-Type") != "image/webp" || len(samePicture(was, body)) > 0 {
			t.Fatalf("%s at the edge: %v %v", name, header, samePicture(was, body))
		}
		if body, _ := f.kept(name, takesAny); !bytes.Equal(body, was) {
			t.Fatalf("%s at the edge is not the original", name)
		}
	}
	f.origin.SetDefault(func(origintest.Request) origintest.Answer {
		return origintest.Image("image/jpeg", is, origintest.Field{Name: "Cache-Control", Value: "public, max-age=86400"})
	})
	// That is not what purges it.
	if body, _ := f.visit(names[0], takesAny); !bytes.Equal(body, was) {
		t.Fatal("the edge asked by itself")
	}
	if body, _ := f.direct(names[0], takesAny); !bytes.Equal(body, was) {
		t.Fatal("karui asked by itself")
	}

	asked := make(chan []byte, 1)
	f.Control.Before("CreateInvalidation", func() {
		body, _ := f.direct(names[0], takesAny)
		asked <- body
	})
	f.Control.SetInvalidationDelay(2 * time.Second)
	code, stdout, stderr := f.purge("--site", "shop", "https://www.example.com/images/spring/*", "/images/写真")
	if code != 0 || stderr != "" {
		t.Fatalf("karui purge ended with %d\n%s%s", code, stdout, stderr)
	}
	wantWords(t, "karui purge", stdout, "http://"+f.admin+" has purged 2 prefixes of site shop", "edge: distribution E123SHOP, 3 paths in 1 invalidation", "edge: done after ")
	if body := <-asked; !bytes.Equal(body, is) {
		t.Error("the edge was asked while karui still gave the old picture")
	}
	for _, name := range names[:3] {
		if body, header := f.visit(name, takesWebP); header.Get("Content-Type") != "image/webp" || len(samePicture(is, body)) > 0 {
			t.Errorf("%s after the purge: %v %v", name, header, samePicture(is, body))
		}
		if body, _ := f.visit(name, takesAny); !bytes.Equal(body, is) {
			t.Errorf("%s after the purge is not the new original", name)
		}
	}
	// What was not purged is as it was.
	if body, header := f.visit(names[3], takesAny); !bytes.Equal(body, was) || !strings.HasPrefix(header.Get("X-Cache"), "Hit") {
		t.Errorf("%s is gone, too: %v", names[3], header)
	}
	// Nothing was called but what the role for purges allows.
	for _, call := range f.Control.Calls() {
		if call.Action != "AssumeRole" && call.Action != "CreateInvalidation" && call.Action != "GetInvalidation" {
			t.Errorf("%s was called", call.Action)
		}
	}
}

// Every node acknowledges before the edge is told; one that does not is named.
func TestAllNodesArePurgedBeforeTheEdge(t *testing.T) {
	t.Parallel()
	f := behindEdge(t)
	second := serve(t, f.origin, patient)
	was, is := photo(t, 1), photo(t, 2)
	f.put("/images/a.jpg", was)
	for _, k := range []*instance{f.instance, second} {
		if a := k.do(request{target: "/images/a.jpg", host: "www.example.com", fields: []string{takesAny}}); !bytes.Equal(a.body, was) {
			t.Fatalf("%v", a)
		}
	}
	f.put("/images/a.jpg", is)
	first, other := "http://"+f.admin, "http://"+second.admin
	nowhere := "http://" + origintest.ClosedAddr()

	code, stdout, stderr := f.purge("--site", "shop", "/images/", "--admin", first, "--admin", nowhere)
	if code != 1 || len(f.Control.Invalidations(edge.SampleDistribution)) != 0 {
		t.Errorf("a node is away: %d, %+v", code, f.Control.Invalidations(edge.SampleDistribution))
	}
	wantWords(t, "stderr", stderr, nowhere+" has not purged: ", "nothing listens there", "the edge was left alone")
	wantWords(t, "stdout", stdout, first+" has purged 1 prefix of site shop")

	asked := make(chan []byte, 1)
	f.Control.Before("CreateInvalidation", func() {
		a := second.do(request{target: "/images/a.jpg", host: "www.example.com", fields: []string{takesAny}})
		asked <- a.body
	})
	code, stdout, stderr = f.purge("--site", "shop", "/images/", "--admin", first, "--admin", other, "--json")
	var report struct {
		Nodes  []struct{ Acknowledged bool }
		Purges []struct{ Edge struct{ State string } }
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 || len(report.Nodes) != 2 || !report.Nodes[1].Acknowledged || len(report.Purges) != 1 || report.Purges[0].Edge.State != "done" {
		t.Fatalf("%d, %v\n%s%s", code, err, stdout, stderr)
	}
	if body := <-asked; !bytes.Equal(body, is) {
		t.Error("the edge was told while the second node still gave the old picture")
	}
}

// What karui has acknowledged, it does at the edge also after it was killed, once.
func TestAPurgeAtTheEdgeOutlivesAKill(t *testing.T) {
	t.Parallel()
	f := behindEdge(t)
	f.Control.Fail("CreateInvalidation", 1, 400, "Throttling", "Rate exceeded")
	f.Control.Fail("CreateInvalidation", 2, 503, "ServiceUnavailable", "sorry")
	f.Control.SetInvalidationDelay(4 * time.Second)
	code, stdout, stderr := f.purge("--site", "shop", "--no-wait", "/images/")
	if code != 0 {
		t.Fatalf("%d\n%s%s", code, stdout, stderr)
	}
	_, id, _ := strings.Cut(stdout, "karui purge --follow ")
	id, _, _ = strings.Cut(id, "`")
	f.kill()
	f.start()
	eventually(t, settleLimit, "the edge is told", func() bool { return len(f.Control.Invalidations(edge.SampleDistribution)) > 0 })
	f.kill()
	f.start()
	if code, stdout, stderr = f.purge("--follow", id); code != 0 {
		t.Fatalf("%d\n%s%s", code, stdout, stderr)
	}
	wantWords(t, "--follow", stdout, "edge: done after ")
	if made := f.Control.Invalidations(edge.SampleDistribution); len(made) != 1 || len(made[0].Paths) != 1 || made[0].Paths[0] != "/images/*" {
		t.Errorf("%+v", made)
	}
	code, stdout, _ = f.purge("--list")
	wantWords(t, "--list", stdout, id, "shop: /images/; edge E123SHOP done in ")
	if code != 0 {
		t.Errorf("--list: %d", code)
	}
}

// A failure at the edge names what is missing; the proxy has purged all the same.
func TestAPurgeThatFailsAtTheEdge(t *testing.T) {
	t.Parallel()
	f := behindEdge(t)
	was, is := photo(t, 1), photo(t, 2)
	f.put("/images/a.jpg", was)
	f.direct("/images/a.jpg", takesAny)
	f.put("/images/a.jpg", is)
	f.Control.Deny(f.PurgerRole, "cloudfront:CreateInvalidation")
	code, stdout, stderr := f.purge("--site", "shop", "/images/a.jpg")
	if code != 1 {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	wantWords(t, "stderr", stderr, "the proxy has purged, the edge has not: ", "AccessDenied",
		"remedy: add cloudfront:CreateInvalidation to the policy of "+f.PurgerRole+" on arn:aws:cloudfront::111122223333:distribution/E123SHOP")
	if body, _ := f.direct("/images/a.jpg", takesAny); !bytes.Equal(body, is) {
		t.Error("karui gives the old picture")
	}
	f.Control.Allow(f.PurgerRole, "cloudfront:CreateInvalidation")
	f.kill()
	f.settings.site()["distribution"].(map[string]any)["external_id"] = "another-id"
	f.write()
	f.start()
	code, _, stderr = f.purge("--site", "shop", "/images/a.jpg")
	wantWords(t, "stderr", stderr, "sts:AssumeRole", "sts:ExternalId equal to distribution.external_id")
	if code != 1 || strings.Contains(stderr, "another-id") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// Ending the command ends the waiting and nothing else.
func TestAPurgeThatIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	f := behindEdge(t)
	f.Control.SetInvalidationDelay(time.Hour)
	cmd := exec.Command(built, "purge", "--config", f.file, "--site", "shop", "/images/")
	var stdout journal
	stderr := &journal{}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, stderr, 5*time.Second
	if err := begin(cmd); err != nil {
		t.Fatal(err)
	}
	eventually(t, settleLimit, "the edge is told", func() bool { return len(f.Control.Invalidations(edge.SampleDistribution)) > 0 })
	eventually(t, settleLimit, "the command waits", func() bool { return strings.Contains(stdout.String(), "edge: distribution E123SHOP") })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
	wantWords(t, "stderr", stderr.String(), "interrupted: the proxy has purged, and karui at http://"+f.admin+" goes on with the edge by itself", "karui purge --follow ", "karui purge --list")

	code, _, late := f.purge("--site", "shop", "--timeout", "2s", "/images/")
	wantWords(t, "stderr", late, "not done within 2s: the proxy has purged")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	if code, out, _ := f.purge("--site", "shop", "--no-edge", "/images/"); code != 0 || !strings.Contains(out, "edge: distribution E123SHOP was left out") {
		t.Errorf("--no-edge: %d\n%s", code, out)
	}
	if n := len(f.Control.Invalidations(edge.SampleDistribution)); n != 2 {
		t.Errorf("%d invalidations", n)
	}
}

// Without a distribution there is no edge to purge, and no AWS to ask.
func TestAPurgeOfASiteWithoutADistribution(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	was, is := photo(t, 1), photo(t, 2)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", was))
	k := serve(t, origin, patient, with("admin.tokens", []any{
		map[string]any{"name": "ops", "token": "ops-token-01", "rights": []any{"read", "dial"}},
		map[string]any{"name": "staff", "token": "staff-token-01", "rights": []any{"purge"}, "sites": []any{"shop"}},
	}))
	ask := func() []byte {
		return k.do(request{target: "/a.jpg", host: "www.example.com", fields: []string{takesAny}}).body
	}
	if !bytes.Equal(ask(), was) {
		t.Fatal("no picture")
	}
	origin.Set("/a.jpg", origintest.Image("image/jpeg", is))
	list := filepath.Join(k.dir, "list")
	if err := os.WriteFile(list, []byte("\ufeff# changed today\r\n\r\n/nothing/\r\nhttps://www.example.com/a.jpg\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := k.purge("--site", "shop", "--file", list)
	if code != 0 || stderr != "" || !bytes.Equal(ask(), is) {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	wantWords(t, "stdout", stdout, "has purged 2 prefixes of site shop", "site shop has no distribution (sites[].distribution): there is no edge to purge")
	for args, words := range map[string]string{
		"--site shop":                     "say what to purge",
		"/a.jpg":                          "--site is missing",
		"--site shop a.jpg":               "does not begin with a slash: write /a.jpg",
		"--site shop /a*b":                "write a star that belongs to a name as %2A",
		"--site shop --file /nonexistent": "--file",
		"--site shop / --timeout 5":       "for seconds, write 5s",
		"--list /a.jpg":                   "say nothing of what to purge",
	} {
		if code, stdout, stderr := k.purge(strings.Fields(args)...); code != 2 || stdout != "" || !strings.Contains(stderr, words) {
			t.Errorf("%s: %d\n%s%s", args, code, stdout, stderr)
		}
	}
	code, _, stderr = k.purge("--site", "blog", "/")
	if code != 1 || !strings.Contains(stderr, "none of admin.tokens has the right purge for site blog") {
		t.Errorf("another site: %d\n%s", code, stderr)
	}
}
