package proxy

import (
	"context"

	"karui/convert"
	"karui/convert/header"
	"karui/proxy/dial"
)

// Converter makes variants; convert.Pool is one.
type Converter interface {
	// Convert fails only when ctx ends or the pool is closed; all else is a decision.
	Convert(ctx context.Context, source []byte, opt convert.Options) (convert.Result, error)
	// Ping converts a picture of its own beside the queue, and gives it as a JPEG.
	Ping(ctx context.Context) ([]byte, error)
}

// options gives what the site wants for viewers that take the formats, at a level
// of the dial.
func (s *site) options(formats []header.Format, level *dial.Level) convert.Options {
	o := convert.Options{
		Formats: formats, Quality: s.config.Quality, PNG: s.config.PNG, Keep: s.config.Keep, Effort: &level.Effort,
	}
	if level.Quality > 0 {
		o.Quality = min(o.Quality, level.Quality)
	}
	return o
}
