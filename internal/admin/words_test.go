package admin

import (
	"errors"
	"strings"
	"testing"

	"karui/internal/api"
	"karui/internal/command"
)

// What was typed wrong is wrong usage, and remedies are for who types.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		e     *api.Error
		usage bool
		want  string
	}{
		{
			api.Invalid(`level is "bogus"`, "send auto, a number from 0 to 3, or one of full, lean"), true,
			`level is "bogus": say auto, a number from 0 to 3, or one of full, lean`,
		},
		{
			api.NotFound(`there is no site "nix"`, "send one that GET /api/v1/purge lists"), true,
			"there is no site \"nix\": name one of those that `karui place` lists",
		},
		{api.NotFound(`there is no site "nix"`, "GET /stats lists them"), true, "there is no site \"nix\": `karui place` lists them"},
		{
			api.NotFound(`no site has a place "x"`, "`karui place` lists them (GET /api/v1/places)"), true,
			"no site has a place \"x\": `karui place` lists them",
		},
		{
			api.NotFound("there is nothing at /api/v1/new", "docs/metrics.md lists what there is"), false,
			"karui at http://h refused: there is nothing at /api/v1/new: docs/metrics.md lists what there is",
		},
		{api.Conflict("it is the last one", "let another in"), false, "karui at http://h refused: it is the last one: let another in"},
		{api.Forbidden("the token lacks a right", ""), false, "karui at http://h refused: the token lacks a right"},
	} {
		err := refusal("http://h", test.e)
		if err.Error() != test.want || command.IsUsage(err) != test.usage {
			t.Errorf("%q, usage %t; want %q, %t", err, command.IsUsage(err), test.want, test.usage)
		}
		if e := (*api.Error)(nil); !errors.As(err, &e) || e.Code != test.e.Code {
			t.Errorf("%q does not hold the error of the API", err)
		}
	}
	err := refusal("http://h", &api.Error{Code: api.CodeUnauthorized, Message: "a token is needed", Remedy: "send one of admin.tokens in Authorization: Bearer"})
	if command.IsUsage(err) || !strings.Contains(err.Error(), "--token-file") || strings.Contains(err.Error(), "Bearer") {
		t.Errorf("%v", err)
	}
}
