package proxy

import (
	"context"

	"karui/convert"
	"karui/convert/header"
)

// Converter makes variants; convert.Pool is one.
type Converter interface {
	// Convert fails only when ctx ends or the pool is closed; all else is a decision.
	Convert(ctx context.Context, source []byte, opt convert.Options) (convert.Result, error)
	// Ping converts a picture of its own beside the queue, and gives it as a JPEG.
	Ping(ctx context.Context) ([]byte, error)
}

// options gives what the site wants for viewers that take the formats.
func (s *site) options(formats []header.Format) convert.Options {
	return convert.Options{Formats: formats, Quality: s.config.Quality, PNG: s.config.PNG, Keep: s.config.Keep}
}
