package mail

import (
	"bytes"
	"encoding/base64"
	"mime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"karui/watchdog/event"
	"karui/watchdog/settings"
)

func composed(t *testing.T, e event.Event, language string, references ...string) []byte {
	t.Helper()
	subject, body, err := Text(e, language, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := compose(draft{
		from: "Karui 監視 <karui@example.com>", to: []string{"ops@example.com", "Boss <boss@example.com>"}, language: language,
		subject: subject, body: body, date: noon.Add(time.Second).In(time.FixedZone("JST", 9*3600)),
		id: messageID(e.ID, "example.com"), references: references, event: e,
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestMailsAreReadAsTheyWereWritten(t *testing.T) {
	for name, e := range variants() {
		for _, language := range languages {
			subject, body, err := Text(e, language, nil)
			if err != nil {
				t.Fatal(err)
			}
			o := open(t, composed(t, e, language))
			if o.subject != subject {
				t.Errorf("%s in %s: subject %q, want %q", name, language, o.subject, subject)
			}
			if o.body != body {
				t.Errorf("%s in %s: body\n%s", name, language, o.body)
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	e := sample(event.Restore)
	o := open(t, composed(t, e, settings.Japanese, "0100018f@email.amazonses.com", messageID(e.ReplyTo, "example.com")))
	want := map[string]string{
		"To":                       `<ops@example.com>, "Boss" <boss@example.com>`,
		"Date":                     "Sun, 08 Mar 2026 12:34:57 +0000",
		"Message-Id":               "<karui." + e.ID + "@example.com>",
		"In-Reply-To":              "<0100018f@email.amazonses.com>",
		"References":               "<0100018f@email.amazonses.com> <karui." + e.ReplyTo + "@example.com>",
		"Auto-Submitted":           "auto-generated",
		"X-Auto-Response-Suppress": "All",
		"Content-Language":         "ja",
		"X-Karui-Event":            e.ID,
		"X-Karui-Kind":             "restore",
		"X-Karui-Site":             "shop",
		"Mime-Version":             "1.0",
	}
	for name, value := range want {
		if got := o.header.Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	from, err := o.header.AddressList("From")
	if err != nil || len(from) != 1 || from[0].Name != "Karui 監視" || from[0].Address != "karui@example.com" {
		t.Errorf("From %v %v", from, err)
	}
	if plain := open(t, composed(t, sample(event.Degrade), settings.English)); plain.header.Get("In-Reply-To") != "" || plain.header.Get("References") != "" {
		t.Errorf("a degrade replies to %v", plain.header)
	}
}

// What programs of the nineties can read: ASCII, short lines, CRLF, whole
// characters in each encoded word.
func TestFormOfTheMessage(t *testing.T) {
	for name, e := range variants() {
		for _, language := range languages {
			raw := composed(t, e, language, messageID(e.ReplyTo, "example.com"))
			head, _, found := bytes.Cut(raw, []byte("\r\n\r\n"))
			if !found {
				t.Fatalf("%s: no end of the headers", name)
			}
			if !isASCII(string(raw)) || bytes.Count(raw, []byte("\n")) != bytes.Count(raw, []byte("\r\n")) || bytes.Count(raw, []byte("\r")) != bytes.Count(raw, []byte("\r\n")) {
				t.Errorf("%s in %s is not ASCII with CRLF", name, language)
			}
			for line := range strings.SplitSeq(string(raw), "\r\n") {
				if len(line) > 76 && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("%s in %s: %d characters: %s", name, language, len(line), line)
				}
			}
			checkSubject(t, string(head))
		}
	}
}

func checkSubject(t *testing.T, head string) {
	t.Helper()
	_, rest, found := strings.Cut(head, "Subject: ")
	if !found {
		t.Fatalf("no subject in %q", head)
	}
	for i, line := range strings.Split(rest, "\r\n") {
		if i > 0 && !strings.HasPrefix(line, " ") {
			break // the next header
		}
		length := len(line)
		if i == 0 {
			length += len("Subject: ")
		}
		if length > 75 {
			t.Errorf("%d characters: %q", length, line)
		}
		if i == 0 && !strings.HasPrefix(line, "[karui] shop ") && !strings.HasPrefix(line, "=?") {
			t.Errorf("the subject begins with %q", line)
		}
		if i > 0 && strings.TrimSpace(line) == "" {
			t.Errorf("an empty line in the subject")
		}
		for _, word := range strings.Fields(line) {
			inner, ok := strings.CutPrefix(word, "=?UTF-8?B?")
			if !ok {
				continue
			}
			text, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
			if err != nil || !utf8.Valid(text) || len(word) > 75 {
				t.Errorf("encoded word %q: %v", word, err)
			}
		}
	}
}

func TestSubjectsOfAllKinds(t *testing.T) {
	for _, subject := range []string{
		"", "short", strings.Repeat("long words ", 20), "[karui] shop DEGRADED プロキシ停止のため", strings.Repeat("漢字", 100),
		"[karui] shop =?UTF-8?B?44GC?= not encoded", "日本語 =?x?= と ASCII " + strings.Repeat("a", 60), "😀" + strings.Repeat("👨‍👩‍👧", 20),
		strings.Repeat("x", 70) + " 日本", "a 日 b 本 c", "ends with a space 日 ",
	} {
		encoded := encodeSubject(subject)
		if !isASCII(encoded) {
			t.Errorf("%q", encoded)
		}
		unfolded := strings.ReplaceAll(encoded, "\r\n", "")
		got, err := new(mime.WordDecoder).DecodeHeader(unfolded)
		if err != nil || got != oneLine(subject, 200) {
			t.Errorf("%q became %q (%v)", subject, got, err)
		}
	}
}

// No field of an event gets out of its place: into a header, another header, or
// a line of its own.
func FuzzInjection(f *testing.F) {
	f.Add("shop\r\nBcc: evil@example.com", "denied\n\nTo do: nothing", "x\r\n\r\nbody", "id\r\nX: y")
	f.Add("=?UTF-8?Q?=0D=0ABcc:_evil@example.com?=", "\x1b[31m\u202egnp.", "\u2028\u2029\u0085", "../../etc/passwd")
	f.Add("\xff\xfe", strings.Repeat("長い", 5000), "\x00", "")
	f.Fuzz(func(t *testing.T, site, text, person, id string) {
		names := []string{
			"Auto-Submitted", "Content-Language", "Content-Transfer-Encoding", "Content-Type", "Date", "From", "In-Reply-To", "Message-Id",
			"Mime-Version", "References", "Subject", "To", "X-Auto-Response-Suppress", "X-Karui-Event", "X-Karui-Kind", "X-Karui-Site",
		}
		e := sample(event.SwapFailed)
		e.ID, e.ReplyTo, e.Site, e.Person, e.Actor = id, id, site, person, event.ActorPerson
		if _, err := newEntry(e, noon, 1); (err == nil) != idForm.MatchString(id) {
			t.Fatalf("id %q: %v", id, err)
		}
		e.ID, e.ReplyTo = "good", "good"
		e.Failure = &event.Failure{Kind: text, Text: text, Hint: person}
		e.Commands[1].Line, e.Distribution.ID, e.ETagAfter, e.Probes[0].Text, e.Calls[0].RequestID = text, text, text, text, text
		e.Kind = event.SwapFailed
		entry, err := newEntry(e, noon, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, language := range languages {
			raw := composed(t, entry.Event, language, messageID("good", "example.com"))
			o := open(t, raw)
			var got []string
			for name := range o.header {
				got = append(got, name)
			}
			slices.Sort(got)
			if !slices.Equal(got, names) {
				t.Fatalf("headers %q", got)
			}
			if strings.ContainsFunc(o.subject, func(r rune) bool { return r < ' ' || r == 0x7f }) || utf8.RuneCountInString(o.subject) > 210 {
				t.Fatalf("subject %q", o.subject)
			}
			if strings.ContainsFunc(o.body, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e }) {
				t.Fatalf("body %q", o.body)
			}
			for line := range strings.SplitSeq(string(raw), "\r\n") {
				if len(line) > 998 {
					t.Fatalf("a line of %d", len(line))
				}
			}
			lower := strings.ToLower(text)
			if strings.HasPrefix(oneLine(lower, 100), "to do:") && strings.Count(o.body, "\nTo do:") > 1 {
				t.Fatalf("a line of its own:\n%s", o.body)
			}
		}
	})
}

func FuzzWrap(f *testing.F) {
	f.Add("プロキシが応答していません。「オリジン」へ切り替えました（自動）。 and then some English words, to see what comes of them in between")
	f.Add("  indented " + strings.Repeat("word ", 40))
	f.Add(strings.Repeat("、", 100))
	f.Fuzz(func(t *testing.T, text string) {
		text = oneLine(text, maxText)
		wrapped := wrap(text + "\n")
		strip := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if strip(wrapped) != strip(text) {
			t.Fatalf("%q became %q", text, wrapped)
		}
		for line := range strings.Lines(wrapped) {
			line = strings.TrimSuffix(line, "\n")
			if textCells(line) > columns+orphan && len(pieces(line)) > 1 {
				t.Fatalf("%d columns: %q", textCells(line), line)
			}
		}
	})
}
