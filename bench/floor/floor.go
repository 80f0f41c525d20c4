// Package floor turns a JPEG into a WebP with libjpeg-turbo and libwebp in the calling thread and nothing around
// them: no network, no other process, no checks, no metadata. It is the measure of what everything else costs.
//
// It reads files that the benchmark made itself. It is not fit for files from outside.
package floor

/*
#cgo pkg-config: libjpeg libwebp
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <jpeglib.h>
#include <webp/encode.h>

struct failure { struct jpeg_error_mgr mgr; jmp_buf back; };

static void fail(j_common_ptr c) { longjmp(((struct failure *)c->err)->back, 1); }

// Decodes into malloced RGB rows; NULL when the file cannot be read.
static unsigned char *decode(const unsigned char *src, size_t n, int *w, int *h) {
	struct jpeg_decompress_struct c;
	struct failure f;
	unsigned char *volatile rgb = NULL;
	c.err = jpeg_std_error(&f.mgr);
	f.mgr.error_exit = fail;
	if (setjmp(f.back)) {
		jpeg_destroy_decompress(&c);
		free(rgb);
		return NULL;
	}
	jpeg_create_decompress(&c);
	jpeg_mem_src(&c, src, n);
	jpeg_read_header(&c, TRUE);
	c.out_color_space = JCS_RGB;
	jpeg_start_decompress(&c);
	*w = c.output_width, *h = c.output_height;
	rgb = malloc((size_t)*w * *h * 3);
	if (!rgb) longjmp(f.back, 1);
	while (c.output_scanline < c.output_height) {
		JSAMPROW row = rgb + (size_t)c.output_scanline * *w * 3;
		jpeg_read_scanlines(&c, &row, 1);
	}
	jpeg_finish_decompress(&c);
	jpeg_destroy_decompress(&c);
	return rgb;
}

// Returns the memory of the WebP, to be given to WebPFree; NULL when anything failed.
static unsigned char *convert(const unsigned char *src, size_t n, float quality, int method, size_t *out) {
	int w, h, ok;
	unsigned char *rgb = decode(src, n, &w, &h);
	WebPConfig config;
	WebPPicture pic;
	WebPMemoryWriter mem;
	if (!rgb) return NULL;
	ok = WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, quality) && WebPPictureInit(&pic);
	if (!ok) { free(rgb); return NULL; }
	config.method = method;
	pic.width = w, pic.height = h;
	WebPMemoryWriterInit(&mem);
	pic.writer = WebPMemoryWrite, pic.custom_ptr = &mem;
	ok = WebPPictureImportRGB(&pic, rgb, w * 3);
	free(rgb);
	ok = ok && WebPEncode(&config, &pic);
	WebPPictureFree(&pic);
	if (!ok) { WebPMemoryWriterClear(&mem); return NULL; }
	*out = mem.size;
	return mem.mem;
}
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Convert makes a WebP of quality 0..100 with libwebp's method 0..6, and its defaults for everything else.
func Convert(jpeg []byte, quality, method int) ([]byte, error) {
	if len(jpeg) == 0 {
		return nil, errors.New("convert: an empty JPEG")
	}
	var n C.size_t
	p := C.convert((*C.uchar)(unsafe.Pointer(&jpeg[0])), C.size_t(len(jpeg)), C.float(quality), C.int(method), &n)
	if p == nil {
		return nil, errors.New("convert: libjpeg or libwebp failed")
	}
	defer C.WebPFree(unsafe.Pointer(p))
	return C.GoBytes(unsafe.Pointer(p), C.int(n)), nil
}
