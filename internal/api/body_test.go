package api

import (
	"errors"
	"strings"
	"testing"
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
