// Package invalidation asks CloudFront to forget what lies below path prefixes,
// as far as that is about one distribution: which paths to name, in which batches,
// through which role, and what an error of AWS means.
//
// Guaranteed: the paths that [Paths] gives cover every object whose path begins
// with the prefix, with whatever query and in whatever format, and are ones that
// CloudFront takes; where it takes no path that fits, they cover more. A batch
// stays within the quotas of one that is alone. Nothing is called but
// sts:AssumeRole, cloudfront:CreateInvalidation and cloudfront:GetInvalidation, and
// a session that is assumed can do no more than these two on one distribution,
// whatever the role allows.
//
// Not guaranteed: anything about time. Who calls it decides what is tried again,
// and keeps the book of what is in progress.
package invalidation
