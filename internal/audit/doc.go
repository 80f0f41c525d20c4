// Package audit finds out what a site would save: it takes the images of pages,
// folders and files, converts them as the proxy would, scores how much alike the
// originals and their variants look, and writes one page about it.
//
// Guaranteed:
//
//   - Decisions and totals are those of package batch, and so of `karui convert`.
//   - No pixel is decoded in this process: originals and variants are decoded by the
//     workers of package convert, and arrive as so many numbers.
//   - What a page says makes nobody ask for more than the limits allow: images in
//     number, in bytes each and in all, time each and in all, redirects. Only HTTP and
//     HTTPS are asked, and an HTML file on disk reaches only files below its folder.
//   - The page loads nothing, holds nothing of the audited pages but pictures and text,
//     and runs only its own script, by which its tables are sorted; all else works
//     without. Pictures are JPEG, PNG, GIF, WebP or AVIF, never SVG. Its size is bounded.
//
// Not guaranteed: that images which only scripts or style sheets name are found. Addresses of
// private networks are asked like others, for whoever starts an audit means that page.
package audit
