package command

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestFlagsSayWhatTheyTake(t *testing.T) {
	for line, want := range map[string]string{
		"--wait 5":       `program: --wait is "5", but it must be a number with a unit, such as 300ms, 5s or 1h30m: for seconds, write 5s`,
		"--for soon":     `program: --for is "soon", but it must be a number with a unit, such as 90m, 6h or 3d`,
		"--for 3":        `program: --for is "3", but it must be a number with a unit, such as 90m, 6h or 3d: for seconds, write 3s`,
		"--wait soon":    `program: --wait is "soon", but it must be a number with a unit, such as 300ms, 5s or 1h30m`,
		"-n many":        `program: --number is "many", but it must be a whole number, such as 3`,
		"--number=1e99":  `program: --number is "1e99", but it must be a whole number, such as 3`,
		"--levels 1,two": `program: --levels is "1,two", but it must be whole numbers with commas between, such as 1,2,3`,
		"--loud=perhaps": `program: --loud is "perhaps", but it must be true or false`,
		"--nosuch":       "program: unknown flag: --nosuch",
		"--lvels 1":      "program: unknown flag: --lvels, did you mean --levels?",
		"--Loud":         "program: unknown flag: --Loud, did you mean --loud?",
		"-x":             "program: unknown shorthand flag: 'x' in -x",
		"--wait":         "program: flag needs an argument: --wait",
	} {
		root := Group(&cobra.Command{Use: "program"})
		try := &cobra.Command{Use: "try", RunE: func(*cobra.Command, []string) error { return nil }}
		try.Flags().Duration("wait", time.Second, "")
		try.Flags().Var(new(Duration), "for", "")
		try.Flags().IntP("number", "n", 1, "")
		try.Flags().IntSlice("levels", nil, "")
		try.Flags().Bool("loud", false, "")
		root.AddCommand(try)
		var stdout, stderr bytes.Buffer
		code := Run(context.Background(), root, append([]string{"try"}, strings.Fields(line)...), &stdout, &stderr)
		if code != ExitUsage || stderr.String() != want+"\nSee 'program try --help'.\n" {
			t.Errorf("%s: %d %q", line, code, stderr.String())
		}
	}
}
