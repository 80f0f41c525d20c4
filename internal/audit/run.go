package audit

import (
	"cmp"
	"context"
	"os"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"karui/convert"
	"karui/convert/header"
	"karui/internal/audit/score"
	"karui/internal/batch"
)

// Pool converts and decodes, as [convert.Pool] does.
type Pool interface {
	batch.Converter
	Look(ctx context.Context, picture []byte, maxPixels int) (convert.View, error)
}

// Image is what was found out about one image.
type Image struct {
	batch.Report
	// Score is how much alike the original and the variant look; without a variant, or
	// where NoScore says why there is none, it is nil.
	Score   *score.Score `json:"score,omitempty"`
	Looks   string       `json:"looks,omitempty"`
	NoScore string       `json:"no_score,omitempty"`
	// Shrunk says that both were compared at a smaller size.
	Shrunk bool `json:"compared_smaller,omitempty"`
	pair   pair
}

// ScreenPixels is about what a screen shows.
const ScreenPixels = 2 << 20

// Job is what an audit does with its items.
type Job struct {
	Options convert.Options
	Limits  convert.Config
	// Parallel is the number of images at a time.
	Parallel int
	// Pixels is at how many pixels pictures are compared, and shown where smaller copies
	// are shown; up to [score.PixelsMost].
	Pixels int
	// Pictures is how many bytes the pictures of the report may take, before they are
	// written as text; 0 for no pictures.
	Pictures int64
}

// Run audits the items. Tell is called after each, one at a time, with the sum so far.
// The images are in the order of the items. The error is that of ctx.
func Run(ctx context.Context, pool Pool, items []Item, job Job, tell func(batch.Summary)) ([]Image, batch.Summary, error) {
	images := make([]Image, len(items))
	var total batch.Summary
	var mu sync.Mutex
	album := newAlbum(job.Pictures, largest(items))
	var group errgroup.Group
	group.SetLimit(max(job.Parallel, 1))
	for i, item := range items {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			image := one(ctx, pool, item, job, album, i)
			mu.Lock()
			defer mu.Unlock()
			total.Add(&image.Report)
			images[i] = image
			tell(total)
			return nil
		})
	}
	_ = group.Wait() // nothing fails as a whole
	return images, total, ctx.Err()
}

// largest lists the items that get pictures: those of the largest files.
func largest(items []Item) []int {
	order := make([]int, len(items))
	sizes := make([]int64, len(items))
	for i, item := range items {
		order[i] = i
		if info, err := os.Stat(item.Path); err == nil && item.Err == nil {
			sizes[i] = info.Size()
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	return order[:min(len(order), picturesMost)]
}

// one audits a single image.
func one(ctx context.Context, pool Pool, item Item, job Job, album *album, i int) Image {
	defer album.pass(i)
	if item.Err != nil {
		return Image{Report: batch.Report{Path: item.Name, Error: item.Err.Error()}}
	}
	var image Image
	seen := &witness{pool: pool}
	_ = batch.Run(ctx, seen, batch.Job{
		Inputs: []batch.Input{{Path: item.Path}}, Options: job.Options, Limits: job.Limits, Parallel: 1,
	}, func(r batch.Report) { image.Report = r }) // that of ctx, which the caller sees
	image.Path = item.Name
	if image.Error != "" || image.Code != convert.Converted {
		return image
	}
	image.compare(ctx, pool, seen, album, i, job.Pixels)
	return image
}

// compare scores an image and takes its pictures.
func (m *Image) compare(ctx context.Context, pool Pool, seen *witness, album *album, i, pixels int) {
	before, err := pool.Look(ctx, seen.source, pixels)
	if err != nil {
		m.NoScore = "the original: " + err.Error()
		return
	}
	after, err := pool.Look(ctx, seen.result.Body, pixels)
	if err != nil {
		m.NoScore = "the variant: " + err.Error()
		return
	}
	m.Shrunk = before.Shrunk
	value, err := score.Compare(asPicture(before), asPicture(after))
	if err != nil {
		m.NoScore = err.Error()
		return
	}
	m.Score, m.Looks = &value, value.Words()
	m.pair = album.take(i, shown{seen.source, m.Source, before}, shown{seen.result.Body, m.Format, after})
}

func asPicture(v convert.View) score.Picture {
	return score.Picture{Width: v.Width, Height: v.Height, Pix: v.Pix}
}

// witness is a converter that keeps what went through it.
type witness struct {
	pool   Pool
	source []byte
	result convert.Result
}

func (w *witness) Convert(ctx context.Context, source []byte, opt convert.Options) (convert.Result, error) {
	r, err := w.pool.Convert(ctx, source, opt)
	w.source, w.result = source, r
	return r, err
}

// browsersShow tells whether browsers of all makers show the format.
func browsersShow(format string) bool {
	f, ok := header.ParseFormat(format)
	return ok && (f.Convertible() || f == header.WebP || f == header.AVIF)
}
