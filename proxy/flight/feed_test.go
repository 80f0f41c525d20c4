package flight

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"

	"karui/proxy/origin"
)

func shareable(*origin.Head) bool { return true }

// newGroup makes a group whose temporary files lie in a folder of the test.
func newGroup(t testing.TB, o Options) *Group[string] {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	g := New[string](o)
	t.Cleanup(g.Close)
	return g
}

// feed is an answer whose body the test hands out piece by piece.
type feed struct {
	length int64
	pieces chan []byte
	head   chan error
	ctx    context.Context
	asked  atomic.Int32
	closed atomic.Bool
	end    error // given instead of io.EOF when pieces is closed
	rest   []byte
}

func newFeed(length int64) *feed {
	return &feed{length: length, pieces: make(chan []byte), head: make(chan error, 1)}
}

func (f *feed) fetch(ctx context.Context) (*origin.Response, error) {
	f.asked.Add(1)
	f.ctx = ctx
	select {
	case err := <-f.head:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &origin.Response{Head: origin.Head{Status: 200, Header: http.Header{}, Length: f.length, Framing: origin.Length}, Body: f}, nil
}

func (f *feed) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		select {
		case piece, ok := <-f.pieces:
			if !ok {
				if f.end != nil {
					return 0, f.end
				}
				return 0, io.EOF
			}
			f.rest = piece
		case <-f.ctx.Done():
			return 0, f.ctx.Err()
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *feed) Close() error {
	f.closed.Store(true)
	return nil
}

func (f *feed) request() Request { return Request{Fetch: f.fetch, Shareable: shareable} }

// body is a fetch that gives data at once.
func body(data []byte, declared bool) Fetch {
	return func(context.Context) (*origin.Response, error) {
		length := int64(-1)
		if declared {
			length = int64(len(data))
		}
		return &origin.Response{Head: origin.Head{Status: 200, Length: length}, Body: io.NopCloser(bytes.NewReader(data))}, nil
	}
}

// noise is n bytes in which no two parts look alike.
func noise(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	return data
}

func closing(t testing.TB, h *Handle) *Handle {
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// wantBytes reads n bytes.
func wantBytes(t *testing.T, h *Handle, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(h, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes that are right: %v, %v", len(got), bytes.Equal(got, want), err)
	}
}

// wantRest reads to the end.
func wantRest(t *testing.T, h *Handle, want []byte) {
	t.Helper()
	got, err := io.ReadAll(h)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes of %d, right: %v, %v", len(got), len(want), bytes.Equal(got, want), err)
	}
}
