package audit

import "time"

// Limits bound what pages can make an audit do.
type Limits struct {
	// Images is how many images of pages are fetched.
	Images int
	// Page is the bytes of one page, Bytes those of one image, Total those of all images.
	Page, Bytes, Total int64
	// Fetch is how long one answer may take, All how long all may take together.
	Fetch, All time.Duration
	// Parallel is how many are fetched at a time.
	Parallel int
}

// DefaultLimits returns the usual bounds.
func DefaultLimits() Limits {
	return Limits{
		Images: 200, Page: 10 << 20, Bytes: 32 << 20, Total: 512 << 20,
		Fetch: 30 * time.Second, All: 10 * time.Minute, Parallel: 4,
	}
}

// maxRedirects bounds the redirects of one address.
const maxRedirects = 5
