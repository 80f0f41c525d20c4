//go:build !race

package watchdog_test

const manySites = 1000
