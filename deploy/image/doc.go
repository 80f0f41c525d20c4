// Package image holds the rules that the Dockerfile of this repository keeps, as
// tests: pinned bases and no root, nothing left of package lists, commands without
// a shell, one folder to write to, a health check, no secrets, and a build context
// that holds what the programs are built from and nothing else.
//
// That the images build and run is shown by scripts/image-check, which needs root
// and debootstrap.
package image
