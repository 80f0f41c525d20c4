//go:build !race

package convert

const raceDetector = false
