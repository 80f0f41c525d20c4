package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

const (
	// maxKeyBytes bounds a key's four parts together. Requests carry 32 KiB of
	// headers at most by default, so nothing that is legal comes near.
	maxKeyBytes = 64<<10 - 1
	// MaxAttributes bounds Meta.Attributes, in bytes.
	MaxAttributes = 64 << 10
)

// Key names an entry. The parts are raw bytes and may hold anything; two keys are
// the same only if all four parts are.
type Key struct {
	// Site is the site's id.
	Site string
	// Path is the request path as it came, without the query: what the prefixes
	// of a purge match.
	Path string
	// Rest is whatever else tells one fetch from another: keyed query, keyed headers.
	Rest string
	// Form is the kind of entry under a fetch: "original", "webp", ...
	Form string
}

// String is for logs; it quotes the parts and is no identity.
func (k Key) String() string { return fmt.Sprintf("%q %q %q %q", k.Site, k.Path, k.Rest, k.Form) }

func (k Key) size() int { return len(k.Site) + len(k.Path) + len(k.Rest) + len(k.Form) }

func (k Key) check() error {
	if n := k.size(); n > maxKeyBytes {
		return fmt.Errorf("%w: key of %d bytes, at most %d are kept", ErrTooLarge, n, maxKeyBytes)
	}
	return nil
}

// hash is the name of a key's file and its place in the index: SHA-256, cut to
// 128 bits. The full key is compared on every read, so a collision is a miss.
type hash [16]byte

func (k Key) hash() hash {
	var stack [512]byte
	b := stack[:0]
	for _, part := range [...]string{k.Site, k.Path, k.Rest, k.Form} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	return hash(sum[:16])
}

// String is the file name: 32 lower-case hexadecimal digits.
func (h hash) String() string { return hex.EncodeToString(h[:]) }

// parseHash reads a file name back; false is not a name that this package gives.
func parseHash(name string) (h hash, ok bool) {
	if len(name) != 2*len(h) {
		return h, false
	}
	for i := range h {
		hi, ok1 := hexDigit(name[2*i])
		lo, ok2 := hexDigit(name[2*i+1])
		if !ok1 || !ok2 {
			return h, false
		}
		h[i] = hi<<4 | lo
	}
	return h, true
}

// hexDigit takes lower case only, so that every hash has one name.
func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

// Meta is what is kept beside a body.
type Meta struct {
	// FetchStart is when the fetch began that the body, or the last word on it,
	// came from. It orders Puts, Updates and Deletes of one key and must be set.
	FetchStart time.Time
	// BodyStart is when the fetch began that the body came from, or what the body was
	// made of: the same as FetchStart or earlier. Zero is the same. Update leaves it as
	// it was stored, whatever it is told: an origin's word that a picture is still good
	// does not make its bytes younger. It is what a purge goes by.
	BodyStart time.Time
	// Expires is when the entry becomes useless: from then on it is a miss and may
	// be removed. Zero is never. (When an answer turns stale is the caller's
	// business and belongs in Attributes.)
	Expires time.Time
	// Attributes are opaque to the cache, at most MaxAttributes bytes.
	Attributes []byte
}

// The times that fit the file format: nanoseconds since 1970 in 63 bits.
var (
	firstTime = time.Unix(0, 1)
	lastTime  = time.Unix(0, 1<<63-1)
)

func (m Meta) check() error {
	if m.FetchStart.Before(firstTime) || m.FetchStart.After(lastTime) {
		return fmt.Errorf("cache: Meta.FetchStart is %v, want the time when the fetch began", m.FetchStart)
	}
	if n := len(m.Attributes); n > MaxAttributes {
		return fmt.Errorf("%w: %d bytes of attributes, at most %d are kept", ErrTooLarge, n, MaxAttributes)
	}
	return nil
}

// Born is when the fetch began that the body came from.
func (m *Meta) Born() time.Time {
	if m.BodyStart.IsZero() || m.BodyStart.After(m.FetchStart) {
		return m.FetchStart
	}
	return m.BodyStart
}

func (m Meta) expired(now time.Time) bool { return !m.Expires.IsZero() && !now.Before(m.Expires) }

// toNano writes a checked time; zero stays zero and what lies outside is clamped.
func toNano(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Before(firstTime):
		return 1
	case t.After(lastTime):
		return 1<<63 - 1
	}
	return t.UnixNano()
}

func fromNano(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}
