package image

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"karui/cache"
	"karui/internal/server"
	"karui/watchdog/settings"
)

const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func target(t *testing.T, name string) stage {
	t.Helper()
	stages, err := parse(read(t, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stages {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("no stage %s", name)
	return stage{}
}

func TestDockerfileKeepsTheRules(t *testing.T) {
	for _, p := range problems(read(t, "Dockerfile")) {
		t.Error(p)
	}
}

// Each rule is one that a Dockerfile can break: the same file with one change.
func TestTheRulesBite(t *testing.T) {
	good := read(t, "Dockerfile")
	for _, c := range []struct{ old, new, want string }{
		{"debian:bookworm-slim", "debian:latest", "not pinned"},
		{"debian:bookworm-slim", "debian", "not pinned"},
		{"debian:bookworm-slim", "debian:stable", "not pinned"},
		{"debian:bookworm-slim", "alpine:3.20", "Debian release"},
		{"debian:bookworm-slim", "debian:trixie-slim", "one Debian release"},
		{"bookworm", "trixie", "libheif-plugin-x265"},
		{"USER 10001:10001\n", "", "USER"},
		{"USER 10001:10001", "USER karui", "USER"},
		{"USER 10001:10001", "USER 0:0", "USER"},
		{"USER 10001:10001", "USER 10001:10001\nRUN true", "after USER"},
		{" --no-install-recommends ca-certificates", " ca-certificates", "--no-install-recommends"},
		{" && rm -rf /var/lib/apt/lists/* \\\n && groupadd", " && groupadd", "lists"},
		{"RUN apt-get update \\\n && apt-get install -y --no-install-recommends ca", "RUN apt-get update\nRUN apt-get install -y --no-install-recommends ca", "apt-get update"},
		{"COPY --from=build /src/bin/karui /usr", "ADD https://example.com/karui /usr", "ADD"},
		{"COPY --from=build /src/bin/karui /usr", "COPY https://example.com/karui /usr", "network"},
		{"COPY go.mod go.sum ./\nRUN go mod download\nCOPY . .", "COPY . .\nRUN go mod download", "modules"},
		{`CMD ["/usr/local/bin/karui", "healthcheck"]`, "CMD karui healthcheck", "HEALTHCHECK"},
		{`CMD ["/usr/local/bin/karui", "healthcheck"]`, `CMD ["curl", "http://localhost:9090/readyz"]`, "HEALTHCHECK"},
		{"--timeout=5s ", "", "--timeout"},
		{`ENTRYPOINT ["/usr/local/bin/karui"]`, "ENTRYPOINT /usr/local/bin/karui", "ENTRYPOINT"},
		{`ENTRYPOINT ["/usr/local/bin/karui"]`, `ENTRYPOINT ["karui"]`, "PATH"},
		{`CMD ["serve"]`, "CMD serve", "CMD"},
		{"EXPOSE 8080\nSTOPSIGNAL SIGTERM", "EXPOSE 8080", "STOPSIGNAL"},
		{"EXPOSE 8080\n", "EXPOSE 8080\nENV EDGE_SECRET=hunter2\n", "secret"},
		{"EXPOSE 8080\n", "EXPOSE 8080\nARG AWS_ACCESS_KEY_ID\n", "secret"},
		{"EXPOSE 8080\n", "EXPOSE 8080\nENV TMPDIR=/tmp\n", "temporary"},
		{`VOLUME ["/var/cache/karui"]`, `VOLUME ["/var/cache/karui"]` + "\n" + `VOLUME ["/tmp"]`, "VOLUME"},
		{`org.opencontainers.image.revision="$COMMIT"` + "\nCOPY --from=build /src/bin/karui /usr", `x="y"` + "\nCOPY --from=build /src/bin/karui /usr", "revision"},
		{"FROM scratch AS watchdog", "FROM scratch AS dog", "watchdog"},
		{"RUN go mod download", "RUN curl -sSf https://example.com/install.sh | sh", "curl"},
	} {
		bad := strings.ReplaceAll(good, c.old, c.new)
		if bad == good {
			t.Errorf("%q does not stand in the Dockerfile", c.old)
		}
		found := problems(bad)
		if !slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, c.want) }) {
			t.Errorf("%q for %q: found %q, want one about %s", c.new, c.old, found, c.want)
		}
	}
}

