package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"sort"

	"golang.org/x/image/draw"

	"karui/internal/sample"
)

// class is a size of photographs, as sites have them.
type class struct {
	name   string
	pixels int
	// bytes is what a JPEG of this size is aimed at.
	bytes int
	// count is how many conversions one round takes.
	count int
}

var classes = []class{
	{"S", 310_000, 70_000, 40},
	{"M", 1_000_000, 204_000, 20},
	{"L", 6_000_000, 830_000, 8},
}

// photosPerClass bounds how many different photographs stand for a class.
const photosPerClass = 4

// The quality that photographs are saved at is in between: below 82 a source would limit the quality of its variant,
// and nobody publishes above 92.
const (
	qualityLeast = 82
	qualityMost  = 92
)

// photo is one original.
type photo struct {
	name string
	body []byte
}

// album holds the originals by the name of their class.
type album map[string][]photo

// makeAlbum derives photographs of each class from those in the folder, and from a drawn one where the folder holds
// none. They are only ever made smaller, except for the drawn one.
func makeAlbum(folder string) (album, string, error) {
	sources, words, err := readSources(folder)
	if err != nil {
		return nil, "", err
	}
	a := album{}
	for _, c := range classes {
		for _, s := range sources {
			if !s.drawn && s.pixels() < c.pixels {
				continue
			}
			body, err := s.at(c)
			if err != nil {
				return nil, "", err
			}
			a[c.name] = append(a[c.name], photo{s.name, body})
		}
		// Those that have the bytes which such a photograph has on a site.
		off := func(p photo) int { return abs(len(p.body) - c.bytes) }
		all := a[c.name]
		sort.SliceStable(all, func(i, j int) bool { return off(all[i]) < off(all[j]) })
		a[c.name] = all[:min(len(all), photosPerClass)]
	}
	return a, words, nil
}

type source struct {
	name  string
	img   image.Image
	drawn bool
}

func (s source) pixels() int { return s.img.Bounds().Dx() * s.img.Bounds().Dy() }

// pixelsLeast leaves out what is smaller than a photograph of the class M.
const pixelsLeast = 1_000_000

func readSources(folder string) ([]source, string, error) {
	var all []source
	names, err := filepath.Glob(filepath.Join(folder, "*.jp*g"))
	if err != nil {
		return nil, "", fmt.Errorf("list photographs: %w", err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, "", fmt.Errorf("read photograph: %w", err)
		}
		c, err := jpeg.DecodeConfig(bytes.NewReader(b))
		if err != nil || c.Width*c.Height < pixelsLeast || len(b) < c.Width*c.Height/30 {
			continue // no JPEG for this decoder, or hardly anything in the picture
		}
		img, err := jpeg.Decode(bytes.NewReader(b))
		if err != nil {
			continue
		}
		all = append(all, source{name: filepath.Base(name), img: img})
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].pixels() > all[j].pixels() })
	words := fmt.Sprintf("%d photographs", len(all))
	if len(all) == 0 || all[0].pixels() < classes[len(classes)-1].pixels {
		img, err := jpeg.Decode(bytes.NewReader(sample.Photo()))
		if err != nil {
			return nil, "", fmt.Errorf("decode the drawn photograph: %w", err)
		}
		all = append(all, source{name: "drawn", img: img, drawn: true})
		words += " and a drawn one"
	}
	return all, words, nil
}

// at gives the photograph in the size of the class, at the quality that comes nearest to its bytes.
func (s source) at(c class) ([]byte, error) {
	b := s.img.Bounds()
	f := math.Sqrt(float64(c.pixels) / float64(s.pixels()))
	small := image.NewRGBA(image.Rect(0, 0, int(math.Round(float64(b.Dx())*f)), int(math.Round(float64(b.Dy())*f))))
	draw.CatmullRom.Scale(small, small.Bounds(), s.img, b, draw.Src, nil)
	return nearest(small, c.bytes)
}

// nearest saves at the quality whose file comes nearest to so many bytes.
func nearest(img image.Image, bytesWanted int) ([]byte, error) {
	var best []byte
	for low, high := qualityLeast, qualityMost; low <= high; {
		q := (low + high) / 2
		var out bytes.Buffer
		if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: q}); err != nil {
			return nil, fmt.Errorf("save photograph: %w", err)
		}
		if best == nil || abs(out.Len()-bytesWanted) < abs(len(best)-bytesWanted) {
			best = out.Bytes()
		}
		if out.Len() < bytesWanted {
			low = q + 1
		} else {
			high = q - 1
		}
	}
	return best, nil
}

func abs(n int) int { return max(n, -n) }

// numbered gives the JPEG a comment with a number, so that no two are the same file, whatever remembers files.
func numbered(body []byte, n int64) []byte {
	const length = 2 + 8
	b := make([]byte, 0, len(body)+2+length)
	b = append(b, body[:2]...)
	b = append(b, 0xff, 0xfe, 0, length)
	b = binary.BigEndian.AppendUint64(b, uint64(n))
	return append(b, body[2:]...)
}
