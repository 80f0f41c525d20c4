package convert

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"karui/convert/header"
)

// inOrder writes outcomes as "avif too_slow, webp not_tried".
func inOrder(outcomes []Outcome) string {
	var words []string
	for _, o := range outcomes {
		words = append(words, o.Format.String()+" "+string(o.Decision.Code))
	}
	return strings.Join(words, ", ")
}

func formatsOf(t *testing.T, names string) []header.Format {
	t.Helper()
	var formats []header.Format
	for name := range strings.FieldsSeq(names) {
		f, ok := header.ParseFormat(name)
		if !ok {
			t.Fatalf("%q is no format", name)
		}
		formats = append(formats, f)
	}
	return formats
}

// The header alone says which format is tried first, and why those before it are not.
func TestPlanGoesToTheNextFormat(t *testing.T) {
	palette := with(drawing(), func(i *header.Info) { i.Color, i.PaletteSize, i.Components = header.Palette, 16, 1 })
	for _, c := range []struct {
		name    string
		info    header.Info
		formats string
		change  func(*Options, *Config)
		want    string
		target  header.Format
	}{
		{"photo", photo(), "avif heic webp", nil, "avif not_tried, heic not_tried, webp not_tried", header.AVIF},
		{"photo, WebP first", photo(), "webp avif", nil, "webp not_tried, avif not_tried", header.WebP},
		{"photo, one twice", photo(), "avif avif webp", nil, "avif not_tried, webp not_tried", header.AVIF},
		{"12 MP", sized(photo(), 4000, 3000), "heic webp", nil, "heic too_slow, webp not_tried", header.WebP},
		{"12 MP, AVIF taken too", sized(photo(), 4000, 3000), "heic avif webp", nil, "heic too_slow, avif not_tried, webp not_tried", header.AVIF},
		{"12 MP, nothing else taken", sized(photo(), 4000, 3000), "heic", nil, "heic too_slow", header.Unknown},
		{"40 MP do not fit into a worker", sized(photo(), 8000, 5000), "avif webp", nil, "avif too_many_pixels, webp not_tried", header.WebP},
		{
			"40 MP fit into a larger one", sized(photo(), 8000, 5000), "avif webp",
			func(_ *Options, cfg *Config) { cfg.WorkerMemory = 2 << 30 }, "avif not_tried, webp not_tried", header.AVIF,
		},
		{"60 MP", sized(photo(), 10_000, 6000), "avif webp", nil, "avif too_slow, webp not_tried", header.WebP},
		{
			"a second in all", photo(), "heic avif webp",
			func(_ *Options, cfg *Config) { cfg.Timeout = time.Second }, "heic too_slow, avif not_tried, webp not_tried", header.AVIF,
		},
		{
			"a fifth of a second in all", photo(), "heic avif webp",
			func(_ *Options, cfg *Config) { cfg.Timeout = 200 * time.Millisecond }, "heic too_slow, avif too_slow, webp not_tried", header.WebP,
		},
		{
			"a twentieth", photo(), "heic avif webp",
			func(_ *Options, cfg *Config) { cfg.Timeout = 50 * time.Millisecond }, "heic too_slow, avif too_slow, webp too_slow", header.Unknown,
		},
		{"panorama", sized(photo(), 20_000, 100), "webp avif", nil, "webp too_wide, avif not_tried", header.AVIF},
		{"panorama, too long for HEIC too", sized(photo(), 20_000, 100), "heic webp", nil, "heic too_wide, webp too_wide", header.Unknown},
		{"36 MP are more than HEVC holds", sized(photo(), 6000, 6000), "heic webp", nil, "heic too_many_pixels, webp not_tried", header.WebP},
		{"animation", animation(), "avif heic webp", nil, "avif cannot_animate, heic cannot_animate, webp not_tried", header.WebP},
		{"animation, nothing else taken", animation(), "avif", nil, "avif cannot_animate", header.Unknown},
		{"palette", palette, "avif webp", nil, "avif graphic, webp not_tried", header.WebP},
		{"palette, nothing else taken", palette, "heic", nil, "heic graphic", header.Unknown},
		{
			"palette, lossy wanted", palette, "avif webp",
			func(opt *Options, _ *Config) { opt.PNG = PNGLossy }, "avif not_tried, webp not_tried", header.AVIF,
		},
		{"drawing, of which the content must be seen", drawing(), "avif webp", nil, "avif not_tried, webp not_tried", header.AVIF},
		{
			"drawing, lossless wanted", drawing(), "avif webp",
			func(opt *Options, _ *Config) { opt.PNG = PNGLossless }, "avif graphic, webp not_tried", header.WebP,
		},
		{
			"drawing at the best quality", drawing(), "avif webp",
			func(opt *Options, _ *Config) { opt.Quality = 100 }, "avif graphic, webp not_tried", header.WebP,
		},
		{"what nobody makes", photo(), "jxl svg", nil, "jxl not_accepted, svg not_accepted", header.Unknown},
		{"animated PNG", with(drawing(), func(i *header.Info) { i.Animated, i.Frames = true, 3 }), "avif webp", nil, "avif animated_png, webp animated_png", header.Unknown},
	} {
		opt, cfg := Options{Formats: formatsOf(t, c.formats), Quality: 80}, DefaultConfig()
		if c.change != nil {
			c.change(&opt, &cfg)
		}
		plan := MakePlan(c.info, 1000, opt, cfg)
		if got := inOrder(plan.Outcomes); got != c.want || plan.Target != c.target || plan.Keep != (c.target == header.Unknown) {
			t.Errorf("%s: %s, to %s; want %s, to %s", c.name, got, plan.Target, c.want, c.target)
		}
		if plan.Keep != (plan.Decision.Reason != "") {
			t.Errorf("%s: kept: %v, %+v", c.name, plan.Keep, plan.Decision)
		}
		for _, o := range plan.Outcomes {
			if o.Decision.Reason == "" || o.Decision.Settled != (o.Decision.Code != NotTried) {
				t.Errorf("%s: %+v", c.name, o)
			}
		}
	}
}

