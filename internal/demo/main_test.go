package demo

import (
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"karui/internal/sample"
)

// starts starts what lives as long as the tests.
var starts *starter

func TestMain(m *testing.M) {
	if os.Getenv(becomeVariable) != "" {
		os.Exit(becomeSleep())
	}
	starts = newStarter()
	code := m.Run()
	starts.close()
	buildDir.remove()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString("goroutines left: " + err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

// samples are drawn once for all tests, which takes seconds under the race detector.
var samples = sync.OnceValue(sample.New)
