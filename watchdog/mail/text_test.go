package mail

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"karui/watchdog/event"
	"karui/watchdog/settings"
)

var update = flag.Bool("update", false, "write the golden files anew")

var languages = []string{settings.English, settings.Japanese}

func TestTextsAreAsInGoldenFiles(t *testing.T) {
	wanted := make(map[string]bool)
	for name, e := range variants() {
		for _, language := range languages {
			subject, body, err := Text(e, language, nil)
			if err != nil {
				t.Fatalf("%s in %s: %v", name, language, err)
			}
			got := "Subject: " + subject + "\n\n" + body
			file := filepath.Join("testdata", "golden", name+"."+language+".txt")
			wanted[file] = true
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v (run with -update)", err)
			}
			if got != string(want) {
				t.Errorf("%s differs (run with -update and look at the difference):\n%s", file, got)
			}
		}
	}
	files, err := filepath.Glob("testdata/golden/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !wanted[file] {
			t.Errorf("%s belongs to no event", file)
		}
	}
}

func TestSubjectsBeginWithTheStateInBothLanguages(t *testing.T) {
	for name, e := range variants() {
		for _, language := range languages {
			subject, _, err := Text(e, language, nil)
			if err != nil {
				t.Fatal(err)
			}
			prefix := "[karui] shop " + states[e.Kind] + " "
			if states[e.Kind] == "" || !strings.HasPrefix(subject, prefix) || len(subject) < len(prefix)+5 {
				t.Errorf("%s in %s: %q", name, language, subject)
			}
			if japanese := !isASCII(subject); japanese != (language == settings.Japanese) {
				t.Errorf("%s in %s: %q", name, language, subject)
			}
		}
	}
}

// What every mail has to say, whatever the language.
func TestNothingIsLeftOut(t *testing.T) {
	for name, e := range variants() {
		for _, language := range languages {
			_, body, err := Text(e, language, nil)
			if err != nil {
				t.Fatal(err)
			}
			joined := strings.Join(strings.Fields(body), "")
			want := []string{e.Site, e.ID, "2026-03-08 12:34:56 UTC", e.ETagBefore, e.ETagAfter}
			for _, p := range e.Probes {
				want = append(want, p.URL, p.Text)
			}
			for _, p := range e.Controls {
				want = append(want, p.URL, p.Text)
			}
			if e.Origin != nil {
				want = append(want, e.Origin.URL, e.Origin.Text)
			}
			for _, c := range e.Calls {
				want = append(want, c.Action, c.RequestID, c.Outcome)
			}
			for _, c := range e.Commands {
				want = append(want, "\n    "+c.Line+"\n")
			}
			for _, w := range e.Warnings {
				want = append(want, w.Text, w.Hint)
			}
			if f := e.Failure; f != nil {
				want = append(want, f.Kind, f.Text, f.Hint)
			}
			d := e.Distribution
			want = append(want, d.ID, d.Group, d.Proxy, d.Direct)
			if !e.DegradedSince.IsZero() {
				want = append(want, e.DegradedSince.Format("2006-01-02 15:04:05 UTC"))
			}
			if len(e.Probes) > 0 {
				want = append(want, e.Since.Format("2006-01-02 15:04:05 UTC"))
			}
			if e.AfterRestore == settings.Invalidate {
				want = append(want, e.InvalidatePaths[0], "MaxTTL", "DefaultTTL")
			}
			if e.Actor == event.ActorPerson && e.Kind != event.SwapFailed {
				want = append(want, e.Person)
			}
			for _, w := range want {
				found := strings.Contains(strings.ToLower(joined), strings.ToLower(strings.Join(strings.Fields(w), "")))
				if strings.HasPrefix(w, "\n") {
					found = strings.Contains(body, w) // to be copied as it is
				}
				if !found {
					t.Errorf("%s in %s lacks %q", name, language, w)
				}
			}
		}
	}
}

