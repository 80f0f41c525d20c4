package convert

import (
	"bytes"

	"github.com/davidbyttow/govips/v2/vips"

	"karui/convert/header"
)

// settleColor makes the pixels sRGB, or returns the ICC profile that the variant must carry for them.
//
//   - CMYK and YCCK go through their profile to sRGB; without a usable one through libvips' general one.
//   - Grey with a grey profile goes through it to sRGB, and stays neutral.
//   - RGB with a profile of primaries and curves other than sRGB's keeps its pixels and the profile: nothing is
//     clipped to the smaller gamut of sRGB.
//   - RGB with a profile of look-up tables goes through it to sRGB. Such profiles are large, and their pixels can mean
//     anything (XYB), so that compressing them as if they were RGB would show.
//   - sRGB, no profile, a broken one or one for other samples: the pixels are taken as sRGB, as browsers do.
func settleColor(img *vips.ImageRef, info header.Info) ([]byte, error) {
	switch {
	case img.Interpretation() == vips.InterpretationCMYK:
		return nil, img.TransformICCProfileWithFallback("srgb", "cmyk")
	case info.Profile == header.ProfileGray && img.Bands() <= 2:
		return nil, grayToSRGB(img)
	case info.Profile == header.ProfileWide && info.ProfileMatrix:
		return bytes.Clone(img.GetICCProfile()), nil
	case info.Profile == header.ProfileWide && img.Bands() >= 3:
		return nil, img.TransformICCProfileWithFallback("srgb", "srgb")
	}
	return nil, nil
}

// needsProfile reports whether settleColor looks at the profile.
func needsProfile(info header.Info) bool {
	switch info.Profile {
	case header.ProfileGray:
		return info.Components <= 2
	case header.ProfileCMYK:
		return info.Components == 4
	case header.ProfileWide:
		return info.Color != header.CMYK && info.Color != header.YCCK
	}
	return false
}

// grayToSRGB leaves a picture of equal samples, or one sample: the way through the profile may leave a tint of one
// level, which would cost bytes.
func grayToSRGB(img *vips.ImageRef) error {
	alpha := img.HasAlpha()
	if err := img.TransformICCProfileWithFallback("srgb", "srgb"); err != nil {
		return err
	}
	if alpha || img.Bands() != 3 {
		return nil
	}
	if err := img.ExtractBand(1, 1); err != nil {
		return err
	}
	return img.ToColorSpace(vips.InterpretationSRGB)
}