// Nothing about one format depends on which others were asked for: a marker holds for whoever comes next.
func TestOutcomesDoNotDependOnEachOther(t *testing.T) {
	all := []header.Format{header.AVIF, header.HEIC, header.WebP}
	for name, info := range map[string]header.Info{
		"photo": photo(), "12 MP": sized(photo(), 4000, 3000), "60 MP": sized(photo(), 10_000, 6000),
		"animation": animation(), "drawing": drawing(), "panorama": sized(photo(), 20_000, 100),
	} {
		for _, png := range []string{PNGAuto, PNGLossless} {
			alone := map[header.Format]Code{}
			for _, f := range all {
				plan := MakePlan(info, 1000, Options{Formats: []header.Format{f}, Quality: 80, PNG: png}, DefaultConfig())
				alone[f] = plan.Outcomes[0].Decision.Code
			}
			plan := MakePlan(info, 1000, Options{Formats: all, Quality: 80, PNG: png}, DefaultConfig())
			for _, o := range plan.Outcomes {
				if o.Decision.Code != NotTried && o.Decision.Code != alone[o.Format] {
					t.Errorf("%s: %s among others, %s alone", name, o.Decision.Code, alone[o.Format])
				}
			}
		}
	}
}

// What one attempt teaches about the formats that are left.
func TestLearning(t *testing.T) {
	for code, want := range map[Code]string{
		Converted:    "avif converted, heic not_tried, webp not_tried",
		NotSmaller:   "avif not_smaller, heic not_tried, webp not_tried",
		Graphic:      "avif graphic, heic not_tried, webp not_tried",
		EncodeFailed: "avif encode_failed, heic not_tried, webp not_tried",
		Mismatch:     "avif mismatch, heic not_tried, webp not_tried",
		QueueFull:    "avif queue_full, heic queue_full, webp not_tried", // the same workers
		Broken:       "avif broken, heic broken, webp broken",
		OddCanvas:    "avif odd_canvas, heic odd_canvas, webp odd_canvas",
		Crashed:      "avif crashed, heic crashed, webp crashed",
		Timeout:      "avif timeout, heic timeout, webp timeout",
		OutOfMemory:  "avif out_of_memory, heic out_of_memory, webp out_of_memory",
		Quarantined:  "avif quarantined, heic quarantined, webp quarantined",
		Unavailable:  "avif unavailable, heic unavailable, webp not_tried",
	} {
		p := newPassing([]header.Format{header.AVIF, header.HEIC, header.WebP})
		p.learn(header.AVIF, Decide(code, "so it was"))
		if got := inOrder(p); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestSumOfOutcomes(t *testing.T) {
	list := func(codes ...Code) passing {
		formats := []header.Format{header.AVIF, header.HEIC, header.WebP}
		p := newPassing(formats[:len(codes)])
		for i, c := range codes {
			p.set(formats[i], Decide(c, "for "+string(c)))
		}
		return p
	}
	for _, c := range []struct {
		outcomes passing
		want     Decision
	}{
		{nil, Decision{NotAccepted, "the viewer takes no lighter format", true}},
		{list(NotSmaller), Decision{NotSmaller, "for not_smaller", true}},
		{list(TooSlow, NotSmaller), Decision{NotSmaller, "for too_slow; for not_smaller", true}},
		{list(TooSlow, TooSlow), Decision{TooSlow, "for too_slow", true}},
		// One that may do better in a moment keeps the whole open.
		{list(QueueFull, NotSmaller), Decision{QueueFull, "for queue_full; for not_smaller", false}},
		{list(NotSmaller, QueueFull), Decision{QueueFull, "for not_smaller; for queue_full", false}},
		{list(Timeout, QueueFull, TooWide), Decision{QueueFull, "for timeout; for queue_full; for too_wide", false}},
	} {
		if got := c.outcomes.sum(); got != c.want {
			t.Errorf("%s: %+v, want %+v", inOrder(c.outcomes), got, c.want)
		}
	}
}

// A worker that crashes has crashed on the picture: no further format is tried with it.
func TestFaultIsTheOutcomeOfAllFormats(t *testing.T) {
	p := newPool(t, nil, WithCommand("/proc/self/exe", faultyCommand))
	r := convertOne(t, p, faultyJPEG("crash"), Options{Formats: formatsOf(t, "avif webp"), Quality: 80})
	if got := inOrder(r.Outcomes); got != "avif crashed, webp crashed" || !r.Decision.Settled {
		t.Errorf("%s: %+v", got, r.Decision)
	}
}

// A format that this machine cannot write is said to be missing, with what to install, and passed over.
func TestMissingEncoder(t *testing.T) {
	p := newPool(t, nil, WithCommand("/proc/self/exe", poorCommand))
	formats := formatsOf(t, "avif heic webp")
	err := p.CheckEncoders(t.Context(), formats)
	var missing MissingEncoder
	if !errors.As(err, &missing) || missing.Format != header.AVIF || strings.Contains(err.Error(), "heic cannot") {
		t.Errorf("%v", err)
	}
	if !strings.Contains(err.Error(), "libheif-plugin-aomenc") {
		t.Errorf("no remedy in %q", err)
	}
	if err := p.CheckEncoders(t.Context(), formatsOf(t, "webp")); err != nil {
		t.Error(err)
	}
	r := convertOne(t, p, samplePhoto(), Options{Formats: formatsOf(t, "avif webp"), Quality: 80})
	if got := inOrder(r.Outcomes); got != "avif no_encoder, webp converted" {
		t.Errorf("%s", got)
	}
}

func TestEncodersOfThisMachine(t *testing.T) {
	p := newPool(t, nil)
	if err := p.CheckEncoders(t.Context(), formatsOf(t, "webp avif heic")); err != nil {
		t.Errorf("%v", err)
	}
	err := p.CheckEncoders(t.Context(), []header.Format{header.JXL, header.WebP})
	if err == nil || !strings.Contains(err.Error(), "jxl") {
		t.Errorf("%v", err)
	}
	p.Close()
	if err := p.CheckEncoders(t.Context(), formatsOf(t, "avif")); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestAboutFormat(t *testing.T) {
	about := []Code{NotSmaller, TooSlow, Graphic, NoEncoder, EncodeFailed, Mismatch, QueueFull, Unavailable}
	for _, c := range []Code{
		Converted, NotSmaller, NotTried, NotConvertible, Broken, Truncated, DecodeFailed, OddCanvas, EncodeFailed, Mismatch, Graphic,
		NoEncoder, Crashed, OutOfMemory, Timeout, Quarantined, QueueFull, Unavailable, TooSlow,
	} {
		if c.aboutFormat() != slices.Contains(about, c) {
			t.Errorf("%s: %v", c, c.aboutFormat())
		}
	}
}
