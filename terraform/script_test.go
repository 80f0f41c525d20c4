package terraform_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type source struct {
	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
}

// script is what a module's main.tf gives to its template.
type script struct {
	Config     string            `json:"config"`
	Parameters map[string]string `json:"parameters"`
	Image      string            `json:"image"`
	Package    source            `json:"package"`
	Drain      int               `json:"drain"`
	Group      string            `json:"group"`
	Port       int               `json:"port"`
	Volume     string            `json:"volume"`
	Address    string            `json:"address"`
}

func TestStartScripts(t *testing.T) {
	for _, name := range []string{"terraform", "bash"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	pkg := source{URL: "https://packages.example.com/karui.deb", SHA256: strings.Repeat("0", 64)}
	bucket := source{URL: "s3://packages/karui.deb", SHA256: strings.Repeat("0", 64)}
	const private = "111122223333.dkr.ecr.us-east-1.amazonaws.com/karui:1.0"
	tests := []struct {
		name, module string
		script       script
		has, hasNot  []string
	}{
		{
			"proxy, image", "proxy",
			script{Image: "registry.example.com/karui:1.0", Drain: 30},
			[]string{"docker run", "registry.example.com/karui:1.0\n", "--stop-timeout 40"},
			[]string{"get-login-password", ".deb", "attach-volume"},
		},
		{
			"proxy, private image", "proxy",
			script{Image: private, Drain: 30},
			[]string{"--password-stdin '111122223333.dkr.ecr.us-east-1.amazonaws.com'"},
			nil,
		},
		{
			"proxy, package", "proxy",
			script{Package: pkg, Drain: 30},
			[]string{"curl -sSfL --max-time 290 -o /root/karui.deb", "sha256sum --check"},
			[]string{"docker", "aws s3"},
		},
		{
			"proxy, package in a bucket", "proxy",
			script{Package: bucket, Drain: 30},
			[]string{"aws s3 cp", "sha256sum --check"},
			[]string{"docker"},
		},
		{
			"watchdog, image", "watchdog",
			script{Image: "registry.example.com/karui-watchdog:1.0", Volume: "vol-0123", Address: "eipalloc-1"},
			[]string{"docker run", "attach-volume --volume-id 'vol-0123'", "Store_vol0123\n", "associate-address"},
			[]string{".deb"},
		},
		{
			"watchdog, package", "watchdog",
			script{Package: pkg, Volume: "vol-0123"},
			[]string{"sha256sum --check", "karui-watchdog.service"},
			[]string{"docker", "associate-address"},
		},
	}
	modules, err := filepath.Abs("modules")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(map[string]any, len(tests))
	for i := range tests {
		tests[i].script.Config = base64.StdEncoding.EncodeToString([]byte("listen: ':8080'\n"))
		tests[i].script.Parameters = map[string]string{"edge-0": "/karui/edge-0", "token": "/karui/token"}
		asked[tests[i].name] = tests[i].script
	}
	rendered := render(t, modules, asked)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := rendered[tt.module][tt.name]
			for _, want := range append(tt.has, "set -euo pipefail", tt.script.Config, "/etc/karui/secrets/'edge-0'", "/etc/karui/secrets/'token'") {
				if !strings.Contains(text, want) {
					t.Errorf("the script lacks %q", want)
				}
			}
			for _, unwanted := range tt.hasNot {
				if strings.Contains(text, unwanted) {
					t.Errorf("the script has %q, which is for another form", unwanted)
				}
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-n")
			cmd.Stdin = strings.NewReader(text)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("bash -n: %v\n%s\n%s", err, out, text)
			}
		})
	}
}

// render lets terraform fill the templates, in a configuration that has no
// provider and so needs no network. The keys are module and name.
func render(t *testing.T, modules string, asked map[string]any) map[string]map[string]string {
	t.Helper()
	dir := t.TempDir()
	outputs := make(map[string]any)
	for _, module := range []string{"proxy", "watchdog"} {
		path := filepath.Join(modules, module, "user-data.sh.tftpl")
		outputs[module] = map[string]string{
			"value": `${{ for name, s in jsondecode(file("asked.json")) : name => templatefile("` + path + `", s) if startswith(name, "` + module + `") }}`,
		}
	}
	write := func(name string, v any) {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("main.tf.json", map[string]any{"output": outputs})
	write("asked.json", asked)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	terraform := func(args ...string) []byte {
		cmd := exec.CommandContext(ctx, "terraform", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
		var out, problem bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &problem
		if err := cmd.Run(); err != nil {
			t.Fatalf("terraform %s: %v\n%s", args[0], err, problem.String())
		}
		return out.Bytes()
	}
	terraform("apply", "-auto-approve", "-no-color", "-input=false")
	var got map[string]struct {
		Value map[string]string `json:"value"`
	}
	if err := json.Unmarshal(terraform("output", "-json"), &got); err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]map[string]string, len(got))
	for module, o := range got {
		texts[module] = o.Value
	}
	return texts
}
