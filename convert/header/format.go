package header

// Format is a kind of file, told by its first bytes.
type Format uint8

// The formats that [Sniff] tells apart. The numbers are not stable; the names of [Format.String] are.
const (
	Unknown Format = iota
	JPEG
	PNG
	GIF
	WebP
	AVIF
	HEIC
	JXL
	SVG
	BMP
	TIFF
	PDF
)

type formatNames struct{ name, contentType, extension string }

var names = [...]formatNames{
	Unknown: {"unknown", "application/octet-stream", ""},
	JPEG:    {"jpeg", "image/jpeg", ".jpg"},
	PNG:     {"png", "image/png", ".png"},
	GIF:     {"gif", "image/gif", ".gif"},
	WebP:    {"webp", "image/webp", ".webp"},
	AVIF:    {"avif", "image/avif", ".avif"},
	HEIC:    {"heic", "image/heic", ".heic"},
	JXL:     {"jxl", "image/jxl", ".jxl"},
	SVG:     {"svg", "image/svg+xml", ".svg"},
	BMP:     {"bmp", "image/bmp", ".bmp"},
	TIFF:    {"tiff", "image/tiff", ".tiff"},
	PDF:     {"pdf", "application/pdf", ".pdf"},
}

func (f Format) row() formatNames {
	if int(f) < len(names) {
		return names[f]
	}
	return names[Unknown]
}

// String returns the name that configuration, logs and metrics use: "jpeg", "webp", ...
func (f Format) String() string { return f.row().name }

// ContentType returns the media type, "application/octet-stream" for [Unknown].
func (f Format) ContentType() string { return f.row().contentType }

// Extension returns the usual file name extension with its dot, "" for [Unknown].
func (f Format) Extension() string { return f.row().extension }

// Convertible reports whether originals of this format may be converted at all: JPEG, PNG and GIF are. [Parse]
// reads the headers of these and of no others.
func (f Format) Convertible() bool { return f == JPEG || f == PNG || f == GIF }

// ParseFormat returns the format of a name as [Format.String] gives it; "unknown" is not a name.
func ParseFormat(name string) (Format, bool) {
	for f := JPEG; int(f) < len(names); f++ {
		if names[f].name == name {
			return f, true
		}
	}
	return Unknown, false
}
