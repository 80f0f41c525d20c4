package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// judge compares pictures with Butteraugli.
type judge struct{ butteraugli, dwebp, dir string }

func newJudge(dir string) (judge, error) {
	j := judge{dir: dir}
	var err error
	if j.butteraugli, err = exec.LookPath("butteraugli_main"); err != nil {
		return j, errNoPeer
	}
	if j.dwebp, err = exec.LookPath("dwebp"); err != nil {
		return j, errNoPeer
	}
	return j, nil
}

// score is Butteraugli's 3-norm between an original and its variant: an average over the picture in which the worst
// places count most.
func (j judge) score(ctx context.Context, jpeg, webp []byte) (float64, error) {
	original, variant := filepath.Join(j.dir, "original.jpg"), filepath.Join(j.dir, "variant.webp")
	decoded := filepath.Join(j.dir, "variant.png")
	for name, body := range map[string][]byte{original: jpeg, variant: webp} {
		if err := os.WriteFile(name, body, 0o600); err != nil {
			return 0, fmt.Errorf("write picture to compare: %w", err)
		}
	}
	if out, err := exec.CommandContext(ctx, j.dwebp, "-quiet", variant, "-o", decoded).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("dwebp: %w: %s", err, out)
	}
	out, err := exec.CommandContext(ctx, j.butteraugli, original, decoded).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("butteraugli_main: %w: %s", err, out)
	}
	return parseButteraugli(string(out))
}

func parseButteraugli(out string) (float64, error) {
	for line := range strings.Lines(out) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "3-norm" {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return 0, fmt.Errorf("parse score: %w", err)
			}
			return v, nil
		}
	}
	return 0, fmt.Errorf("parse score: no 3-norm in %q", out)
}
