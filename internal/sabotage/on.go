//go:build sabotage

package sabotage

import "os"

// Variable names the fault that is to be committed; no other value does anything.
const Variable = "KARUI_SABOTAGE"

var (
	// Vary leaves Vary out of every answer.
	Vary = chosen("vary")
	// ForeignETag answers 304 to whatever ETag a client asks with.
	ForeignETag = chosen("foreign-etag")
	// Truncated keeps only the first half of what is put into the cache.
	Truncated = chosen("truncated")
	// SetCookie shares and keeps answers that set a cookie.
	SetCookie = chosen("set-cookie")
	// Keep503 lets caches keep a 503 for a minute.
	Keep503 = chosen("keep-503")
	// OldPicture lets purges miss variants.
	OldPicture = chosen("old-picture")
	// LostPurge lets purges hold until the next start only, without saying so.
	LostPurge = chosen("lost-purge")
)

func chosen(fault string) bool { return os.Getenv(Variable) == fault }
