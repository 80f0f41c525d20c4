package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"karui/internal/config"
)

// forms says how the values of a flag are written, by the type that it has.
var forms = map[string]string{
	"duration": "a number with a unit, such as 300ms, 5s or 1h30m",
	"time":     "a number with a unit, such as 90m, 6h or 3d",
	"int":      "a whole number, such as 3",
	"intSlice": "whole numbers with commas between, such as 1,2,3",
	"bool":     "true or false",
}

// flagError says in words what a flag takes, in place of what the parsers of Go say
// to programmers.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if near := config.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			return Usage("%w, did you mean --%s?", err, near)
		}
	}
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag, value := invalid.GetFlag(), invalid.GetValue()
	form, known := forms[flag.Value.Type()]
	if !known {
		return err
	}
	hint := ""
	if _, missing := time.ParseDuration(value + "s"); (flag.Value.Type() == "duration" || flag.Value.Type() == "time") && missing == nil {
		hint = fmt.Sprintf(": for seconds, write %ss", value)
	}
	return Usage("--%s is %q, but it must be %s%s", flag.Name, value, form, hint)
}
