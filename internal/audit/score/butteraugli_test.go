package score

import (
	"cmp"
	"context"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"karui/internal/picture"
)

// TestAgreesWithButteraugli says how well scores agree with Butteraugli over the
// photographs of the corpus as WebP at several qualities; words.go has the numbers. It takes
// minutes, so that it runs only where KARUI_BUTTERAUGLI is set.
func TestAgreesWithButteraugli(t *testing.T) {
	if os.Getenv("KARUI_BUTTERAUGLI") == "" {
		t.Skip("set KARUI_BUTTERAUGLI to compare with butteraugli_main, which takes minutes")
	}
	for _, tool := range []string{"butteraugli_main", "cwebp"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed (Debian: libjxl-devtools, webp)", tool)
		}
	}
	paths, _ := filepath.Glob("../../../../shared/corpus/photos/*")
	if len(paths) == 0 {
		t.Skip("no corpus")
	}
	var scores, distances []float64
	same, similar := 0, 0
	judge := picture.New("")
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := judge.Render(b)
		if err != nil || len(r.Frames) == 0 || min(r.Size().X, r.Size().Y) < 360 {
			continue // of another profile, or too small to be cut
		}
		img := middleOf(r.Frames[0].Image, 360)
		dir := t.TempDir()
		original := filepath.Join(dir, "original.png")
		writePNG(t, original, img)
		for _, quality := range []int{30, 45, 60, 70, 80, 90, 95} {
			webp, decoded := filepath.Join(dir, "a.webp"), filepath.Join(dir, "a.png")
			run(t, "cwebp", "-quiet", "-q", strconv.Itoa(quality), original, "-o", webp)
			body, err := os.ReadFile(webp)
			if err != nil {
				t.Fatal(err)
			}
			clip, err := picture.DecodeWebP(body)
			if err != nil {
				t.Fatal(err)
			}
			writePNG(t, decoded, clip.Frames[0].Image)
			said, _, _ := strings.Cut(run(t, "butteraugli_main", original, decoded), "\n")
			distance, err := strconv.ParseFloat(strings.TrimSpace(said), 64)
			if err != nil {
				t.Fatal(err)
			}
			s := compare(t, of(img), of(clip.Frames[0].Image))
			scores, distances = append(scores, -float64(s)), append(distances, distance)
			if (s >= Same) == (distance <= 2) {
				same++
			}
			if (s >= Similar) == (distance <= 4) {
				similar++
			}
		}
	}
	r, n := correlation(ranks(scores), ranks(distances)), float64(len(scores))
	t.Logf("%d pairs: rank correlation %.3f; %.2f agree on who looks the same, %.2f on who differs visibly",
		len(scores), r, float64(same)/n, float64(similar)/n)
	if n < 100 || r < 0.8 || float64(same)/n < 0.8 || float64(similar)/n < 0.8 {
		t.Error("scores do not say what Butteraugli says")
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(out)
}

func writePNG(t *testing.T, path string, img *image.NRGBA) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := png.Encode(file, img); err != nil {
		t.Fatal(err)
	}
}

// ranks gives the place of each value among all.
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	places := make([]float64, len(values))
	for place, i := range order {
		places[i] = float64(place)
	}
	return places
}

// correlation is Spearman's, of two lists of places.
func correlation(a, b []float64) float64 {
	middle := float64(len(a)-1) / 2
	var both, one float64
	for i := range a {
		both += (a[i] - middle) * (b[i] - middle)
		one += (a[i] - middle) * (a[i] - middle)
	}
	return both / one
}
