package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"os/exec"
	"strings"
)

// imageMagick is the second opinion on files that Go's decoders refuse, and the
// one on colour profiles. It is named by its path because the name is a common one.
const imageMagick = "/usr/bin/convert"

// errCut says that a decoder met the end of the file too early.
var errCut = errors.New("the file is cut off")

// errProfile says that an embedded colour profile makes no sense.
var errProfile = errors.New("the colour profile is broken")

// magick renders one frame with ImageMagick, the right way up and in sRGB.
func (j *Judge) magick(format string, b []byte, profiled bool) (Rendering, error) {
	args := []string{format + ":-[0]", "-auto-orient"}
	if profiled {
		if j.srgb == "" {
			return Rendering{}, errors.New("no sRGB profile at hand")
		}
		args = append(args, "-profile", j.srgb)
	}
	cmd := exec.Command(imageMagick, append(args, "-colorspace", "sRGB", "-depth", "8", "-write", "png32:-", "null:")...)
	cmd.Stdin = bytes.NewReader(b)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	for _, sign := range []string{"remature end", "Unexpected end", "UnexpectedEndOfFile", "insufficient image data", "CorruptImage"} {
		if strings.Contains(complaint.String(), sign) {
			return Rendering{}, fmt.Errorf("%w: %s", errCut, complaint.String())
		}
	}
	if strings.Contains(complaint.String(), "ColorProfileMismatch") {
		return Rendering{}, errProfile
	}
	if err != nil {
		return Rendering{}, fmt.Errorf("ImageMagick: %w: %s", err, complaint.String())
	}
	img, err := png.Decode(&out)
	if err != nil {
		return Rendering{}, fmt.Errorf("ImageMagick: %w: %s", err, complaint.String())
	}
	r := still(ToNRGBA(img))
	r.loose = 2
	return r, nil
}

// managed shows pixels of a profile in sRGB.
func (j *Judge) managed(img *image.NRGBA, profile []byte) (*image.NRGBA, error) {
	var plain bytes.Buffer
	if err := png.Encode(&plain, img); err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	packed.WriteString("iCCP....p\x00\x00")
	z := zlib.NewWriter(&packed)
	if _, err := z.Write(profile); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	body := packed.Bytes()
	body = append([]byte("iCCP"), body[8:]...)
	file := bytes.Clone(plain.Bytes()[:33]) // signature and IHDR
	file = binary.BigEndian.AppendUint32(file, uint32(len(body)-4))
	file = append(file, body...)
	file = binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(body))
	r, err := j.magick("png", append(file, plain.Bytes()[33:]...), true)
	if err != nil {
		return nil, err
	}
	return r.Frames[0].Image, nil
}
