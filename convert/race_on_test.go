//go:build race

package convert

// raceDetector: everything that this process does itself is ten times slower, so pictures are compared without it.
const raceDetector = true
