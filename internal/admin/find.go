package admin

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"karui/internal/api"
	"karui/internal/command"
	"karui/internal/config"
	"karui/internal/server"
)

// Flags are how a command is told which karui to ask.
type Flags struct {
	admin     string
	tokenFile string
}

// Register adds --admin and --token-file to a command.
func (f *Flags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.admin, "admin", "", "admin listener to ask, such as http://127.0.0.1:9090 (default: that of the configuration)")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "file that holds the token for --admin (default: the first token of the configuration with the right)")
}

// Client finds the listener and a token with the right for all of the sites (for
// everything, if none are named). The configuration is asked for only where the
// flags leave something open.
func (f *Flags) Client(load func() (server.Config, error), right api.Right, sites ...string) (*Client, error) {
	base, token := "", ""
	if f.admin != "" {
		u, err := url.Parse(f.admin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !config.GoodPort(u) {
			return nil, command.Usage("--admin is %q, but must be an address such as http://127.0.0.1:9090", f.admin)
		}
		base = strings.TrimSuffix(u.String(), "/")
	}
	if f.tokenFile != "" {
		b, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return nil, command.Usage("--token-file: %v", err)
		}
		if token = strings.TrimSpace(string(b)); token == "" || strings.ContainsAny(token, "\r\n") {
			return nil, command.Usage("--token-file: %s must hold one line, the token", f.tokenFile)
		}
	}
	if base != "" {
		// The tokens of a configuration are not sent to an address that it does not name.
		return New(base, token), nil
	}
	cfg, err := load()
	guessed := ""
	if denied := (*server.DeniedError)(nil); errors.As(err, &denied) {
		// It may be another program's listener: none but a token that was named is sent there.
		cfg, err = server.Config{Admin: server.AdminConfig{Listen: denied.Listen}}, nil
		guessed = fmt.Sprintf(" (%s cannot be read by this user, so that karui was asked where it listens by default: use sudo, or name its listener with --admin)", server.DefaultFile)
	}
	if err != nil {
		return nil, err
	}
	if base, err = address(cfg.Admin.Listen); err != nil {
		return nil, err
	}
	if token == "" && len(cfg.Admin.Tokens) > 0 {
		if token, err = pick(cfg.Admin.Tokens, right, sites); err != nil {
			return nil, err
		}
	}
	c := New(base, token)
	c.guessed = guessed
	return c, nil
}

// address gives the URL at which this machine reaches a listener.
func address(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("admin.listen is %q, which is no address: %w", listen, err)
	}
	if port == "0" {
		return "", fmt.Errorf("admin.listen is %s, so that the system chose the port: name the listener with --admin URL, as karui's log gives it", listen)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		if host = "127.0.0.1"; ip.Is6() {
			host = "::1"
		}
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// pick gives the first token that has the right for the sites.
func pick(tokens []server.TokenConfig, right api.Right, sites []string) (string, error) {
	for _, t := range tokens {
		if slices.Contains(t.Rights, string(right)) && covers(t.Sites, sites) {
			return t.Token, nil
		}
	}
	if right == api.Read && len(sites) == 0 {
		// What it may see is better than nothing.
		for _, t := range tokens {
			if slices.Contains(t.Rights, string(right)) {
				return t.Token, nil
			}
		}
	}
	about := "all sites"
	if len(sites) > 0 {
		about = "site " + strings.Join(sites, ", ")
	}
	return "", fmt.Errorf("none of admin.tokens has the right %s for %s: add one, or name its file with --token-file", right, about)
}

// covers tells whether a token for its sites is good for what is asked.
func covers(own, asked []string) bool {
	if len(own) == 0 {
		return true
	}
	for _, site := range asked {
		if !slices.Contains(own, site) {
			return false
		}
	}
	return len(asked) > 0
}
