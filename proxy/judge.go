package proxy

import (
	"bytes"
	"mime"
	"net/http"
	"strings"

	"karui/convert/header"
	"karui/proxy/origin"
	"karui/proxy/rules"
)

// row is the row of the table of answers that the head of a shared fetch leads to.
type row uint8

const (
	// rowImage: 200; the body decides what follows.
	rowImage row = iota + 1
	// rowGone: 404 or 410, remembered for the short lifetime.
	rowGone
	// rowAsIs: whatever goes to the viewers as the origin said it, and is not kept.
	rowAsIs
	// rowUnavailable: the origin failed, or spoke to karui and not to the viewer.
	rowUnavailable
)

// judge reads the head of the answer to f. Shared tells whether several viewers
// may have it.
func judge(f fetch, head *origin.Head) (r row, shared bool) {
	shared, _ = rules.Shareable(head.Header, f.varies())
	switch status := head.Status; {
	case overloaded(status), status < 200, status == http.StatusNotModified, status == http.StatusPartialContent:
		// Nobody asked for a part or with a condition, so 206 and 304 are no answer.
		return rowUnavailable, true
	case !shared:
		return rowAsIs, false
	case status == http.StatusOK:
		return rowImage, true
	case status == http.StatusNotFound, status == http.StatusGone:
		return rowGone, true
	}
	return rowAsIs, true
}

// content is what a body turned out to be.
type content struct {
	// format is told by the first bytes, Unknown for what is no image that karui knows.
	format header.Format
	// image is whether a browser would show it as one.
	image bool
	// mediaType is the Content-Type to answer with.
	mediaType string
	// relabelled is whether that is another than the origin's.
	relabelled bool
}

// inspect tells what a body is by its first bytes. A type that the origin
// declared is kept unless the bytes say otherwise.
func inspect(h http.Header, prefix []byte) content {
	declared := h.Get("Content-Type")
	media, _, err := mime.ParseMediaType(declared)
	if err != nil {
		media = ""
	}
	claims := strings.HasPrefix(media, "image/")
	if !identity(h) {
		// The bytes are those of the coding.
		return content{image: claims, mediaType: declared}
	}
	c := content{format: header.Sniff(prefix), mediaType: declared}
	switch c.format {
	case header.Unknown:
		if len(prefix) > 0 && (claims || media == "") {
			c.relabel(detect(prefix))
		}
		c.image = strings.HasPrefix(c.mediaType, "image/") && c.relabelled
	case header.PDF:
		c.relabel(c.format.ContentType())
	default:
		c.image = true
		if media != c.format.ContentType() && !alias(media, c.format) {
			c.relabel(c.format.ContentType())
		}
	}
	return c
}

func (c *content) relabel(mediaType string) {
	if mediaType == "" || mediaType == c.mediaType {
		return
	}
	c.mediaType, c.relabelled = mediaType, true
}

// detect gives the type of bytes that are no image known to header, "" where
// they do not tell. It is what browsers would do, and JSON besides.
func detect(prefix []byte) string {
	if text := bytes.TrimLeft(prefix, " \t\r\n"); len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		return "application/json"
	}
	if t := http.DetectContentType(prefix); t != "application/octet-stream" {
		return t
	}
	return ""
}

// alias tells whether a media type is an old name for the format.
func alias(media string, f header.Format) bool {
	switch f {
	case header.JPEG:
		return media == "image/jpg" || media == "image/pjpeg"
	case header.PNG:
		return media == "image/x-png"
	case header.BMP:
		return media == "image/x-ms-bmp" || media == "image/x-bmp"
	case header.HEIC:
		return media == "image/heif"
	}
	return false
}

func identity(h http.Header) bool {
	for _, coding := range rules.Tokens(h["Content-Encoding"]) {
		if coding != "identity" {
			return false
		}
	}
	return true
}
