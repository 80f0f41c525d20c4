package origin

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxKey is S3's own bound on a key, in bytes.
const maxKey = 1024

// bucketName is what S3 takes as a name: 3 to 63 lower-case letters, digits, dots
// and dashes.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// parseS3 reads s3://bucket/prefix. The prefix is taken as it is written, as
// other tools do, and ends before its last slashes.
func parseS3(raw string) (bucket, prefix string, err error) {
	rest, ok := strings.CutPrefix(raw, "s3://")
	if !ok {
		return "", "", errors.New("is no bucket: write s3://bucket/prefix")
	}
	bucket, prefix, _ = strings.Cut(rest, "/")
	prefix = strings.TrimRight(prefix, "/")
	switch {
	case !bucketName.MatchString(bucket):
		return "", "", fmt.Errorf("names the bucket %q: write s3://bucket/prefix", bucket)
	case !utf8.ValidString(prefix) || strings.ContainsAny(prefix, "?#\x00\r\n") || len(prefix) > maxKey/2:
		return "", "", fmt.Errorf("has a prefix that cannot be used: at most %d bytes, without ? and #", maxKey/2)
	}
	return bucket, prefix, nil
}

// objectKey gives the key of the object that a target names: the target's path
// without its leading slash and percent-decoded, behind the prefix. A plus sign is
// a plus sign. The query says nothing about a key, and is left out: S3 would take
// parts of it for commands.
func objectKey(prefix, target string) (string, error) {
	path, _, _ := strings.Cut(target, "?")
	clear, err := url.PathUnescape(strings.TrimPrefix(path, "/"))
	switch {
	case err != nil:
		return "", errors.New("the path has a broken percent sign, which names no object")
	case !utf8.ValidString(clear):
		return "", errors.New("the path is not UTF-8, which names no object")
	case slices.Contains(strings.Split(clear, "/"), ".."):
		// Some stores take it for a way up, out of the prefix and even of the bucket.
		return "", errors.New("the path climbs, which names no object")
	case clear == "":
		return "", errors.New("the path names no object, and a bucket is not listed")
	}
	if prefix != "" {
		clear = prefix + "/" + clear
	}
	if len(clear) > maxKey {
		return "", fmt.Errorf("the path is longer than a key may be (%d bytes)", maxKey)
	}
	return clear, nil
}

// escapeKey writes a key into a path as S3 signs it: everything but unreserved
// characters and slashes in upper-case percent codes.
func escapeKey(key string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~', c == '/':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// asked are the headers of a request that S3 has an answer to.
var asked = []string{
	"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
	"Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers",
}

// objectHeaders gives what of a request's headers is sent to a bucket. Everything
// else, X-Amz-* above all, would be taken for a command or break the signature.
// Range goes only without If-Range, which S3 does not know: it would answer with a
// part of whatever the object is now.
func objectHeaders(own http.Header) http.Header {
	h := make(http.Header, 8)
	for _, name := range asked {
		if values := own[name]; len(values) > 0 {
			h[name] = values
		}
	}
	// The date counts only without the tag (RFC 9110 section 13.1), which some
	// stores do not know.
	if len(h["If-None-Match"]) > 0 {
		delete(h, "If-Modified-Since")
	}
	if len(h["If-Match"]) > 0 {
		delete(h, "If-Unmodified-Since")
	}
	if values := own["Range"]; len(values) == 1 && len(own["If-Range"]) == 0 {
		h["Range"] = values
	}
	return h
}
