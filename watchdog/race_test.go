//go:build race

package watchdog_test

// manySites is fewer under the race detector, which makes a thousand clients of
// AWS take minutes.
const manySites = 200
