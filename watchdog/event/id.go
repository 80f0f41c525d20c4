package event

import (
	"crypto/rand"
	"strings"
	"time"
)

// NewID makes an ID that sorts by time.
func NewID(at time.Time) string {
	return at.UTC().Format("20060102t150405") + "-" + strings.ToLower(rand.Text()[:13])
}
