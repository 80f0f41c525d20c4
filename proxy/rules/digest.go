package rules

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest is a name for bytes: the first 16 of their SHA-256. 128 bits leave no
// room for two files of one name by chance.
type Digest [16]byte

// DigestOf names the bytes.
func DigestOf(body []byte) Digest {
	sum := sha256.Sum256(body)
	return Digest(sum[:16])
}

// ETag is the strong entity tag of a variant with these bytes. The prefix tells
// karui's tags from the origin's.
func (d Digest) ETag() string { return `"k-` + hex.EncodeToString(d[:]) + `"` }
