// Package deb makes the Debian packages of karui and karui-watchdog: the lists of
// what is in them and the scripts that dpkg runs. scripts/deb puts them together.
//
// Its test installs both packages in a fresh Debian, boots that in a container with
// its own systemd, and goes through first start, requests, upgrade, removal and
// purge. It needs root, debootstrap and systemd-nspawn, and skips without them.
// Nothing is kept of it, and nothing outside of its folder is written.
//
// Not shown by it: other releases of Debian than that of the machine it runs on, and
// other architectures.
package deb
