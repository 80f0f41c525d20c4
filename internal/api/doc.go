// Package api is the operators' API of karui: a table of routes below /api/v1,
// who may use which of them, and the form of answers and errors.
//
// A package that has something to be asked or told gives [Route] values, and the
// server that wires it puts them into [New].
//
// Guaranteed:
//
//   - No handler runs for a caller without the route's right. Where tokens are
//     configured, every request needs one, in Authorization: Bearer and nowhere
//     else; they are compared in constant time, and a peer that sends wrong ones is
//     held up.
//   - A web page that an operator has open elsewhere cannot use the API: requests
//     from other origins are refused, and so are host names that are not this
//     machine's where no token is needed.
//   - Every answer is JSON, and every error has a code that does not change, a
//     message and, where there is one, the remedy.
//   - Bodies are bounded. Every change is logged with the token's name.
//
// Not guaranteed: that the caller's network is private. Beyond this machine the
// API belongs behind TLS or into a network of the operators' own.
package api
