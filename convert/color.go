package convert

import (
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
//
// A profile that matters and that libvips did not take over is an error: without it the colours would be others.
func settleColor(img *vips.ImageRef, info header.Info) ([]byte, error) {
	if img.Interpretation() == vips.InterpretationCMYK {
		return nil, img.TransformICCProfileWithFallback("srgb", "cmyk")
	}
	if !needsProfile(info) {
		return nil, nil
	}
	if !img.HasICCProfile() {
		return nil, refuseWith(DecodeFailed, "the decoder does not take the %s profile %q", info.Profile, info.ProfileName)
	}
	switch {
	case info.Profile == header.ProfileGray:
		return nil, grayToSRGB(img)
	case info.ProfileMatrix:
		return img.GetICCProfile(), nil
	}
	return nil, img.TransformICCProfileWithFallback("srgb", "srgb")
}

// needsProfile reports whether the pixels mean something else without their profile.
func needsProfile(info header.Info) bool {
	gray := info.Color == header.Gray
	fourInks := info.Color == header.CMYK || info.Color == header.YCCK
	switch info.Profile {
	case header.ProfileGray:
		return gray
	case header.ProfileCMYK:
		return fourInks
	case header.ProfileWide:
		// Grey with an RGB profile: decoders of PNG do not take that, those of JPEG do.
		return !fourInks && (!gray || info.Format == header.JPEG && info.ProfileMatrix)
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
