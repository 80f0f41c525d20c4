package origin

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// errorBytes bounds what is read of S3's own words about a failure.
const errorBytes = 16 << 10

// setupCodes are S3's words for what is wrong with karui's set-up, whatever the
// object. None of them is an answer that a viewer should see.
var setupCodes = []string{
	"NoSuchBucket", "InvalidBucketName", "PermanentRedirect", "TemporaryRedirect", "Redirect", "AuthorizationHeaderMalformed",
	"IllegalLocationConstraintException", "InvalidAccessKeyId", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "ExpiredToken",
	"InvalidToken", "TokenRefreshRequired", "InvalidSecurity", "AllAccessDisabled", "AccountProblem", "NotSignedUp", "RequestExpired",
}

// staleCodes are those of them that new credentials may mend.
var staleCodes = []string{"ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId", "RequestExpired"}

// judge turns S3's answer into one for viewers, or says that it is none.
//
// A missing object is 404, as far as S3 says so: without s3:ListBucket it denies
// access instead, in the same words as when karui lost its permission. Nobody can
// tell these apart, and a lost permission must not break images or delete what is
// cached, so both are failures: the edge asks the true origin, and what is cached
// goes on being answered.
func (b *bucket) judge(resp *http.Response) *Error {
	tidy(resp.Header)
	status := resp.StatusCode
	switch {
	case status < 300, status == http.StatusNotModified:
		return nil
	case status == http.StatusTooManyRequests, status >= 500:
		b.empty(resp, "")
		return nil
	}
	code := b.empty(resp, resp.Request.Method)
	switch {
	case slices.Contains(setupCodes, code), status >= 300 && status < 400:
		if slices.Contains(staleCodes, code) {
			b.credentials.Invalidate()
		}
		return &Error{Kind: KindSetup, Detail: fmt.Sprintf(
			"S3 answered %d %s: check urls, region, endpoint and role_arn of the place, and the clock", status, code)}
	case status == http.StatusNotFound, status == http.StatusGone, status == http.StatusPreconditionFailed, status == http.StatusRequestedRangeNotSatisfiable:
		return nil
	}
	return &Error{Kind: KindAccess, Detail: fmt.Sprintf(
		"S3 answered %d %s: karui may not read the object, or there is none and karui lacks s3:ListBucket, with which S3 would say so", status, code)}
}

// empty takes the body away, which names the bucket and the key, and gives the
// code in it. A failure to read it is an answer without a code.
func (b *bucket) empty(resp *http.Response, method string) (code string) {
	if method == http.MethodGet {
		var failure struct {
			Code string
		}
		text, _ := io.ReadAll(io.LimitReader(resp.Body, errorBytes))
		if xml.Unmarshal(text, &failure) == nil {
			code = failure.Code
		}
	}
	_ = resp.Body.Close() // nothing more is wanted of it
	resp.Body, resp.ContentLength, resp.TransferEncoding = http.NoBody, 0, nil
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Encoding"} {
		resp.Header.Del(name)
	}
	if len(code) > 60 || strings.ContainsFunc(code, func(c rune) bool { return c < '0' || c > 'z' }) {
		code = ""
	}
	return code
}

// tidy removes what tells of the store and not of the object.
func tidy(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "X-Amz-") && !strings.HasPrefix(name, "X-Amz-Meta-") {
			delete(h, name)
		}
	}
	h.Del("Server")
}
