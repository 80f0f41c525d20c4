package api

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBodyThatCannotBeRead(t *testing.T) {
	type change struct {
		For   string   `json:"for,omitempty" example:"90m"`
		Level int      `json:"level" example:"2"`
		Paths []string `json:"paths"`
		Deep  struct {
			On bool `json:"on"`
		} `json:"deep"`
		hidden string
	}
	for body, want := range map[string]string{
		`{"for": 5}`:            `for is a number | send a string, such as "for": "90m"`,
		`{"for": -5.5}`:         `for is a number | send a string, such as "for": "90m"`,
		`{"for": {"a": 1}}`:     `for is an object | send a string, such as "for": "90m"`,
		`{"level": "2"}`:        `level is a string | send a number, such as "level": 2`,
		`{"level": 2.5}`:        `level is a number | send a number, such as "level": 2`,
		`{"paths": true}`:       `paths is true or false | send an array`,
		`{"deep": {"on": "x"}}`: `deep.on is a string | send true or false`,
		`{"fro": "5m"}`:         `there is no field "fro" | send deep, for, level, paths`,
		`{"hidden": "5m"}`:      `there is no field "hidden" | send deep, for, level, paths`,
		`[1]`:                   `the body is an array | send an object with deep, for, level, paths`,
		`"x"`:                   `the body is a string | send an object with deep, for, level, paths`,
		`{"for": 5m}`:           `the body is no JSON at byte 10: invalid character 'm' after object key:value pair | `,
		`{"for": "5`:            `the body ends within its JSON value | `,
		`{} {}`:                 `the body holds more than one JSON value | `,
	} {
		var v change
		err := (&Call{body: []byte(body)}).Decode(&v)
		refused := (*Error)(nil)
		if !errors.As(err, &refused) || refused.Status != 422 {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if got := refused.Message + " | " + refused.Remedy; got != want {
			t.Errorf("%s:\n got %s\nwant %s", body, got, want)
		}
		if strings.Contains(refused.Message, "change") || v.hidden != "" {
			t.Errorf("%s names a type: %s", body, refused.Message)
		}
	}
	var list []string
	if err := (&Call{body: []byte(`{"a": 1}`)}).Decode(&list); err == nil || strings.Contains(err.Error(), "Go") {
		t.Errorf("%v", err)
	}
}

// Text that the decoder would replace without a word is refused.
func TestTextThatCannotBeRead(t *testing.T) {
	for body, want := range map[string]string{
		"{\"prefixes\":[\"/api/\x8e\xca\x90\x5e/\"]}":     "the body is no UTF-8 at byte 20: 0x8e", // Shift_JIS
		"{\"prefixes\":[\"/\xed\xa0\x80\"]}":              "the body is no UTF-8 at byte 16: 0xed",
		"{\"prefixes\":[\"/a\xff\"]}":                     "the body is no UTF-8 at byte 17: 0xff",
		`{"prefixes":["/\ud800"]}`:                        `the body holds half a character at byte 16: \ud800`,
		`{"prefixes":["/\uDC00"]}`:                        `half a character at byte 16: \uDC00`,
		`{"prefixes":["/\ud83d\u0041"]}`:                  "half a character",
		`{"prefixes":["/\ud83d\ud83d\ude00"]}`:            "half a character",
		`{"prefixes":["/\ude00\ud83d"]}`:                  "half a character",
		`{"prefixes":["/\ud83d\ude00\ud83d"]}`:            "half a character",
		`{"\ud800":[]}`:                                   "half a character",
		`{"prefixes":["/\ud83d\ude00", "/\ufffd\n"]}`:     "",
		`{"prefixes":["/\\ud800", "/\\\\", "/\"\uFFFD"]}`: "",
		"{\"prefixes\":[\"/\ufffd\U0001f600\"]}":          "",
	} {
		var v struct {
			Prefixes []string `json:"prefixes"`
		}
		err := (&Call{body: []byte(body)}).Decode(&v)
		if want == "" && err == nil && len(v.Prefixes) > 0 {
			continue
		}
		refused := (*Error)(nil)
		if !errors.As(err, &refused) || want == "" || refused.Status != 422 || !strings.Contains(refused.Message, want) || !strings.Contains(refused.Remedy, "percent escapes") {
			t.Errorf("%q: %+v, %v", body, v, err)
		}
	}
}

// FuzzText: what is not refused is read as it was sent, which is to say that it has a
// replacement character only where one was sent.
func FuzzText(f *testing.F) {
	for _, s := range []string{`"/a"`, `"\ud800"`, `"\ud83d\ude00"`, `"\\ud800"`, "\"\xff\"", `"\uFFFD"`, `"\u`, `"\ud83d\u`, `\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var v string
		if json.Unmarshal([]byte(body), &v) != nil {
			_ = unclear([]byte(body)) // it must not panic
			return
		}
		sent := strings.Contains(body, string(utf8.RuneError)) || strings.Contains(strings.ToLower(body), `\ufffd`)
		err := unclear([]byte(body))
		if replaced := strings.ContainsRune(v, utf8.RuneError) && !sent; replaced && err == nil {
			t.Errorf("%q is read as %q", body, v)
		}
		if err != nil && !strings.ContainsRune(v, utf8.RuneError) {
			t.Errorf("%q is refused: %v", body, err)
		}
	})
}
