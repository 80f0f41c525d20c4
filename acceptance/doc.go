// Package acceptance holds the black-box tests of the karui binary: they build
// it, start it with a configuration file in front of a misbehaving origin, and
// look at nothing but what goes over its sockets, into its log and onto its disk.
//
// They know the contract, not the code: no package of the proxy is imported.
// KARUI_TEST_BINARY names a binary to test instead of building one, and
// KARUI_TEST_RACE=1 builds it with the race detector. Speed is not tested here.
package acceptance
