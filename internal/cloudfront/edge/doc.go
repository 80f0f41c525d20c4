// Package edge is the data plane of the CloudFront double: an HTTP server that
// serves viewers as an edge does, by the distributions that package cloudfront
// holds, in the configuration that has propagated. StartSample brings up both
// planes with a distribution as the set-up guide would have it.
//
// Comments say of each rule whether it is documented by AWS, or concluded where
// AWS says nothing; there, the choice is what hurts karui most.
//
// # What it does
//
//   - Distributions are told apart by Host: their own domain, aliases, aliases
//     with a wildcard; any other host is refused or goes to Options.Distribution.
//   - Behaviours by path pattern, in order; allowed methods (403 else), viewer
//     protocol policy, the default root object, limits of 20,480 bytes for a
//     request and 8,192 for its URL.
//   - A viewer-request CloudFront Function really runs, with a time limit, and may
//     change URI, query, headers and cookies or answer itself.
//   - The cache key is distribution, path, and what the cache policy (or the older
//     ForwardedValues) names of headers, query and cookies; header values are
//     compared as text, Vary plays no part. Accept-Encoding is reduced to br and
//     gzip if the policy asks for it.
//   - What goes to the origin: the raw path and the chosen query, keyed headers and
//     those of the origin request policy, the viewer's conditions and range when
//     there is no object, custom headers over the viewer's, Host, User-Agent, Via,
//     X-Forwarded-For, X-Amz-Cf-Id; over HTTP/1.1, plain or TLS.
//   - MinTTL, DefaultTTL and MaxTTL against Cache-Control and Expires; the error
//     caching minimum TTL; stale answers on 5xx and timeouts, bounded by
//     stale-if-error; stale-while-revalidate; revalidation with the ETag and date
//     of whoever answered before.
//   - Origin groups: failover on the chosen statuses and on failed or silent
//     connections, for GET, HEAD and OPTIONS, from the first member anew with
//     every request; connection attempts, connection and response timeouts.
//   - Requests for one key are collapsed; each viewer follows the body at its own
//     speed. What may not be shared is fetched by each for itself.
//   - A body cut short is cut for the viewers too and not kept, but for one without
//     any length, which is kept as if it were whole. What nobody waits for any
//     more is given up.
//   - HEAD is answered from a whole object; ranges are cut from one; 304 to viewers.
//   - Invalidations, once complete: also of what was on its way by then.
//   - X-Cache, Age, Via, X-Amz-Cf-Id and pages of its own for 403, 413, 414, 502,
//     503 and 504.
//
// Bodies are never waited for. Memory is bounded: answers kept and on their way
// share a budget, least recently used ones go first, and a body that finds no
// room streams through a small window at the pace of its slowest viewer. Every
// wait has a limit, and Close ends everything that was begun.
//
// # What it leaves out
//
// One edge with one cache: no points of presence, regional caches or Origin
// Shield. No TLS towards viewers (an http.Server with TLS may hold the Edge), no
// HTTP/2 or 3, WebSockets or gRPC. No compression by the edge, custom error pages,
// response headers policies, signed URLs, Lambda@Edge, viewer-response functions,
// key-value stores, geo restriction, WAF or logs. S3 origins are asked unsigned,
// over HTTP. A media-quality-based group is treated as one by order. Parts of
// objects are not cached, several ranges in one request get the whole. Functions
// run in a newer ECMAScript than CloudFront's and without its memory limit.
package edge