// The first lines are what a phone shows without scrolling.
func TestWhatToDoComesFirst(t *testing.T) {
	labels := map[string][]string{settings.English: {"Viewers: ", "To do: "}, settings.Japanese: {"閲覧者への影響: ", "必要な対応: "}}
	commands := map[string]string{
		"manual_awaited": "karui-watchdog degrade shop", "manual_awaited-restore": "karui-watchdog restore shop",
		"capped": "karui-watchdog restore shop", "capped-degrade": "karui-watchdog degrade shop", "degrade-manual-restore": "karui-watchdog restore shop",
	}
	for name, e := range variants() {
		for _, language := range languages {
			_, body, err := Text(e, language, nil)
			if err != nil {
				t.Fatal(err)
			}
			head, _, found := strings.Cut(body, map[string]string{settings.English: "TIMES", settings.Japanese: "■ 時刻"}[language])
			if !found || strings.Count(head, "\n") > 20 {
				t.Errorf("%s in %s: %d lines before the details", name, language, strings.Count(head, "\n"))
			}
			for _, label := range labels[language] {
				if !strings.Contains(head, label) {
					t.Errorf("%s in %s: no %q in\n%s", name, language, label, head)
				}
			}
			if command := commands[name]; command != "" && !strings.Contains(head, "\n    "+command+"\n") {
				t.Errorf("%s in %s: no command in\n%s", name, language, head)
			}
		}
	}
}

