//go:build !sabotage

// Package sabotage holds the faults that can be built into karui on purpose, so
// that the proof of its promise (package chaos) can be seen to fail. Only a
// binary built with the tag "sabotage" has them; in every other one the constants
// below are false, and the compiler leaves nothing of what depends on them.
package sabotage

// See on.go for what each fault does.
const (
	Vary        = false
	ForeignETag = false
	Truncated   = false
	SetCookie   = false
	Keep503     = false
	OldPicture  = false
	LostPurge   = false
)
