package server

import (
	"errors"
	"strings"
	"testing"

	"karui/internal/config"
)

// Who may not read the configuration learns what to do, and where karui listens without it.
func TestTheDefaultFileIsDenied(t *testing.T) {
	reason := &config.Problem{What: "cannot be read: permission denied", Source: config.Source{Kind: config.SourceFile, Name: DefaultFile}}
	for listen, environ := range map[string][]string{
		DefaultConfig().Admin.Listen: nil,
		"127.0.0.1:9999":             {"KARUI_ADMIN_LISTEN=127.0.0.1:9999"},
	} {
		d := newDeniedError(reason, environ)
		if d.Listen != listen || !strings.Contains(d.Error(), DefaultFile+": the configuration cannot be read: permission denied\n") || !strings.Contains(d.Error(), "use sudo") {
			t.Errorf("%+v: %v", d, d)
		}
		if p := (*config.Problem)(nil); !errors.As(d, &p) {
			t.Error("it is no mistake of the configuration any more")
		}
	}
	if d := newDeniedError(reason, []string{"KARUI_ADMIN_LISTEN=nonsense"}); d.Listen != DefaultConfig().Admin.Listen {
		t.Errorf("%q", d.Listen)
	}
}
