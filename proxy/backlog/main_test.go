package backlog

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the process that the crash test kills.
func TestMain(m *testing.M) {
	if file := os.Getenv(crashEnv); file != "" {
		crashChild(file)
		return
	}
	goleak.VerifyTestMain(m)
}
