package acceptance

import (
	"os"
	"path/filepath"
	"sync"

	"karui/internal/picture"
)

// pictures judges variants for all tests. The profile of sRGB is taken out of a
// picture of the corpus.
var pictures = sync.OnceValue(func() *picture.Judge {
	b, err := os.ReadFile(filepath.Join(corpus, "photos", "ImageMagick__mountains.jpg"))
	if err != nil {
		return picture.New("")
	}
	name := filepath.Join(filepath.Dir(built), "srgb.icc")
	if profile := picture.Profile(b); len(profile) == 0 || os.WriteFile(name, profile, 0o600) != nil {
		return picture.New("")
	}
	return picture.New(name)
})

// samePicture names what is wrong with a variant of an original, if anything is.
func samePicture(original, variant []byte) []string {
	return pictures().Problems(original, variant)
}
