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
