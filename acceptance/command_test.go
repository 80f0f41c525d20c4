package acceptance

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"karui/internal/origintest"
)

// command runs karui to its end.
func command(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, built, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir}, env...)
	cmd.WaitDelay = 5 * time.Second
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("karui %s: %v", strings.Join(args, " "), err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), problem.String()
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "karui.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const smallConfig = "sites:\n  - id: shop\n    default: true\n    origins: [{name: main, urls: [\"https://origin.example.com\"]}]\n"

func TestConfigCheckNamesEveryMistake(t *testing.T) {
	t.Parallel()
	if code, out, errs := command(t, nil, "config", "check", "--config", writeFile(t, smallConfig)); code != 0 {
		t.Errorf("a good file: exit code %d\n%s%s", code, out, errs)
	}
	for name, c := range map[string]struct {
		text  string
		words []string
	}{
		"unknown key":     {smallConfig + "ttl:\n  shrot: 10s\n", []string{"karui.yaml:6", "ttl.shrot", "ttl.short"}},
		"unknown section": {smallConfig + "cahce:\n  memory: 1GiB\n", []string{"karui.yaml:5", "cahce", "cache"}},
		"unknown in site": {smallConfig + "    qualty: 3\n", []string{"karui.yaml:5", "qualty", "quality"}},
		"bare duration":   {smallConfig + "ttl: {short: 10}\n", []string{"ttl.short", "10"}},
		"bare size":       {smallConfig + "cache: {memory: 1000}\n", []string{"cache.memory", "1000"}},
		"bare percent":    {smallConfig + "disk: {high: 90}\n", []string{"disk.high", "90"}},
		"out of range":    {smallConfig + "    quality: 101\n", []string{"quality", "101"}},
		"bad format":      {smallConfig + "    formats: [bmp]\n", []string{"formats", "bmp"}},
		"all at once":     {smallConfig + "    quality: 0\n    png: maybe\nttl: {short: -5s}\n", []string{"quality", "maybe", "ttl.short"}},
		"not yaml":        {"sites: [\n", []string{"karui.yaml"}},
	} {
		file := writeFile(t, c.text)
		for _, args := range [][]string{{"config", "check", "--config", file}, {"serve", "--config", file}} {
			code, out, errs := command(t, nil, args...)
			if code != 2 {
				t.Errorf("%s: %v: exit code %d, want 2\n%s%s", name, args, code, out, errs)
			}
			for _, word := range c.words {
				if !strings.Contains(out+errs, word) {
					t.Errorf("%s: %v does not say %q:\n%s%s", name, args, word, out, errs)
				}
			}
		}
	}
}

func TestWrongUsageIsExitCode2(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"serv"}, {"serve", "--orign", "x"}, {"serve", "--config", "/nowhere/karui.yaml"}, {"serve", "--origin", "ftp://x"}, {"serve", "--origin", "not a url"}, {"serve", "extra"}, {"config", "check", "--config", "/nowhere"}} {
		if code, out, errs := command(t, nil, args...); code != 2 {
			t.Errorf("%v: exit code %d, want 2\n%s%s", args, code, out, errs)
		}
	}
	if code, out, _ := command(t, nil, "version"); code != 0 || out == "" {
		t.Errorf("version: exit code %d, %q", code, out)
	}
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	file := writeFile(t, smallConfig+"edge: {secrets: [hush-hush-hush-hush]}\nadmin: {tokens: [{name: a, token: psst-psst-psst-psst, rights: [read]}]}\n")
	code, out, errs := command(t, nil, "config", "print", "--config", file)
	if code != 0 || !strings.Contains(out, "tokens") || strings.Contains(out+errs, "hush-hush") || strings.Contains(out+errs, "psst") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

func TestServeWithoutAFile(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", body))
	k := prepare(t, origin.URL())
	k.args = []string{"serve", "--origin", origin.URL()}
	k.env = []string{"KARUI_LISTEN=" + k.addr, "KARUI_ADMIN_LISTEN=" + k.admin, `KARUI_CACHE_VOLUMES=[{"path":"` + k.cache + `","max_size":"1GiB"}]`, "KARUI_TTL_SHORT=3s", "KARUI_FIRST_RESPONSE_WAIT=0s"}
	k.start()
	a := k.do(request{target: "/a.jpg", host: "whatever.example", fields: []string{takesWebP}})
	if a.karui() != "miss" || a.maxAge() != 3 || !bytes.Equal(a.body, body) {
		t.Errorf("%v", a)
	}
	k.settle("/a.jpg", takesWebP)
}

func TestReloadTakesEffectAndABadFileChangesNothing(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	k := serve(t, origin, with("ttl.short", "7s"))
	n := 0
	// Each time another name, since a missing image is remembered.
	short := func() int {
		n++
		return k.get("/missing" + itoa(n) + ".jpg").maxAge()
	}
	if got := short(); got != 7 {
		t.Fatalf("max-age %d, want 7", got)
	}
	k.settings.set("ttl.short", "4s")
	k.write()
	k.signal(syscall.SIGHUP)
	eventually(t, 10*time.Second, "the new lifetime", func() bool { return short() == 4 })

	if err := os.WriteFile(k.file, append(k.settings.yaml(t), "ttl2: {shrot: 1s}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	k.signal(syscall.SIGHUP)
	eventually(t, 10*time.Second, "a word in the log", func() bool { return strings.Contains(k.log.String(), "ttl2") })
	if got := short(); got != 4 || !k.running() {
		t.Errorf("after a bad file: max-age %d, running: %v", got, k.running())
	}
	if err := os.Remove(k.file); err != nil {
		t.Fatal(err)
	}
	lines := len(k.log.lines())
	k.signal(syscall.SIGHUP)
	eventually(t, 10*time.Second, "a word in the log", func() bool { return len(k.log.lines()) > lines })
	if got := short(); got != 4 {
		t.Errorf("without a file: max-age %d", got)
	}
	k.settings.set("ttl.short", "2s")
	k.settings.site()["quality"] = 60
	k.write()
	k.signal(syscall.SIGHUP)
	eventually(t, 10*time.Second, "the good file again", func() bool { return short() == 2 })
}

func TestReloadUnderLoadBreaksNothing(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	bodies := map[string][]byte{}
	for i := range 6 {
		target := "/" + itoa(i) + ".jpg"
		bodies[target] = photo(t, uint64(i))
		origin.Set(target, origintest.Image("image/jpeg", bodies[target], cc("max-age=1")))
	}
	k := serve(t, origin)
	stop := make(chan struct{})
	failed := make(chan string, 1000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.keepAsking(stop, true, "/1.jpg", takesAny, func(o outcome) {
			if o.reply.status != 200 || !bytes.Equal(o.reply.body, bodies["/1.jpg"]) {
				failed <- o.reply.String()
			}
		})
	}()
	for i := range 5 {
		k.settings.set("ttl.short", itoa(3+i)+"s")
		k.write()
		k.signal(syscall.SIGHUP)
		eventually(t, 10*time.Second, "the new lifetime", func() bool { return k.get("/missing"+itoa(time.Now().Nanosecond())+".jpg").maxAge() == 3+i })
	}
	close(stop)
	<-done
	close(failed)
	for a := range failed {
		t.Error(a)
	}
}
