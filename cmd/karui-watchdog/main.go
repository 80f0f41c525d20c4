// Command karui-watchdog looks after karui from outside: when the proxy is down, it
// puts the true origin first in the CloudFront distribution, tells the operators,
// and puts the proxy back when it is well.
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
