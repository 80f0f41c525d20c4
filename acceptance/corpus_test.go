package acceptance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"karui/internal/origintest"
)

// corpus holds real files of every kind; tests that need it skip where it is missing.
const corpus = "../../shared/corpus"

type corpusFile struct {
	// name is the file's place in the corpus, target the path it is asked for by.
	name, target string
	body         []byte
}

// corpusFiles reads the corpus. Files of a convertible name keep it; all others
// get a second name that claims they are JPEGs.
func corpusFiles(t *testing.T) []corpusFile {
	t.Helper()
	var files []corpusFile
	err := filepath.WalkDir(corpus, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "MANIFEST.tsv" {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(corpus, path)
		if err != nil {
			return err
		}
		target := "/" + strings.Map(func(r rune) rune {
			if strings.ContainsRune(" #?%", r) {
				return '_'
			}
			return r
		}, filepath.ToSlash(name))
		if !convertible(target) {
			target += ".jpg"
		}
		files = append(files, corpusFile{name, target, body})
		return nil
	})
	if err != nil {
		t.Skipf("no corpus of pictures at %s: %v", corpus, err)
	}
	if testing.Short() {
		var some []corpusFile
		for i := 0; i < len(files); i += 9 {
			some = append(some, files[i])
		}
		files = some
	}
	return files
}

func typeByName(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".png", ".apng":
		return "image/png"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".svg":
		return "image/svg+xml"
	}
	return "image/jpeg"
}

// inParallel works through the files with so many hands.
func inParallel(files []corpusFile, hands int, work func(corpusFile)) {
	queue := make(chan corpusFile)
	var wg sync.WaitGroup
	for range hands {
		wg.Go(func() {
			for file := range queue {
				work(file)
			}
		})
	}
	for _, file := range files {
		queue <- file
	}
	close(queue)
	wg.Wait()
}

// Every file, for a viewer that takes WebP and one that does not, at first and
// settled: the original to the byte, or a smaller WebP of the same picture.
func TestCorpusIsAnsweredWithTheOriginalOrASmallerSamePicture(t *testing.T) {
	t.Parallel()
	files := corpusFiles(t)
	origin := origintest.New(t)
	for _, file := range files {
		origin.Set(file.target, origintest.Image(typeByName(file.name), file.body))
	}
	k := serve(t, origin)
	var mu sync.Mutex
	converted := 0
	// judge names what is wrong with an answer.
	judge := func(file corpusFile, a *reply, webp bool) []string {
		var found []string
		switch {
		case a.err != nil:
			found = append(found, fmt.Sprintf("cut off: %v", a.err))
		case a.status != 200:
			found = append(found, fmt.Sprintf("status %d", a.status))
		case bytes.Equal(a.body, file.body):
		case !webp:
			found = append(found, fmt.Sprintf("%d bytes that are not the original's %d", len(a.body), len(file.body)))
		default:
			found = append(found, samePicture(file.body, a.body)...)
			mu.Lock()
			converted++
			mu.Unlock()
		}
		return found
	}
	inParallel(files, 4, func(file corpusFile) {
		report := func(when string, a *reply, webp bool) {
			for _, problem := range judge(file, a, webp) {
				t.Errorf("%s, %s: %s", file.name, when, problem)
			}
		}
		first := k.get(file.target, takesWebP)
		report("first answer", first, true)
		report("plain viewer during the conversion", k.get(file.target, takesAny), false)
		settled := k.settleOrPass(file.target, takesWebP)
		if settled == nil {
			t.Errorf("%s never settled", file.name)
			return
		}
		report("settled answer", settled, true)
		report("plain viewer afterwards", k.get(file.target, takesAny), false)
		if again := k.get(file.target, takesWebP); !bytes.Equal(again.body, settled.body) {
			t.Errorf("%s: the settled answer changed", file.name)
		}
	})
	if status, _ := k.ask("/healthz"); status != 200 {
		t.Errorf("/healthz says %d", status)
	}
	if converted*3 < len(files) {
		t.Errorf("%d of %d files were converted: the test compared next to nothing", converted, len(files))
	}
	t.Logf("%d files, %d variants", len(files), converted)
}

// settleOrPass waits for an answer that stays: hit, original, or bypass for what is no picture.
func (k *instance) settleOrPass(target string, fields ...string) *reply {
	k.t.Helper()
	var last *reply
	if !became(settleLimit, func() bool {
		last = k.get(target, fields...)
		return slices.Contains([]string{"hit", "original", "bypass"}, last.karui())
	}) {
		return nil
	}
	return last
}
