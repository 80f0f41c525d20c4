// Package picture is the second opinion on images: it renders originals and
// decodes variants without libvips, which makes the variants, and says whether the
// two show the same picture.
//
// Guaranteed: WebP, JPEG, PNG and GIF are decoded by Go's own decoders, animations
// and orientation included; where Go refuses a file, or a colour profile has to be
// applied, ImageMagick is asked; AVIF and HEIC are decoded by avifdec or
// heif-convert. Pictures are compared by the mean colour of small areas, so what
// an encoder does to noise and edges does not count, but place, colour,
// transparency, size, number of frames and timing do.
//
// Not guaranteed: a judgement of quality, or of differences smaller than about a
// fiftieth of the picture's side. It is for tests and for the proof in package
// chaos; it bounds neither time nor memory against hostile files.
package picture
