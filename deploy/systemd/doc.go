// Package systemd holds the units of karui and karui-watchdog, and as tests the rules
// that they keep: a user and one folder to write to for each, no way to more rights,
// restarts that go on but are bounded, time to drain, and limits that fit the
// programs' own.
//
// That they start and serve under these restrictions is shown by the test of
// deploy/deb, in a booted machine.
package systemd
