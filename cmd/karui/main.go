// Command karui is the origin proxy and the tools of its operator.
//
// Every command ends with 0 (good), 1 (failed) or 2 (wrong usage or
// configuration). What a command answers goes to stdout; what it has to say
// about its work, errors included, goes to stderr.
package main

import (
	"os"

	"karui/internal/command"
)

func main() { os.Exit(command.Main(newRoot())) }
