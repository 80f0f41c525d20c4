package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"mime/quotedprintable"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	double "karui/internal/cloudfront"
	"karui/watchdog/event"
	"karui/watchdog/mail"
	"karui/watchdog/settings"
)

// commandsIn lists the command lines that a mail names, each an indented line of its own.
func commandsIn(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "    karui-watchdog ") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// shellWords splits a line as a shell does, as far as quoted needs it.
func shellWords(line string) []string {
	var out []string
	word, open, any := "", false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			open, any = !open, true
		case c == '\\' && !open && i+1 < len(line):
			i++
			word, any = word+string(line[i]), true
		case c == ' ' && !open:
			if any {
				out = append(out, word)
			}
			word, any = "", false
		default:
			word, any = word+string(c), true
		}
	}
	if any {
		out = append(out, word)
	}
	return out
}

// understood tells why this program would not take a command line; nil if it would.
func understood(line string) error {
	words := shellWords(line)
	if len(words) < 2 || words[0] != "karui-watchdog" {
		return fmt.Errorf("%q is no command line of this program", line)
	}
	cmd, rest, err := newRoot().Find(words[1:])
	if err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	if !cmd.Runnable() || cmd.HasSubCommands() {
		return fmt.Errorf("%s: %q is no command that does something", line, cmd.CommandPath())
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	return nil
}

// Every command line that a mail names is one that this program takes, of every kind of
// mail, in both languages, wherever the configuration lies.
func TestMailsNameCommandsThatExist(t *testing.T) {
	lines := map[string]func(verb, site string) string{
		"the default":  (&configFlag{}).commandLine,
		"another file": (&configFlag{path: "/srv/watch dog's/" + strings.Repeat("long/", 20) + "watchdog.yaml"}).commandLine,
	}
	for name, line := range lines {
		var all []event.Command
		for _, purpose := range []string{event.ForStatus, event.ForDegrade, event.ForRestore, event.ForRehearse} {
			all = append(all, event.Command{For: purpose, Line: line(purpose, "shop")})
		}
		for _, kind := range event.Kinds() {
			for _, want := range []event.Order{event.OrderProxy, event.OrderDirect} {
				for _, language := range []string{settings.English, settings.Japanese} {
					e := event.Event{ID: "x", Kind: kind, Site: "shop", At: time.Unix(0, 0), Want: want, Commands: all}
					_, text, err := mail.Text(e, language, nil)
					if err != nil {
						t.Fatal(err)
					}
					found := commandsIn(text)
					if len(found) < len(all) {
						t.Errorf("%s, %s in %s: only %q in\n%s", name, kind, language, found, text)
					}
					for _, line := range found {
						if err := understood(line); err != nil {
							t.Errorf("%s, %s in %s: %v", name, kind, language, err)
						}
					}
				}
			}
		}
	}
	// As they read without a configuration's own way to name commands.
	files, err := filepath.Glob("../../watchdog/mail/testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no mails to look at: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandsIn(string(text)) {
			if err := understood(line); err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
			}
		}
	}
}

// commandsOf lists the command lines of a mail as it was sent.
func commandsOf(m double.Message) ([]string, error) {
	if len(m.Raw) == 0 {
		return commandsIn(m.Text), nil
	}
	msg, err := netmail.ReadMessage(strings.NewReader(string(m.Raw)))
	if err != nil {
		return nil, err
	}
	body := msg.Body
	switch strings.ToLower(msg.Header.Get("Content-Transfer-Encoding")) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(body)
	return commandsIn(string(text)), err
}

// mailsAreUnderstood checks the command lines of all mails that were sent.
func (l *lab) mailsAreUnderstood() {
	l.t.Helper()
	for _, m := range l.Messages() {
		found, err := commandsOf(m)
		if err != nil || len(found) == 0 {
			l.t.Errorf("%s: names %q: %v", header(m, "Subject"), found, err)
		}
		for _, line := range found {
			if err := understood(line); err != nil {
				l.t.Errorf("%s: %v", header(m, "Subject"), err)
			}
		}
	}
}

// The commands of a real mail run as they stand there.
func TestStatusOfOneSite(t *testing.T) {
	l := newLab(t)
	l.proxy.stop()
	if code, _, stderr := l.run("check"); code != 1 || len(l.Messages()) != 1 {
		t.Fatalf("%d %s", code, stderr)
	}
	found, err := commandsOf(l.Messages()[0])
	if err != nil || len(found) == 0 || !strings.HasPrefix(found[0], "karui-watchdog status shop") {
		t.Fatalf("%q %v", found, err)
	}
	code, stdout, stderr := l.run("status", "shop")
	if code != 0 || !strings.Contains(stdout, "shop") || !strings.Contains(stdout, "degraded since") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	if code, _, stderr := l.run("status", "shpo"); code != 2 || !strings.Contains(stderr, `no site has the id "shpo"; the configuration has shop`) {
		t.Errorf("%d %s", code, stderr)
	}
	if code, _, stderr := commandLine(t, "", "status", "shop", "blog"); code != 2 || !strings.Contains(stderr, `"blog"`) || strings.Contains(stderr, "unknown command") {
		t.Errorf("%d %s", code, stderr)
	}
	if code, _, stderr := commandLine(t, "", "check", "shop"); code != 2 || !strings.Contains(stderr, `karui-watchdog check takes no argument, but "shop" is one`) {
		t.Errorf("%d %s", code, stderr)
	}
}
