// Package origin fetches originals: [Places] speak to all places of a site, one
// [Client] to one address of a place, be it an HTTP server or an S3 bucket.
//
// Guaranteed:
//
//   - A request that failed before its first byte has one second try at most, GET
//     and HEAD alone, within the same origin.deadline; never at a place that said 429
//     or 503, and never after a byte was handed on. Package retry decides.
//   - The last usable place is never left, and a sole address is asked as a Client
//     would ask it.
//   - Requests under way to one place are bounded.
//   - Only the configured address is dialled. Nothing in a request can change
//     the host, the scheme or the name that certificates are checked for;
//     redirects are handed back, proxy variables of the environment are ignored.
//   - The request target reaches a server byte for byte, behind the base path of
//     the configured URL; a bucket is asked for the object that the path names.
//   - Every wait has a limit: connecting (TLS included), the time to the first
//     byte, the pause between two reads of a body, and a whole fetch.
//   - A body that ends before its declared length, or before its last chunk, ends
//     with an error that is io.ErrUnexpectedEOF, never with io.EOF.
//   - Bodies pass as they came: nothing is decompressed behind the caller's back.
//   - Every failure is an [*Error] with a [Kind], and its text names neither the
//     request target nor any header's value.
//
// Not guaranteed: that a close-delimited body is whole (see [UntilClose]); nothing on
// the wire tells. Names are resolved for each new connection and never
// remembered here, but a kept connection stays with its address: idle ones for
// up to 90 s, busy ones for up to 5 minutes.
package origin
