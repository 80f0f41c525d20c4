package acceptance

import (
	"os"
	"path/filepath"
	"sync"

	"karui/internal/picture"
)

// pictures judges variants for all tests.
var pictures = sync.OnceValue(func() *picture.Judge {
	name := filepath.Join(filepath.Dir(built), "srgb.icc")
	if err := os.WriteFile(name, picture.SRGB(), 0o600); err != nil {
		return picture.New("")
	}
	return picture.New(name)
})

// samePicture names what is wrong with a variant of an original, if anything is.
func samePicture(original, variant []byte) []string {
	return pictures().Problems(original, variant)
}
