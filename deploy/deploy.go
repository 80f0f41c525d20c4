// Package deploy holds what is installed beside karui and is also tried out in
// its tests and its demonstration, so that what was tested is what ships.
package deploy

import _ "embed"

// NormaliseAccept is the source of the CloudFront Function that reduces a
// viewer's Accept header to one of four values.
//
//go:embed cloudfront/normalise-accept.js
var NormaliseAccept string
