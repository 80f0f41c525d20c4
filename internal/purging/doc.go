// Package purging runs purges as operators ask for them: first at the proxy, then at
// the edge, as routes of the API and as a page.
//
// Guaranteed:
//
//   - The edge is asked only after the proxy has acknowledged: what the edge fetches
//     anew is new. A purge that the proxy could not take is an error, and the edge is
//     left alone.
//   - What has been answered is not lost: the part at the edge is written to the state
//     folder first, and goes on after a restart. It is not done twice, since CloudFront
//     knows a batch by its reference.
//   - CloudFront's quotas of what may be in progress for a distribution are kept, by
//     all sites that share it together, and its pace. What others have in progress there
//     is waited for.
//   - A token for some sites purges these and sees nothing of others.
//   - Everything is bounded: the length and number of prefixes, of purges that wait and
//     that are remembered, every call and every wait.
//
// Not guaranteed: when the edge has forgotten. CloudFront takes seconds to minutes; a
// purge that fails there says why and what to do, and stays done at the proxy.
package purging
