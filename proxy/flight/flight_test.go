package flight

import (
	"context"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"karui/proxy/origin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOneViewerReadsTheBody(t *testing.T) {
	g := New[string](Options{Dir: t.TempDir()})
	defer g.Close()
	h := g.Join(t.Context(), "k", Request{
		Fetch: func(context.Context) (*origin.Response, error) {
			return &origin.Response{Head: origin.Head{Status: 200, Length: 5}, Body: io.NopCloser(strings.NewReader("hello"))}, nil
		},
		Shareable: func(*origin.Head) bool { return true },
	})
	defer func() { _ = h.Close() }()
	if body, err := io.ReadAll(h); err != nil || string(body) != "hello" {
		t.Fatalf("got %q, %v", body, err)
	}
}
