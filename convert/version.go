package convert

import "github.com/davidbyttow/govips/v2/vips"

// LibvipsVersion tells which libvips the process runs with, without starting it.
func LibvipsVersion() string { return vips.Version }
