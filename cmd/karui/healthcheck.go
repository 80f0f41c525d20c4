package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/internal/config"
	"karui/internal/server"
)

// healthcheck is the command line of `karui healthcheck`.
type healthcheck struct {
	file    configFlag
	admin   string
	timeout time.Duration
	wait    time.Duration
	// denied: the default configuration cannot be read, and the address is a guess.
	denied bool
}

// maxHealthTimeout is longer than any orchestrator leaves a check alone.
const maxHealthTimeout = time.Minute

// maxHealthWait is far longer than a start takes.
const maxHealthWait = 10 * time.Minute

// askAgain is how often a karui that starts is asked whether it is ready.
const askAgain = 100 * time.Millisecond

func newHealthcheckCommand() *cobra.Command {
	var h healthcheck
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Asks the running proxy whether it would serve: exit code 0 if so, 1 if not",
		Long: `Asks the admin listener of the running proxy for /readyz, and ends with 0 when the
answer is 200. Otherwise it ends with 1 and says why in one line: nobody listens,
no answer in time, or karui is not ready: it has just started and its first
conversion is not done, it drains, or conversions fail. After a start, --wait gives
it time.

The address comes from the same configuration and environment as that of
"karui serve"; where it is a wildcard such as ":9090", this machine is asked. It is
meant for HEALTHCHECK in a Dockerfile and for readiness probes.`,
		Example: `  karui healthcheck
  karui healthcheck --config /etc/karui/karui.yaml --timeout 2s
  systemctl restart karui && karui healthcheck --wait 10s
  karui healthcheck --admin http://10.0.0.5:9090`,
		Args: cobra.NoArgs,
		RunE: h.run,
	}
	h.file.register(cmd)
	cmd.Flags().StringVar(&h.admin, "admin", "", "URL of the admin listener, instead of the one in the configuration")
	cmd.Flags().DurationVar(&h.timeout, "timeout", 3*time.Second, "how long to wait for the answer, connecting included")
	cmd.Flags().DurationVar(&h.wait, "wait", 0, "ask again until it is ready, for this long, such as 10s")
	cmd.MarkFlagsMutuallyExclusive("config", "admin")
	return cmd
}

func (h *healthcheck) run(cmd *cobra.Command, _ []string) error {
	if h.timeout <= 0 || h.timeout > maxHealthTimeout {
		return command.Usage("--timeout is %s: it must be more than 0 and at most %s", h.timeout, maxHealthTimeout)
	}
	if h.wait < 0 || h.wait > maxHealthWait {
		return command.Usage("--wait is %s: it must be from 0 to %s", h.wait, maxHealthWait)
	}
	target, places, err := h.target(cmd)
	if err != nil {
		return err
	}
	ask := func(ctx context.Context) error {
		limited, cancel := context.WithTimeout(ctx, h.timeout)
		defer cancel()
		err := ready(limited, target, places)
		if err != nil && limited.Err() != nil && cmd.Context().Err() == nil {
			return fmt.Errorf("%s has not answered within %s", target, h.timeout)
		}
		return err
	}
	if h.wait > 0 {
		limited, cancel := context.WithTimeout(cmd.Context(), h.wait)
		defer cancel()
		if err = untilReady(limited, ask); err != nil {
			err = fmt.Errorf("not ready within %s: %w", h.wait, err)
		}
	} else {
		err = ask(cmd.Context())
	}
	if err != nil && h.denied {
		return fmt.Errorf("%w (%s cannot be read by this user: use sudo, or name the listener with --admin)", err, server.DefaultFile)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "ready")
	return err
}

// target gives the URL to ask, and the addresses to dial for it one after the
// other; none means the URL's own.
func (h *healthcheck) target(cmd *cobra.Command) (target string, places []string, err error) {
	if cmd.Flags().Changed("admin") {
		u, err := url.Parse(h.admin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || !config.GoodPort(u) {
			return "", nil, command.Usage("--admin is %q: it must be a URL such as http://127.0.0.1:9090", h.admin)
		}
		return u.JoinPath("readyz").String(), nil, nil
	}
	listen, err := h.listen(cmd)
	if err != nil {
		return "", nil, err
	}
	places, err = dialable(listen)
	if err != nil {
		return "", nil, err
	}
	return (&url.URL{Scheme: "http", Host: places[0], Path: "/readyz"}).String(), places, nil
}

// listen gives admin.listen. A configuration that names no sites is the one of a
// `karui serve --origin URL`: the site does not matter here.
func (h *healthcheck) listen(cmd *cobra.Command) (string, error) {
	loaded, err := h.file.load(cmd)
	if denied := (*server.DeniedError)(nil); errors.As(err, &denied) {
		h.denied = true
		return denied.Listen, nil // /readyz needs no secret
	}
	if err != nil {
		var another error
		if loaded, another = h.file.load(cmd, server.OriginFlag("http://localhost")); another != nil {
			return "", err
		}
	}
	return loaded.Value.Admin.Listen, nil
}

// dialable gives the addresses under which something that listens on address can
// be reached from this machine.
func dialable(address string) ([]string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, config.Invalid("admin.listen", address, `an address such as "127.0.0.1:9090"`)
	}
	if port == "0" {
		return nil, &config.Problem{Key: "admin.listen", What: "has port 0, which is another one at each start: give it a fixed port, or name the address with --admin"}
	}
	const v4, v6 = "127.0.0.1", "::1"
	hosts := []string{host}
	switch ip := net.ParseIP(host); {
	case host == "", ip != nil && ip.IsUnspecified() && ip.To4() == nil:
		// Both families, as a rule; a container may have no IPv6 at all.
		hosts = []string{v4, v6}
	case ip != nil && ip.IsUnspecified():
		hosts = []string{v4}
	}
	for i := range hosts {
		hosts[i] = net.JoinHostPort(hosts[i], port)
	}
	return hosts, nil
}

// untilReady asks until the answer is good or ctx ends. The error is that of the last
// answer that came in time.
func untilReady(ctx context.Context, ask func(context.Context) error) error {
	var last error
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return last
		}
	}
}

// ready asks once. The error says in one line why karui would not serve.
func ready(ctx context.Context, target string, places []string) error {
	client := &http.Client{
		Transport: &http.Transport{
			Proxy:             nil, // HTTP_PROXY is not meant for a process on this machine
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return dialFirst(ctx, network, append(places[:len(places):len(places)], address)...)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", target, err)
	}
	response, err := client.Do(request)
	if err != nil {
		var wrapped *url.Error // it names the URL, and so do we
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("ask %s: %w (nothing listens there: is karui running, and is this its admin.listen? "+
				"--config FILE names its configuration, --admin URL the listener)", target, err)
		}
		return fmt.Errorf("ask %s: %w", target, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	said, _ := io.ReadAll(io.LimitReader(response.Body, 200)) // a reason, if there is one
	words := strings.Join(strings.Fields(strings.ToValidUTF8(string(said), "")), " ")
	hint := ""
	if response.StatusCode == http.StatusServiceUnavailable {
		hint = " (it has just started, it drains, or conversions fail; --wait 10s gives it time)"
	}
	return fmt.Errorf("%s answered %d: %q%s", target, response.StatusCode, words, hint)
}

// dialFirst gives the connection to the first of the addresses that takes one.
func dialFirst(ctx context.Context, network string, addresses ...string) (net.Conn, error) {
	var d net.Dialer
	var first error
	for _, address := range addresses {
		conn, err := d.DialContext(ctx, network, address)
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}
