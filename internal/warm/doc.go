// Package warm fills karui's cache: it finds the images of a site in sitemaps, pages
// and lists, and asks the proxy for each of them as the edge would, in every format
// of the site, until the answer is a settled one.
//
// Guaranteed:
//
//   - What sitemaps and pages say bounds nothing but itself: documents, what they
//     unpack to, their number and depth, and the images in them all have limits, and
//     nobody is asked but the proxy, the site's own hosts and the hosts that the
//     caller named.
//   - No more requests than the rate allows, those for pages included. A proxy that
//     turns requests away, cannot be reached or says that it is under load is left
//     alone for growing pauses, and asked by one request at a time until it answers
//     well again.
//   - What was settled is in the state file within seconds, whole at any time, and a
//     later run does not ask for it again before it is too old.
//   - Every wait has an end: each image has a number of tries, and a proxy that gives
//     no good answer for long ends the run.
//
// Not guaranteed: that what was warmed stays in the cache (it may be evicted or
// purged), and images that only a script puts into a page are not found.
package warm
