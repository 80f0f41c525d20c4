package admin

import (
	"fmt"
	"strings"

	"karui/internal/api"
	"karui/internal/command"
)

// refusal turns an error of the API into one for whoever typed a command. What is
// invalid, or not there, was typed wrong: that is wrong usage. Everything else is said
// to come from the listener at base. The *api.Error stays inside.
func refusal(base string, e *api.Error) error {
	e.Remedy = remedy(e)
	switch e.Code {
	case api.CodeInvalid:
		return command.Usage("%w", e)
	case api.CodeNotFound:
		if !strings.Contains(e.Message, api.Prefix) { // a path that an older karui does not have
			return command.Usage("%w", e)
		}
	}
	return fmt.Errorf("karui at %s refused: %w", base, e)
}

// spoken are remedies for those who send requests, and what they are on a command line.
var spoken = strings.NewReplacer(
	"send one that GET "+api.Prefix+"/purge lists", "name one of those that `karui place` lists",
	"GET /stats lists them", "`karui place` lists them",
	"GET /dial lists the levels", "`karui dial` lists the levels",
	" (GET "+api.Prefix+"/places)", "",
)

// remedy says what to do on a command line.
func remedy(e *api.Error) string {
	if e.Code == api.CodeUnauthorized && strings.Contains(e.Remedy, "Authorization") {
		return "name the file that holds one of admin.tokens with --token-file, or ask as a user who may read karui's configuration, without --admin"
	}
	text := spoken.Replace(e.Remedy)
	if rest, found := strings.CutPrefix(text, "send "); found {
		return "say " + rest
	}
	return text
}
