package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/jpeg"
	"mime"
	"net/http"
	"strings"
	"unicode"

	"karui/watchdog/event"
)

// maxPixels bounds what is decoded: more than a ping ever has.
const maxPixels = 4 << 20

// reasonHeader is how the proxy says why it answers 503.
const reasonHeader = "X-Karui-Reason"

// checkPing looks at the answer to a ping.
func (p *Prober) checkPing(ctx context.Context, res *http.Response, out *event.Probe) {
	fail := func(kind, format string, args ...any) {
		out.Kind, out.Text = kind, fmt.Sprintf(format, args...)
	}
	if res.StatusCode != http.StatusOK {
		fail(event.FailStatus, "%s", statusText(res))
		return
	}
	given := res.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(given); err != nil || !strings.HasPrefix(kind, "image/") {
		fail(event.FailBody, "200, but the content type is %q, not an image", clean(given))
		return
	}
	body, tooLong, err := readAll(res.Body)
	switch {
	case err != nil && ctx.Err() != nil:
		fail(event.FailTimeout, "200, but the body did not end in time (%d bytes came)", len(body))
		return
	case err != nil:
		fail(event.FailBody, "200, but the body was cut off after %d bytes", len(body))
		return
	case tooLong:
		fail(event.FailBody, "200, but the body has more than %d bytes", maxBody)
		return
	}
	if err := p.decode(ctx, body); err != nil {
		fail(event.FailBody, "200, but the body (%d bytes) is no JPEG: %s", len(body), clean(err.Error()))
		return
	}
	out.Text = fmt.Sprintf("200, JPEG of %d bytes", len(body))
}

// decode proves that a body is a whole JPEG. Waiting for a turn counts towards
// the request's time, since a picture takes milliseconds.
func (p *Prober) decode(ctx context.Context, body []byte) (err error) {
	// The decoder is fed by strangers; its panic must cost a probe, not the watchdog.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decoder: %v", r)
		}
	}()
	size, err := jpeg.DecodeConfig(bytes.NewReader(body))
	if err != nil {
		return err
	}
	if size.Width < 1 || size.Height < 1 || size.Width > maxPixels/size.Height {
		return fmt.Errorf("%d x %d pixels, more than a ping can have", size.Width, size.Height)
	}
	if err := p.decodes.Acquire(ctx, 1); err != nil {
		return errors.New("no turn for decoding it in time")
	}
	defer p.decodes.Release(1)
	_, err = jpeg.Decode(bytes.NewReader(body))
	return err
}

// statusText is the answer's status in words, with the proxy's reason.
func statusText(res *http.Response) string {
	text := fmt.Sprintf("status %d", res.StatusCode)
	if words := http.StatusText(res.StatusCode); words != "" {
		text += " " + words
	}
	if reason := res.Header.Get(reasonHeader); reason != "" {
		text += " (" + clean(reason) + ")"
	}
	return text
}

// clean makes text from outside fit for a line of a log or mail.
func clean(text string) string {
	const limit = 120
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "..."
	}
	return text
}
