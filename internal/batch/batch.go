// Package batch converts files as the proxy would, and reports what was decided
// and why: the work of `karui convert`.
package batch
