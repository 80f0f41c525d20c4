package proxy

import (
	"net/http"
	"slices"
	"strings"

	"karui/convert/header"
	"karui/proxy/rules"
)

// computed are the origin's fields that an answer for a convertible path does
// not repeat: they are about the fetch, about lifetimes that karui computes
// itself, or about a representation of which there are several.
var computed = []string{
	"Accept-Ranges", "Age", "Cache-Control", "Content-Length", "Date", "Etag", "Expires", "Last-Modified", "Pragma",
	"Warning", didHeader, savedHeader, reasonHeader, keptHeader,
}

// sandbox keeps a document from running scripts. It goes with every body whose
// type karui corrected to one that a browser may run: on the origin, the wrong
// type kept an uploaded page or SVG harmless.
const sandbox = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

// originalFields gives the fields for an answer with the original's bytes.
func originalFields(h http.Header, c content) http.Header {
	fields := withoutFields(h, computed...)
	if c.mediaType != "" {
		fields["Content-Type"] = []string{c.mediaType}
	}
	if c.relabelled {
		fields["X-Content-Type-Options"] = []string{"nosniff"}
		if !c.image || c.format == header.SVG {
			fields["Content-Security-Policy"] = []string{sandbox}
		}
	}
	fields["Vary"] = []string{rules.VaryAccept(h["Vary"])}
	return fields
}

// keptOnVariants are the origin's fields that hold for a variant, too, besides
// Access-Control-*.
var keptOnVariants = []string{"Cross-Origin-Resource-Policy", "Timing-Allow-Origin", "X-Robots-Tag", "Link"}

// variantFields gives the fields for a variant, from those of its original.
func variantFields(original http.Header, path string, f header.Format) http.Header {
	fields := http.Header{
		"Content-Type":           {f.ContentType()},
		"Content-Disposition":    {rules.Inline(path, f.Extension())},
		"X-Content-Type-Options": {"nosniff"},
		"Vary":                   {rules.VaryAccept(original["Vary"])},
	}
	for name, values := range original {
		if strings.HasPrefix(name, "Access-Control-") {
			fields[name] = values
		}
	}
	for _, name := range keptOnVariants {
		if values := original[name]; len(values) > 0 {
			fields[name] = values
		}
	}
	return fields
}

// asIsFields gives the fields of an answer that goes out as the origin said it.
// On a path with variants the date of one representation is left out.
func asIsFields(h http.Header, negotiated bool) http.Header {
	if negotiated {
		return withoutFields(h, "Content-Length", "Last-Modified", didHeader, savedHeader, reasonHeader, keptHeader)
	}
	return withoutFields(h, "Content-Length", didHeader, savedHeader, reasonHeader, keptHeader)
}

// withoutFields gives a header without the named fields; h stays as it is.
func withoutFields(h http.Header, names ...string) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		if !slices.Contains(names, name) {
			out[name] = values
		}
	}
	return out
}
