package distribution

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// tamper changes a body after it was signed.
type tamper struct{ next aws.HTTPClient }

func (c tamper) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(bytes.Replace(body, []byte("the shop"), []byte("our shop"), 1)))
	}
	return c.next.Do(r)
}

// html is what a captive portal answers, on every request.
type html struct{}

func (html) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}},
		Body: io.NopCloser(strings.NewReader("<html>please sign in</html>")), Request: r,
	}, nil
}
