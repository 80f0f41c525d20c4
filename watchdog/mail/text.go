package mail

import (
	"embed"
	"fmt"
	"strings"
	"sync"
	"text/template"
	"time"

	"karui/watchdog/event"
	"karui/watchdog/settings"
)

//go:embed templates
var templateFiles embed.FS

// templates of a language, parsed once.
var templates = sync.OnceValues(func() (map[string]*template.Template, error) {
	out := make(map[string]*template.Template)
	for _, language := range []string{settings.English, settings.Japanese} {
		t, err := template.New("").Option("missingkey=error").ParseFS(templateFiles, "templates/"+language+"*.tmpl")
		if err != nil {
			return nil, fmt.Errorf("read mail templates: %w", err)
		}
		out[language] = t
	}
	return out, nil
})

// states are the words that begin a subject, the same in all languages, so that
// filters and people who sort mails by eye find them. They are the titles of the
// runbook's entries, too.
var states = map[event.Kind]string{
	event.Degrade:       "DEGRADED",
	event.Restore:       "RESTORED",
	event.SwapFailed:    "SWAP FAILED",
	event.ManualAwaited: "ACTION NEEDED",
	event.OriginSilent:  "DOWN",
	event.Drift:         "DRIFT",
	event.Flapping:      "FLAPPING",
	event.Capped:        "CAPPED",
	event.Reminder:      "STILL DEGRADED",
	event.Rehearsal:     "REHEARSAL",
}

// Text makes the subject and the body of an event's mail, in English ("en") or
// Japanese ("ja"). The subject is one line; the body has lines of at most about 72
// columns, ending in \n. zone is shown beside UTC; nil means JST in Japanese, and
// UTC alone in English. An event of an unknown kind, from a later version, is told
// by its fields.
func Text(e event.Event, language string, zone *time.Location) (subject, body string, err error) {
	return textAt(e, language, zone, time.Time{})
}

// textAt also says that the mail comes late, if the time now shows it.
func textAt(e event.Event, language string, zone *time.Location, now time.Time) (subject, body string, err error) {
	all, err := templates()
	if err != nil {
		return "", "", err
	}
	t, ok := all[language]
	if !ok {
		language, t = settings.English, all[settings.English]
	}
	v := view{Event: clean(e), language: language, zone: zone, now: now}
	if v.zone == nil && language == settings.Japanese {
		v.zone = time.FixedZone("JST", 9*60*60)
	}
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, "subject", v); err != nil {
		return "", "", fmt.Errorf("make a mail's subject: %w", err)
	}
	state := states[v.Kind]
	if state == "" {
		state = strings.ToUpper(strings.ReplaceAll(string(v.Kind), "_", " "))
	}
	subject = oneLine("[karui] "+v.Site+" "+state+" "+b.String(), 200)
	b.Reset()
	if err := t.ExecuteTemplate(&b, "body", v); err != nil {
		return "", "", fmt.Errorf("make a mail's body: %w", err)
	}
	text := tidy(b.String())
	if language == settings.Japanese {
		text = perSentence(text)
	}
	return subject, wrap(text), nil
}

// tidy leaves one empty line at most between paragraphs, none at the ends.
func tidy(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\n")
		if line == "" && (len(out) == 0 || out[len(out)-1] == "") {
			continue
		}
		out = append(out, line)
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n") + "\n"
}

// perSentence gives each Japanese sentence a line of its own, as is the custom in
// mails: running text breaks in the middle of words.
func perSentence(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		rest := strings.TrimSuffix(line, "\n")
		for {
			i := strings.Index(rest, "。") + len("。")
			if i < len("。") || i == len(rest) {
				break
			}
			b.WriteString(rest[:i] + "\n")
			rest = indent + rest[i:]
		}
		b.WriteString(rest + "\n")
	}
	return b.String()
}
