package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"

	"karui/internal/config"
)

func TestExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		code   int
		stderr string
	}{
		"good":          {nil, 0, ""},
		"failed":        {errors.New("disk is gone"), 1, "program: disk is gone\n"},
		"reported":      {fmt.Errorf("two of three: %w", ErrReported), 1, ""},
		"misuse, said":  {fmt.Errorf("two of three: %w", ErrMisused), 2, ""},
		"misuse":        {Usage("no %s", "file"), 2, "program: no file\nSee 'program try --help'.\n"},
		"configuration": {fmt.Errorf("%w", config.Invalid("a.b", 1, "2")), 2, "a.b is 1, but it must be 2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := Group(&cobra.Command{Use: "program"})
			root.AddCommand(&cobra.Command{Use: "try", RunE: func(*cobra.Command, []string) error { return test.err }})
			var stdout, stderr bytes.Buffer
			if code := Run(context.Background(), root, []string{"try"}, &stdout, &stderr); code != test.code || stderr.String() != test.stderr || stdout.Len() > 0 {
				t.Errorf("%d %q %q", code, stderr.String(), stdout.String())
			}
		})
	}
}

// An argument that nothing takes is no unknown command, except where there are commands.
func TestStrayArgument(t *testing.T) {
	for _, test := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"none", "shop"}, "program: program none takes no argument, but \"shop\" is one\nSee 'program none --help'.\n"},
		{[]string{"own", "shop"}, "program: say on or off\nSee 'program own --help'.\n"},
		{[]string{"one", "a", "b"}, "program: accepts 1 arg(s), received 2\nSee 'program one --help'.\n"},
		{[]string{"group", "shop"}, "program: unknown command \"shop\"\nSee 'program group --help'.\n"},
		{[]string{"shop"}, "program: unknown command \"shop\"\nSee 'program --help'.\n"},
	} {
		root, group := Group(&cobra.Command{Use: "program"}), Group(&cobra.Command{Use: "group"})
		body := func(*cobra.Command, []string) error { return nil }
		group.AddCommand(&cobra.Command{Use: "below", RunE: body})
		own := func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return Usage("say on or off")
			}
			return nil
		}
		root.AddCommand(group, &cobra.Command{Use: "own", Args: own, RunE: body}, &cobra.Command{Use: "none", Args: cobra.NoArgs, RunE: body}, &cobra.Command{Use: "one", Args: cobra.ExactArgs(1), RunE: body})
		var stdout, stderr bytes.Buffer
		if code := Run(context.Background(), root, test.args, &stdout, &stderr); code != ExitUsage || stderr.String() != test.stderr || stdout.Len() > 0 {
			t.Errorf("%q: %d %q %q", test.args, code, stderr.String(), stdout.String())
		}
	}
}
