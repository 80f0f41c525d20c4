package warm

import "time"

// Limits bound what documents can make a run do.
type Limits struct {
	// Sitemap and Page are the bytes of one document, after unpacking. The protocol of
	// sitemaps allows 50 MiB.
	Sitemap, Page int64
	// Sitemaps and Pages are how many documents are fetched, Depth how far an index of
	// sitemaps may be from the first.
	Sitemaps, Pages, Depth int
	// Bytes and Addresses bound all documents together: their bytes, unpacked, and the
	// addresses in them, of whatever host. When one is spent, nothing more is fetched.
	Bytes     int64
	Addresses int
	// Images is how many images are asked for, and Kept how long their addresses may be
	// together, in bytes.
	Images int
	Kept   int64
	// Fetch is how long one document may take.
	Fetch time.Duration
	// Failures is how many failures are told in full; all are counted.
	Failures int
}

// DefaultLimits returns the usual bounds.
func DefaultLimits() Limits {
	return Limits{
		Sitemap: 50 << 20, Page: 10 << 20, Sitemaps: 10_000, Pages: 100_000, Depth: 4,
		Bytes: 64 << 30, Addresses: 50_000_000,
		Images: 200_000, Kept: 256 << 20, Fetch: 30 * time.Second, Failures: 100,
	}
}

// maxAddress bounds an address, in bytes; the protocol of sitemaps allows 2,048, and
// CloudFront 8,192.
const maxAddress = 8192
