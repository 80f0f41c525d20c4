package main

import (
	"bytes"
	"fmt"
	"image"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"karui/internal/picture"
	"karui/internal/sample"
)

// original is one file of the origin.
type original struct {
	// name says where it comes from, id is the last segment of its paths.
	name, id string
	body     []byte
	// mediaType is what its first bytes say.
	mediaType string
	// header is what the origin says besides.
	header http.Header
	// modified is the origin's date for it, zero for none.
	modified time.Time
}

// Bounds of what is taken out of a corpus: the proof is about faults, and a file
// that takes seconds would only make fewer of them fit.
const (
	maxFile   = 300 << 10
	maxPixels = 1 << 19
)

// gather picks n files out of the folder, of every kind that is there; without a
// folder, or with an empty one, it draws them. The seed decides which.
func gather(folder string, n int, seed uint64) ([]*original, error) {
	files, err := fromCorpus(folder)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		files = drawn()
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	files = spread(files, n)
	dress(files)
	return files, nil
}

// largeID is a file so large that there is always one of them under way. It is a
// photo with a film behind its end, as some cameras make them.
const (
	largeID   = "large.jpg"
	largeSize = 3 << 20
)

func large(photo []byte) *original {
	body := make([]byte, 0, largeSize)
	body = append(body, photo...)
	rng := rand.New(rand.NewPCG(7, 8))
	for len(body) < largeSize {
		body = append(body, byte(rng.Uint64()))
	}
	return &original{name: "drawn/large", id: largeID, body: body, mediaType: "image/jpeg", header: http.Header{
		"Content-Type": {"image/jpeg"}, "Cache-Control": {"max-age=20"}, "Etag": {`"large"`},
	}}
}

// spread takes n files, in turns of each kind; of the folders with files that
// variants are made of, several a turn.
func spread(files []*original, n int) []*original {
	kinds := map[string][]*original{}
	var order []string
	for _, f := range files {
		kind := f.mediaType + filepath.Dir(f.name)
		if len(kinds[kind]) == 0 {
			order = append(order, kind)
		}
		kinds[kind] = append(kinds[kind], f)
	}
	slices.Sort(order)
	var out []*original
	for len(out) < min(n, len(files)) {
		for _, kind := range order {
			take := 3
			if strings.HasSuffix(kind, "hard") || strings.HasSuffix(kind, "broken") {
				take = 1
			}
			take = min(take, len(kinds[kind]), n-len(out))
			out, kinds[kind] = append(out, kinds[kind][:take]...), kinds[kind][take:]
		}
	}
	return out
}

// dress gives the files their names, and the lifetimes and validators that origins have.
func dress(files []*original) {
	extensions := map[string]string{"image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif"}
	lifetimes := []string{"max-age=2", "max-age=600", "", "no-cache", "public, max-age=5", "max-age=30, must-revalidate"}
	for i, f := range files {
		f.id = fmt.Sprintf("%03d%s", i, extensions[f.mediaType])
		f.header = http.Header{"Content-Type": {f.mediaType}}
		if life := lifetimes[i%len(lifetimes)]; life != "" {
			f.header.Set("Cache-Control", life)
		}
		switch i % 5 {
		case 0, 1, 2:
			f.header.Set("ETag", fmt.Sprintf(`"%03d-%x"`, i, len(f.body)))
		case 3:
			f.header.Set("ETag", fmt.Sprintf(`W/"%03d"`, i))
		}
		if i%2 == 0 {
			f.modified = time.Date(2025, 3, 1, 12, 0, i, 0, time.UTC)
		}
	}
}

// fromCorpus reads the files of convertible kinds that are not too large, broken
// ones among them.
func fromCorpus(folder string) ([]*original, error) {
	if folder == "" {
		return nil, nil
	}
	var files []*original
	root, err := os.OpenRoot(folder)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the corpus: %w", err)
	}
	defer func() { _ = root.Close() }()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() > maxFile || strings.Contains(name, "bombs") {
			return err
		}
		body, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		mediaType := picture.Format(body)
		if !slices.Contains([]string{"image/jpeg", "image/png", "image/gif"}, mediaType) {
			return nil
		}
		if c, _, err := image.DecodeConfig(bytes.NewReader(body)); err == nil && c.Width*c.Height > maxPixels {
			return nil
		}
		files = append(files, &original{name: name, body: body, mediaType: mediaType})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the corpus: %w", err)
	}
	return files, nil
}

// drawn are files for a machine without a corpus: the samples, parts of them, and
// cut ones, which must go out as they are.
func drawn() []*original {
	var files []*original
	add := func(name string, body []byte) {
		files = append(files, &original{name: "drawn/" + name, body: body, mediaType: picture.Format(body)})
	}
	add("photo", sample.Photo())
	add("logo", sample.Logo())
	add("screenshot", sample.Screenshot())
	add("animation", sample.Animation())
	for i, part := range parts(sample.Photo(), 12) {
		add(fmt.Sprintf("part %d of the photo", i), part)
	}
	for i, percent := range []int{30, 60, 90} {
		whole := [][]byte{sample.Photo(), sample.Logo(), sample.Animation()}[i]
		add(fmt.Sprintf("%d %% of a file", percent), whole[:len(whole)*percent/100])
	}
	return files
}
