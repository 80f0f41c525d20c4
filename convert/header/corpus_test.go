package header

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// manifestRow is one line of the corpus' own description of a file, made by tools that share no code with this one.
type manifestRow struct {
	path, format          string
	width, height, frames int
	samples, bits         string
	space, profile        string
	orientation           string
	flags                 []string
	purpose               string
}

func (r manifestRow) has(flag string) bool {
	for _, f := range r.flags {
		if f == flag {
			return true
		}
	}
	return false
}

// value returns what follows a flag's name: "10" of "scans10".
func (r manifestRow) value(prefix string) (string, bool) {
	for _, f := range r.flags {
		if rest, ok := strings.CutPrefix(f, prefix); ok {
			return rest, true
		}
	}
	return "", false
}

var flagList = regexp.MustCompile(`\[([^\]]*)\]$`)

// corpusRoot is beside the repository: <somewhere>/shared/corpus.
func corpusRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the package")
		}
		dir = filepath.Dir(dir)
	}
	root := filepath.Join(dir, "..", "shared", "corpus")
	if _, err := os.Stat(filepath.Join(root, "MANIFEST.tsv")); err != nil {
		t.Skipf("no corpus at %s", root)
	}
	return root
}

func readManifest(t testing.TB, root string) []manifestRow {
	t.Helper()
	f, err := os.Open(filepath.Join(root, "MANIFEST.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []manifestRow
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		col := strings.Split(lines.Text(), "\t")
		if len(col) < 13 || col[0] == "path" {
			continue
		}
		r := manifestRow{path: col[0], format: col[1], orientation: col[8], purpose: col[12]}
		r.width, _ = strconv.Atoi(col[3])
		r.height, _ = strconv.Atoi(col[4])
		r.frames, _ = strconv.Atoi(col[5])
		r.samples, r.bits, _ = strings.Cut(col[6], "/")
		r.space, r.profile, _ = strings.Cut(col[7], " ")
		if m := flagList.FindStringSubmatch(col[12]); m != nil {
			r.flags = strings.Split(m[1], ",")
		}
		rows = append(rows, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// incomparable names the rows where the description says nothing that could be compared, with the reason, and by
// what they are recognised. Their format is compared all the same, except where stated.
func (r manifestRow) incomparable() string {
	switch {
	case r.format == "?":
		return "no known format"
	case r.format == "html":
		return "HTML is unknown here"
	case r.format == "jpeg" && (r.has("markerloss") || r.has("noSOF")):
		return "its JPEG walker lost the markers or found no frame; libjpeg steps over garbage, and so does Parse"
	case r.format == "jpeg" && r.has("scans0"):
		return "no scan: frame headers that are not whole, or files that end before the pixels"
	case r.format == "png" && (r.has("noIDAT") || r.width == 0 || r.height == 0):
		return "no pixels: fields were read from headers that are cut off or not valid"
	case r.format == "gif" && r.has("trunc") && r.width == 0:
		return "ends inside the logical screen"
	}
	return ""
}

// disputed lists where the description is wrong, by the specifications.
var disputed = map[string]string{
	// acTL counts only before the first IDAT (APNG, "acTL must appear before the first IDAT").
	"animated/Pillow__chunk_actl_after_idat.png": "APNG",
	// The second picture's XMP says hdrgainmap; the description looked at the first picture only.
	"hard/libavif__apple_gainmap_old.jpg": "gainmap",
	"hard/libavif__apple_gainmap_new.jpg": "gainmap",
	// Colour types and depths that PNG does not have: the header is refused, and the walk ends there.
	"broken/codec-corpus__xd0n2c08.png": "noIEND",
	"broken/codec-corpus__xd9n2c08.png": "noIEND",
}

func TestCorpus(t *testing.T) {
	root := corpusRoot(t)
	rows := readManifest(t, root)
	if len(rows) < 500 {
		t.Fatalf("only %d rows", len(rows))
	}
	compared := 0
	for _, r := range rows {
		b, err := os.ReadFile(filepath.Join(root, r.path))
		if err != nil {
			t.Error(err)
			continue
		}
		info, err := Parse(b)
		// Without FF behind the FF D8 no browser takes a file for a JPEG; the description does.
		if got := info.Format.String(); got != r.format && r.incomparable() == "" {
			t.Errorf("%s: format %s, want %s", r.path, got, r.format)
			continue
		}
		if !info.Format.Convertible() {
			if !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrShort) {
				t.Errorf("%s: %v", r.path, err)
			}
			continue
		}
		growing(t, r.path, b, info, err)
		if r.incomparable() == "" {
			compared++
			differences := r.compare(info)
			if len(differences) == 1 && strings.Fields(differences[0])[0] == disputed[r.path] {
				continue
			}
			for _, difference := range differences {
				t.Errorf("%s: %s (%v)", r.path, difference, err)
			}
			if len(differences) == 0 && disputed[r.path] != "" {
				t.Errorf("%s: no longer differs", r.path)
			}
		}
	}
	if compared < 400 {
		t.Errorf("only %d rows were compared", compared)
	}
}

// growing scans the file in pieces and wants the same as from the whole.
func growing(t *testing.T, path string, b []byte, want Info, wantErr error) {
	t.Helper()
	for _, step := range []int{1, 7, 1460, 65536} {
		if step < 1460 && len(b) > 20_000 {
			continue
		}
		var s Scanner
		var info Info
		var err error
		for n := min(step, len(b)); ; n = min(n+step, len(b)) {
			info, err = s.Scan(b[:n])
			if n == len(b) {
				break
			}
		}
		if info != want || (err == nil) != (wantErr == nil) {
			t.Errorf("%s in steps of %d:\n got %+v (%v)\nwant %+v (%v)", path, step, info, err, want, wantErr)
		}
	}
}

// compare returns one line per difference; its first word names the field.
func (r manifestRow) compare(info Info) (differences []string) {
	diff := func(what string, got, want any) {
		if got != want {
			differences = append(differences, fmt.Sprintf("%s is %v, want %v", what, got, want))
		}
	}
	diff("width", info.Width, r.width)
	diff("height", info.Height, r.height)
	diff("frames", info.Frames, r.frames)
	diff("orientation", strconv.Itoa(info.Orientation), cmp.Or(r.orientation, "1"))
	diff("exif", info.EXIF, r.has("exif"))
	if info.Format != GIF { // GIF has no profiles that anybody reads
		r.compareProfile(info, diff)
	}
	switch info.Format {
	case JPEG:
		r.compareJPEG(info, diff)
	case PNG:
		diff("interlaced", info.Progressive, r.has("interlaced"))
		diff("APNG", info.Animated, r.has("APNG"))
		diff("noIEND", !info.Whole, r.has("noIEND"))
		diff("bits", strconv.Itoa(info.BitDepth), r.bits)
		diff("alpha", info.Alpha, r.has("tRNS") || strings.HasSuffix(r.space, "a"))
	case GIF:
		r.compareGIF(info, diff)
	}
	return differences
}

func (r manifestRow) compareJPEG(info Info, diff func(string, any, any)) {
	kinds := map[Process]string{
		Baseline: "baseline", Extended: "extended", Progressive: "progressive", Lossless: "lossless",
		ArithmeticSequential: "arith", ArithmeticProgressive: "arith-prog",
	}
	diff("process", r.has(kinds[info.Process()]), true)
	scans, _ := r.value("scans")
	diff("scans", strconv.Itoa(info.Scans), scans)
	diff("noEOI", !info.Whole, r.has("noEOI"))
	diff("DRI", info.RestartInterval > 0, r.has("DRI"))
	diff("gainmap", info.GainMap, r.has("gainmap"))
	diff("MPF", info.MPF, r.has("MPF"))
	diff("xmp", info.XMP, r.has("xmp"))
	diff("bits", strconv.Itoa(info.BitDepth), r.bits)
	diff("components", strconv.Itoa(info.Components), r.samples)
	diff("space", info.Color.String(), r.space)
	// "JPEG q85", "q92 1x1": the quality that a file was made with, where it is told.
	if m := statedQuality.FindStringSubmatch(r.purpose); m != nil {
		q, _ := strconv.Atoi(m[1])
		diff("quality", info.JPEGQuality >= q-1 && info.JPEGQuality <= q+1, true)
	}
}

var statedQuality = regexp.MustCompile(`\bq(\d+)\b`)

func (r manifestRow) compareGIF(info Info, diff func(string, any, any)) {
	loop, _ := r.value("loop")
	if loop == "None" {
		loop = "-1"
	}
	diff("loop", strconv.Itoa(info.Loop), loop)
	diff("noTrailer", !info.Whole, r.has("noTrailer"))
	diff("frame>canvas", info.ExtentWidth > info.Width || info.ExtentHeight > info.Height, r.has("frame>canvas"))
	// The description lists the delays of all graphic controls: with as many as frames they are those of the frames.
	if all, _ := r.value("delay"); all != "" && !strings.HasSuffix(r.path, "multiple-graphic-controls.gif") {
		delays := strings.Split(all, "/")
		diff("least-delay", strconv.FormatInt(info.MinDelay.Milliseconds()/10, 10), delays[0])
		diff("most-delay", strconv.FormatInt(info.MaxDelay.Milliseconds()/10, 10), delays[len(delays)-1])
		if len(delays) == 1 {
			diff("duration", info.Duration, time.Duration(r.frames)*info.MinDelay)
		}
	}
}

func (r manifestRow) compareProfile(info Info, diff func(string, any, any)) {
	switch space, rest, found := strings.Cut(r.profile, ":"); {
	case strings.HasPrefix(r.profile, "bad"):
		diff("profile", info.Profile, ProfileBroken)
	case !found:
		diff("profile", info.Profile, ProfileNone)
	default:
		name, size, _ := strings.Cut(rest, "(")
		if at := strings.LastIndex(rest, "("); at >= 0 { // names may hold brackets
			name, size = rest[:at], rest[at+1:]
		}
		diff("profile-name", info.ProfileName, name)
		diff("profile-size", fmt.Sprintf("%dB)", info.ProfileSize), size)
		diff("profile-space", info.Profile == ProfileGray, space == "GRAY")
		// Of the profiles here, those with sRGB in their name are what they say, and so is one called "c2".
		srgb := strings.HasPrefix(name, "sRGB") || name == "c2"
		diff("profile-kind", info.Profile == ProfileSRGB, srgb)
	}
}
