// Package admin asks a running karui through its admin listener, for commands.
//
// It finds the listener and a token by the configuration that karui was started
// with, or takes both from the command line. Its errors are for people: they say
// what was asked where, and what to do.
package admin

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"karui/internal/api"
	"karui/internal/command"
)

// maxAnswer bounds what is read of one answer.
const maxAnswer = 64 << 20

// timeout bounds one request. What takes longer is asked for again and again.
const timeout = time.Minute

// Client asks one admin listener. Close it.
type Client struct {
	base      string
	token     string
	transport *http.Transport
	// guessed says, in errors, why base was taken; "" where it was known.
	guessed string
}

// New makes a client for a listener at base, such as http://127.0.0.1:9090. The
// token may be empty where none is needed.
func New(base, token string) *Client {
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		// A proxy of the environment is for the way out, not for this.
		Proxy: nil,
	}
	return &Client{base: base, token: token, transport: t}
}

// Close lets the connections go.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Base names the listener, for messages.
func (c *Client) Base() string { return c.base }

// Get asks for the path below api.Prefix.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return c.Do(ctx, http.MethodGet, path, nil, out)
}

// Do sends in, unless it is nil, as JSON to a path below api.Prefix, such as
// "/quarantine", and reads the answer into out, unless that is nil. An error of
// the API is an *api.Error, wrapped with what was asked.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("write the request to karui: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+api.Prefix+path, body)
	if err != nil {
		return fmt.Errorf("ask karui at %s: %w", c.base, err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	client := http.Client{
		Transport: c.transport,
		// The token is for this address alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return c.guess(c.explain(err))
	}
	defer resp.Body.Close()
	return c.read(resp, out)
}

// read takes the answer.
func (c *Client) read(resp *http.Response, out any) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	if len(b) > maxAnswer {
		return fmt.Errorf("the answer of %s is over %d MiB", c.base, maxAnswer>>20)
	}
	if resp.StatusCode >= 300 {
		var failure struct{ Error *api.Error }
		if json.Unmarshal(b, &failure) != nil || failure.Error == nil || failure.Error.Code == "" {
			return fmt.Errorf("%s answered %s, which is not karui's way: is this its admin listener (admin.listen)?%s", c.base, resp.Status, c.guessed)
		}
		failure.Error.Status = resp.StatusCode
		return c.guess(refusal(c.base, failure.Error))
	}
	if out == nil || len(b) == 0 {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%s does not answer as karui does; is this its admin listener (admin.listen)? %w", c.base, err)
	}
	return nil
}

// guess adds to an error that the listener is the one of the defaults. Who typed
// something wrong needs no such word.
func (c *Client) guess(err error) error {
	if c.guessed == "" || command.IsUsage(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w%s", err, c.guessed)
}

// explain turns what went wrong on the way into words with a remedy.
func (c *Client) explain(err error) error {
	var (
		outer     *url.Error
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		lookup    *net.DNSError
	)
	if errors.As(err, &outer) {
		err = outer.Err // less the URL, which is said anyway
	}
	remedy := ""
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, syscall.ECONNREFUSED):
		remedy = "nothing listens there: is karui running with this configuration? --admin URL names another listener"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		remedy = "it speaks plain HTTP: name it with http://"
	case errors.As(err, &authority), errors.As(err, &name):
		remedy = "its certificate is not for that name, or of an authority that this machine does not trust"
	case errors.As(err, &lookup):
		remedy = "the name cannot be resolved"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("karui's admin listener at %s gave no answer within %s", c.base, timeout)
	}
	if remedy == "" {
		return fmt.Errorf("ask karui's admin listener at %s: %w", c.base, err)
	}
	return fmt.Errorf("ask karui's admin listener at %s: %w (%s)", c.base, err, remedy)
}
