package deb

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Versions of git become ones that dpkg sorts as they came about.
func TestVersions(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("dpkg is not installed")
	}
	called := func(version, epoch string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "scripts/deb", "--version")
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), "VERSION="+version, "SOURCE_DATE_EPOCH="+epoch)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		return strings.TrimSpace(string(out))
	}
	const early, late = "1767225600", "1767225601"
	for version, want := range map[string]string{
		"v1.2.3":             "1.2.3",
		"1.2.3":              "1.2.3",
		"v1.2.3-rc1":         "1.2.3~rc1",
		"v1.2.3-dirty":       "1.2.3+dirty",
		"v1.2.3-4-gabcdef0":  "1.2.3+4.gabcdef0",
		"v1.2-rc2-1-gabcdef": "1.2~rc2+1.gabcdef",
		"0123456":            "0~20260101000000.0123456",
		"abcdef0-dirty":      "0~20260101000000.abcdef0+dirty",
		"development":        "0~20260101000000.development",
		"a b;c":              "0~20260101000000.a.b.c",
	} {
		if got := called(version, early); got != want {
			t.Errorf("%s is called %s, want %s", version, got, want)
		}
	}
	var before string
	for _, v := range []string{called("fedcba9", early), called("0123456", late), called("v0.1.0-rc1", early), called("v0.1.0", early), called("v0.1.0-2-gabc", early), called("v0.1.1", early)} {
		if before != "" && exec.CommandContext(t.Context(), "dpkg", "--compare-versions", before, "lt", v).Run() != nil {
			t.Errorf("%s does not come before %s", before, v)
		}
		before = v
	}
}

// What dpkg runs is for the smallest of shells, and stops at the first thing that fails.
func TestScriptsOfMaintainers(t *testing.T) {
	for _, name := range []string{"postinst", "prerm", "postrm"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "#!/bin/sh\n") || !strings.Contains(string(text), "\nset -e\n") {
			t.Errorf("%s is not a plain sh script with set -e", name)
		}
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		for _, both := range []string{"karui", "karui-watchdog"} {
			list, err := os.ReadFile(both + ".yaml")
			if err != nil || !strings.Contains(string(list), ": deploy/deb/"+name+"\n") {
				t.Errorf("%s does not run %s: %v", both, name, err)
			}
		}
	}
}
