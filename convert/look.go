package convert

import (
	"context"
	"errors"
	"fmt"

	"karui/convert/header"
)

// LookPixelsMost is the largest bound of [Pool.Look]: what a process gets that is not to be burdened with pixels.
const LookPixelsMost = 4 << 20

// View is how a picture looks: upright, in sRGB, of an animation its first frame.
type View struct {
	Width, Height int
	// Pix has four bytes a pixel, row by row from the top: red, green, blue, and alpha, by which the others are not
	// multiplied.
	Pix []byte
	// Shrunk says that the picture has more pixels than were asked for, and is shown smaller.
	Shrunk bool
}

// ErrNoView is about a picture that cannot be shown, whether an original or a variant.
var ErrNoView = errors.New("the picture cannot be decoded")

// looking is what a job is that makes no variant but shows a picture.
type looking struct {
	Format header.Format `json:"format"`
	// MaxPixels bounds what is sent back.
	MaxPixels int `json:"max_pixels"`
}

// bodyMost bounds the body of a job's result. A variant is never as long as its original; an error needs no body.
func (j job) bodyMost(source []byte) int64 {
	if j.Look != nil {
		return 4 * int64(j.Look.MaxPixels)
	}
	return int64(len(source))
}

// Look decodes an original or a variant, in a worker with all its limits, and returns at most maxPixels pixels (up to
// [LookPixelsMost]) of it; a larger picture is shrunk to that. It is for people who want to compare what [Pool.Convert]
// made with what it was made of, never for what viewers wait for.
//
// The error is that of ctx, [ErrClosed], or [ErrNoView] with the reason. A picture that ends its worker is not held
// against it.
func (p *Pool) Look(ctx context.Context, picture []byte, maxPixels int) (View, error) {
	if err := ctx.Err(); err != nil {
		return View{}, err
	}
	if maxPixels < 1 || maxPixels > LookPixelsMost {
		return View{}, fmt.Errorf("look at a picture: %d pixels asked for, and it must be 1 to %d", maxPixels, LookPixelsMost)
	}
	info, err := header.Parse(picture)
	if info.Format.Convertible() {
		if err != nil {
			return View{}, fmt.Errorf("%w: %w", ErrNoView, err)
		}
		if info.Pixels() > int64(p.cfg.MaxPixels) {
			return View{}, fmt.Errorf("%w: it has %s of pixels, and at most %s are decoded", ErrNoView, megapixels(info.Pixels()), p.cfg.MaxPixels)
		}
	} else if info.Format = header.Sniff(picture); !CanMake(info.Format) {
		return View{}, fmt.Errorf("%w: %s is not read here", ErrNoView, info.Format)
	}
	j := newJob(p.lastID.Add(1), info, Plan{}, p.cfg.Timeout)
	j.Look = &looking{Format: info.Format, MaxPixels: maxPixels}
	req := &request{job: j, source: picture, done: make(chan verdict, 1)}
	if !p.enter() {
		return View{}, ErrClosed
	}
	answers := make(chan answered, 1)
	go func() { // goes on when the caller leaves, so that its worker lives on
		defer p.leave()
		v, err := p.show(req)
		answers <- answered{v, err}
	}()
	select {
	case a := <-answers:
		return a.view, a.err
	case <-ctx.Done():
		return View{}, ctx.Err()
	}
}

type answered struct {
	view View
	err  error
}

// show takes a request of [Pool.Look] through a worker.
func (p *Pool) show(req *request) (View, error) {
	if d, ok := p.queue(req); !ok {
		if d.Code == "" {
			return View{}, ErrClosed
		}
		return View{}, fmt.Errorf("%w: %s", ErrNoView, d.Reason)
	}
	v := <-req.done
	switch {
	case v.closed:
		return View{}, ErrClosed
	case v.fault != "":
		return View{}, fmt.Errorf("%w: its worker ended (%s): %s", ErrNoView, v.fault, v.detail)
	case v.result.Code != Converted:
		return View{}, fmt.Errorf("%w: %s", ErrNoView, v.result.Reason)
	}
	w, h := v.result.Width, v.result.Height
	if w < 1 || h < 1 || int64(w)*int64(h) > int64(req.job.Look.MaxPixels) || len(v.body) != 4*w*h {
		return View{}, fmt.Errorf("%w: %d bytes came back for %d x %d px", ErrNoView, len(v.body), w, h)
	}
	return View{Width: w, Height: h, Pix: v.body, Shrunk: v.result.Shrunk}, nil
}
