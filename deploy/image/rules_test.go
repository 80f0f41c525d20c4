package image

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// shipped are the stages that are given to operators; the others only build.
func shipped(s stage) bool { return s.name == "karui" || s.name == "watchdog" }

var (
	pinned  = regexp.MustCompile(`^[a-z0-9./-]+:[A-Za-z0-9._-]*[a-z0-9]$`)
	numeric = regexp.MustCompile(`^[1-9][0-9]{3,}:[1-9][0-9]{3,}$`)
	secret  = regexp.MustCompile(`(?i)secret|token|passw|credential|api_?key|access_?key|private_?key|AKIA[0-9A-Z]{16}`)
	remote  = regexp.MustCompile(`(?i)^(https?|ftp|git|ssh)(://|@)`)
)

// problems lists what a Dockerfile does that ours must not do.
func problems(text string) []string {
	stages, err := parse(text)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	names := map[string]bool{"scratch": true}
	releases := map[string]bool{}
	for _, s := range stages {
		if !names[s.base] {
			if !pinned.MatchString(s.base) || strings.HasSuffix(s.base, ":latest") || strings.HasSuffix(s.base, ":stable") {
				say("base %s is not pinned", s.base)
			}
			if release := regexp.MustCompile(`bookworm|trixie|forky`).FindString(s.base); release != "" {
				releases[release] = true
			} else {
				say("base %s does not name its Debian release", s.base)
			}
		}
		names[s.name] = true
		checkSteps(s, say)
		if shipped(s) {
			checkShipped(s, say)
		}
	}
	if len(releases) > 1 {
		say("built on one Debian release and run on another")
	}
	if releases["trixie"] || releases["forky"] {
		installed := ""
		for _, s := range stages {
			if run, ok := s.last("RUN"); ok && s.name == "karui" {
				installed = run.rest
			}
		}
		for _, plugin := range []string{"libheif-plugin-x265", "libheif-plugin-aomenc"} {
			if !strings.Contains(installed, " "+plugin) {
				say("on this Debian release %s must be named", plugin)
			}
		}
	}
	if last := stages[len(stages)-1]; last.name != "karui" {
		say("a build without --target gives %s", last.name)
	}
	for _, want := range []string{"karui", "watchdog"} {
		if !names[want] {
			say("no target %s", want)
		}
	}
	return found
}

// checkSteps is about every stage.
func checkSteps(s stage, say func(string, ...any)) {
	copied := "" // what was copied so far
	for _, i := range s.body {
		if i.name != "RUN" && secret.MatchString(i.rest) || i.name == "RUN" && regexp.MustCompile(`AKIA[0-9A-Z]{16}`).MatchString(i.rest) {
			say("line %d: looks like a secret", i.line)
		}
		switch i.name {
		case "ADD":
			say("line %d: ADD unpacks and downloads: use COPY", i.line)
		case "COPY":
			for _, word := range strings.Fields(i.rest) {
				if remote.MatchString(word) {
					say("line %d: copied from the network", i.line)
				}
			}
			if i.rest == ". ." && copied != "" && !strings.Contains(copied, "go.mod") || i.rest == ". ." && copied == "" {
				say("line %d: the modules must be copied and loaded before the code, or every change loads them again", i.line)
			}
			copied += " " + i.rest
		case "RUN":
			checkRun(i, say)
			copied += " " + i.rest
		case "ENV", "ARG":
			if strings.HasPrefix(i.rest, "TMPDIR") {
				say("line %d: nothing needs a folder for temporary files", i.line)
			}
		}
	}
}

func checkRun(i instruction, say func(string, ...any)) {
	script := strings.Join(strings.Fields(i.rest), " ")
	if strings.Contains(script, "apt-get") {
		for _, want := range []string{"apt-get update && apt-get install ", " -y ", " --no-install-recommends ", "&& rm -rf /var/lib/apt/lists/*"} {
			if !strings.Contains(script, want) {
				say("line %d: packages without %q", i.line, strings.TrimSpace(want))
			}
		}
	}
	for _, never := range []string{"sudo ", "curl ", "wget ", "apt install", "apt-get upgrade", "dist-upgrade", "chmod 777", "chmod -R 777", "--allow-unauthenticated", "--force-yes"} {
		if strings.Contains(script, never) {
			say("line %d: %q", i.line, strings.TrimSpace(never))
		}
	}
}

// checkShipped is about what an operator runs.
func checkShipped(s stage, say func(string, ...any)) {
	user, ok := s.last("USER")
	if !ok || !numeric.MatchString(user.rest) {
		say("%s: USER is %q, want numbers such as 10001:10001, which no orchestrator has to look up", s.name, user.rest)
	}
	for _, i := range s.body {
		if ok && i.line > user.line && slices.Contains([]string{"RUN", "COPY"}, i.name) {
			say("line %d: %s after USER", i.line, i.name)
		}
	}
	for _, name := range []string{"ENTRYPOINT", "CMD"} {
		i, ok := s.last(name)
		words, exec := i.exec()
		switch {
		case !ok || !exec:
			say("%s: no %s in exec form: a shell would swallow SIGTERM", s.name, name)
		case name == "ENTRYPOINT" && !strings.HasPrefix(words[0], "/"):
			say("%s: ENTRYPOINT %s is looked for in PATH", s.name, words[0])
		}
	}
	if stop, ok := s.last("STOPSIGNAL"); !ok || stop.rest != "SIGTERM" {
		say("%s: STOPSIGNAL is %q, want SIGTERM, which drains", s.name, stop.rest)
	}
	if v := s.all("VOLUME"); len(v) != 1 {
		say("%s: %d VOLUMEs, want the one folder that is written to", s.name, len(v))
	} else if _, exec := v[0].exec(); !exec {
		say("%s: VOLUME is not a JSON list", s.name)
	}
	health, ok := s.last("HEALTHCHECK")
	command, isCommand := strings.CutPrefix(health.rest, "CMD ")
	words, exec := instruction{rest: strings.TrimSpace(command)}.exec()
	switch {
	case !ok:
		say("%s: no HEALTHCHECK", s.name)
	case s.name == "watchdog" && health.rest == "NONE":
	case !isCommand || !exec:
		say("%s: HEALTHCHECK is not in exec form", s.name)
	case !slices.Equal(words[1:], []string{"healthcheck"}):
		say("%s: HEALTHCHECK runs %q", s.name, words)
	default:
		for _, flag := range []string{"interval", "timeout", "start-period", "retries"} {
			if _, ok := health.flag(flag); !ok {
				say("%s: HEALTHCHECK without --%s", s.name, flag)
			}
		}
	}
	labels := ""
	for _, l := range s.all("LABEL") {
		labels += " " + l.rest
	}
	for _, label := range []string{"title", "description", "licenses", "version", "revision"} {
		if !strings.Contains(labels, "org.opencontainers.image."+label+"=") {
			say("%s: no label %s", s.name, label)
		}
	}
}
