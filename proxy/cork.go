package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Corker is a viewer's connection that can hold the head of an answer back until
// its body comes, so that both leave together. Without one, net/http sends the
// head with a part of the body first, which takes one more call of the kernel and
// a copy.
type Corker interface {
	// Cork holds the next bytes back.
	Cork()
	// Uncork sends what is still held.
	Uncork() error
}

type corkerKey struct{}

// WithCorker gives the context of a connection to the requests on it.
func WithCorker(ctx context.Context, c Corker) context.Context {
	return context.WithValue(ctx, corkerKey{}, c)
}

// corkLeast is the size from which it matters: less fits into net/http's buffers.
const corkLeast = 2 << 10

// whole sends a body that is here.
func (x *exchange) whole(body io.WriterTo) (int64, error) {
	var b []byte
	switch body := body.(type) {
	case found:
		b, _ = body.Bytes()
	case inMemory:
		b = body
	}
	direct, ok := x.w.(io.ReaderFrom)
	if len(b) < corkLeast || !ok {
		return body.WriteTo(x.w)
	}
	corker, ok := x.r.Context().Value(corkerKey{}).(Corker)
	if !ok {
		return body.WriteTo(x.w)
	}
	corker.Cork()
	n, err := direct.ReadFrom(bytes.NewReader(b))
	return n, errors.Join(err, corker.Uncork())
}