// What the image says and what the programs do are the same.
func TestImageFitsThePrograms(t *testing.T) {
	proxy, dog, build := target(t, "karui"), target(t, "watchdog"), target(t, "build")
	volume := func(s stage) string {
		v, _ := s.last("VOLUME")
		folders, _ := v.exec()
		return strings.Join(folders, " ")
	}
	if got, want := volume(proxy), cache.DefaultVolume().Path; got != want {
		t.Errorf("karui writes to %s, the volume is %s", want, got)
	}
	if got, want := volume(dog), settings.Default().StateDir; got != want {
		t.Errorf("karui-watchdog writes to %s, the volume is %s", want, got)
	}
	listen := server.DefaultConfig().Listen
	if port, _ := proxy.last("EXPOSE"); ":"+port.rest != listen {
		t.Errorf("EXPOSE %s, karui listens on %s", port.rest, listen)
	}
	toolchain := regexp.MustCompile(`(?m)^toolchain go(.+)$`).FindStringSubmatch(read(t, "go.mod"))
	if len(toolchain) != 2 || !strings.HasPrefix(build.base, "golang:"+toolchain[1]+"-") {
		t.Errorf("built with %s, go.mod wants %q", build.base, toolchain)
	}
	// The owner of the volume is the one who runs.
	for _, s := range []struct {
		stage
		made string
	}{{proxy, "install -d -o 10001 -g 10001 -m 0700 " + volume(proxy)}, {dog, "--chown=10002:10002 /state " + volume(dog)}} {
		user, _ := s.last("USER")
		uid, _, _ := strings.Cut(user.rest, ":")
		there := false
		for _, i := range s.body {
			there = there || strings.Contains(strings.Join(append(i.flags, i.rest), " "), s.made)
		}
		if !there || !strings.Contains(s.made, uid) {
			t.Errorf("%s: the volume is not made for user %s", s.name, user.rest)
		}
	}
	if !strings.Contains(read(t, "Makefile"), "CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/karui-watchdog") {
		t.Error("the watchdog's image has no libraries: its binary must be static")
	}
}

// The build context holds every file that the programs are built from.
func TestDockerignoreLeavesWhatIsBuilt(t *testing.T) {
	var kept []string
	var dropped []string
	for line := range strings.Lines(read(t, ".dockerignore")) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "!"):
			kept = append(kept, line[1:])
		default:
			dropped = append(dropped, line)
		}
	}
	if !slices.Equal(dropped, []string{"*", "**/*_test.go", "**/testdata"}) {
		t.Fatalf("left out is %q: this test knows other patterns", dropped)
	}
	files := []string{"go.mod", "go.sum", "Makefile"}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Dir,Standard,Module,GoFiles,CgoFiles,CFiles,HFiles,SFiles,EmbedFiles", "./cmd/karui", "./cmd/karui-watchdog")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Dir                                                   string
			Standard                                              bool
			Module                                                *struct{ Main bool }
			GoFiles, CgoFiles, CFiles, HFiles, SFiles, EmbedFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Standard || p.Module == nil || !p.Module.Main {
			continue
		}
		dir, err := filepath.Rel(top, p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range slices.Concat(p.GoFiles, p.CgoFiles, p.CFiles, p.HFiles, p.SFiles, p.EmbedFiles) {
			files = append(files, path.Join(filepath.ToSlash(dir), f))
		}
	}
	if len(files) < 50 {
		t.Fatalf("go list names %d files only", len(files))
	}
	for _, f := range files {
		first, _, _ := strings.Cut(f, "/")
		if !slices.Contains(kept, first) || strings.HasSuffix(f, "_test.go") || slices.Contains(strings.Split(f, "/"), "testdata") {
			t.Errorf("%s is needed, but .dockerignore leaves it out", f)
		}
	}
	for _, k := range kept {
		if !slices.ContainsFunc(files, func(f string) bool { return f == k || strings.HasPrefix(f, k+"/") }) {
			// deploy is there for programs to come that install what it holds.
			if k != "deploy" {
				t.Errorf("%s is let in, but nothing is built from it", k)
			}
		}
	}
}