func TestFormAndMissingFields(t *testing.T) {
	events := variants()
	for _, kind := range append(event.Kinds(), "from_a_later_version") {
		events["bare "+string(kind)] = event.Event{ID: "x", Kind: kind, Site: "shop", At: noon}
		for _, want := range []event.Order{event.OrderProxy, event.OrderDirect} {
			events["bare "+string(kind)+" "+string(want)] = event.Event{ID: "x", Kind: kind, Site: "shop", At: noon, Want: want, After: want, Probes: []event.Probe{{}}}
		}
	}
	for name, e := range events {
		for _, language := range languages {
			subject, body, err := Text(e, language, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, bad := range []string{"<no value>", "<nil>", "%!", "()", "（）", "  \n", "\n\n\n", "\t", "..\n", "。。", "( ", " .\n", " ,"} {
				if strings.Contains(subject+"\n"+body, bad) {
					t.Errorf("%s in %s holds %q:\n%s\n%s", name, language, bad, subject, body)
				}
			}
			if strings.Contains(body, "0001-") {
				t.Errorf("%s in %s tells a time that is not known:\n%s", name, language, body)
			}
			for line := range strings.Lines(body) {
				line = strings.TrimSuffix(line, "\n")
				if textCells(line) > columns+orphan && strings.ContainsAny(strings.TrimSpace(line), " 。") && !strings.HasPrefix(line, "    ") {
					t.Errorf("%s in %s: %d columns: %s", name, language, textCells(line), line)
				}
			}
		}
	}
}

func TestTimesAreShownInTheZoneAndInUTC(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	for _, tt := range []struct {
		language string
		zone     *time.Location
		want     string
	}{
		{settings.English, nil, "2026-03-08 12:34:56 UTC"},
		{settings.Japanese, nil, "2026-03-08 21:34:56 JST (2026-03-08 12:34:56 UTC)"},
		{settings.English, berlin, "2026-03-08 13:34:56 CET (2026-03-08 12:34:56 UTC)"},
		{settings.Japanese, berlin, "2026-03-08 13:34:56 CET (2026-03-08 12:34:56 UTC)"},
	} {
		_, body, err := Text(sample(event.Degrade), tt.language, tt.zone)
		if err != nil || !strings.Contains(body, "  "+tt.want+"\n") {
			t.Errorf("%s %v: no %q (%v) in\n%s", tt.language, tt.zone, tt.want, err, body)
		}
	}
}

func TestALateMailSaysSo(t *testing.T) {
	for language, want := range map[string]string{settings.English: "1 h 2 min late", settings.Japanese: "1時間2分遅れて"} {
		_, body, err := textAt(sample(event.Degrade), language, nil, noon.Add(62*time.Minute))
		if err != nil || !strings.Contains(body, want) {
			t.Errorf("%v: no %q in\n%s", err, want, body)
		}
		_, body, err = textAt(sample(event.Degrade), language, nil, noon.Add(2*time.Minute))
		if err != nil || strings.Contains(body, "late:") || strings.Contains(body, "遅れて") {
			t.Errorf("%v: two minutes are told in\n%s", err, body)
		}
	}
}

func TestWhatViewersSee(t *testing.T) {
	up, down := []event.Probe{{OK: true}}, []event.Probe{{}}
	silent := &event.Probe{}
	for _, tt := range []struct {
		name string
		e    event.Event
		want string
	}{
		{"degraded", event.Event{Kind: event.Degrade, After: event.OrderDirect, Probes: down}, seeOriginals},
		{"degraded and the origin gone since", event.Event{Kind: event.Reminder, After: event.OrderDirect, Probes: down, Origin: silent}, seeRisk},
		{"restored", event.Event{Kind: event.Restore, After: event.OrderProxy, Up: true, Probes: up}, seeLighter},
		{"degrade failed", event.Event{Kind: event.SwapFailed, Want: event.OrderDirect, After: event.OrderProxy, Probes: down}, seeFailover},
		{"degrade failed, nothing read", event.Event{Kind: event.SwapFailed, Want: event.OrderDirect, Probes: down}, seeFailover},
		{"restore failed", event.Event{Kind: event.SwapFailed, Want: event.OrderProxy, After: event.OrderDirect, Up: true, Probes: up}, seeOriginals},
		{"restore failed, nothing read", event.Event{Kind: event.SwapFailed, Want: event.OrderProxy, Up: true, Probes: up}, seeOriginals},
		{"degrade by hand failed, no round", event.Event{Kind: event.SwapFailed, Want: event.OrderDirect, Actor: event.ActorPerson}, seeUnknown},
		{"degrade awaited", event.Event{Kind: event.ManualAwaited, Want: event.OrderDirect, After: event.OrderProxy, Probes: down}, seeFailover},
		{"both down", event.Event{Kind: event.OriginSilent, After: event.OrderProxy, Probes: down, Origin: silent}, seeRisk},
		{"drift to the proxy while it is down", event.Event{Kind: event.Drift, After: event.OrderProxy, Probes: down}, seeFailover},
		{"drift to the proxy while it is up", event.Event{Kind: event.Drift, After: event.OrderProxy, Up: true, Probes: up}, seeLighter},
		{"drift to elsewhere", event.Event{Kind: event.Drift, Probes: up, Up: true}, seeUnknown},
		{"rehearsal", event.Event{Kind: event.Rehearsal}, seeNotTold},
	} {
		if got := (view{Event: tt.e}).Viewers(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A rehearsal that found much wrong sends the same mail as one that found nothing: it
// must not say that all is well.
func TestRehearsalMailSaysNothingAboutHealth(t *testing.T) {
	e := sample(event.Rehearsal)
	e.Person = "kei"
	for language, want := range map[string]struct {
		subject string
		says    []string
	}{
		settings.English:  {"this is a test mail, it says nothing about health", []string{"sent by a rehearsal (kei)", "says nothing about the health of the site"}},
		settings.Japanese: {"テストメールです（稼働状況の通知ではありません）", []string{"リハーサル（kei）から送信されたテストメールです", "稼働状況（正常・異常）は示していません"}},
	} {
		subject, body, err := Text(e, language, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(subject, want.subject) {
			t.Errorf("subject %q", subject)
		}
		text := strings.Join(strings.Fields(body), " ") // as if no line had been broken
		if language == settings.Japanese {
			text = strings.Join(strings.Fields(body), "")
		}
		for _, part := range want.says {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %q:\n%s", language, part, body)
			}
		}
		for _, claim := range []string{"othing happened", "othing is wrong", "not affected", "異常はありません", "異常は発生していません", "影響:ありません"} {
			if strings.Contains(subject+text, claim) {
				t.Errorf("%s claims %q:\n%s", language, claim, body)
			}
		}
	}
}
