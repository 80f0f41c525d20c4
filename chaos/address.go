package main

import (
	"fmt"
	"math/rand/v2"
)

// loopback is an address out of 127.0.0.0/8 that nothing else is likely to use,
// so that a port on it can be left for a while and taken again.
func loopback() string {
	return fmt.Sprintf("127.%d.%d.%d", 10+rand.IntN(240), rand.IntN(256), 1+rand.IntN(254))
}
