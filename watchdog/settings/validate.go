package settings

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"karui/internal/config"
)

// Bounds of the lists.
const (
	maxSites      = 5000
	maxControls   = 20
	maxRecipients = 50 // of SES v2, per mail
)

// Validate checks all sections, and what holds between them.
func (c Config) Validate(key string) error {
	k := func(parts ...any) string { return config.Key(append([]any{key}, parts...)...) }
	errs := []error{
		config.InRange(k("interval"), c.Interval, time.Second, 24*time.Hour),
		config.InRange(k("ping", "count"), c.Ping.Count, 1, 20),
		config.InRange(k("ping", "spacing"), c.Ping.Spacing, 10*time.Millisecond, 5*time.Minute),
		config.InRange(k("ping", "timeout"), c.Ping.Timeout, 50*time.Millisecond, time.Minute),
		config.Address(k("listen"), c.Listen),
		config.InRange(k("deploy_timeout"), c.DeployTimeout, time.Second, 2*time.Hour),
		config.InRange(k("proxy_deadline"), c.ProxyDeadline, 100*time.Millisecond, 2*time.Minute),
		config.AtMost(k("control_urls"), len(c.ControlURLs), maxControls),
		config.Unique(c.ControlURLs, func(i int) string { return k("control_urls", i) }),
		c.Mail.Validate(k("mail")),
		c.validateSites(k("sites")),
	}
	if c.StateDir == "" || strings.ContainsRune(c.StateDir, 0) {
		errs = append(errs, config.Invalid(k("state_dir"), c.StateDir, "a directory, such as /var/lib/karui-watchdog"))
	}
	if c.HeartbeatURL != "" {
		errs = append(errs, checkURL(k("heartbeat_url"), c.HeartbeatURL))
	}
	for i, u := range c.ControlURLs {
		errs = append(errs, checkURL(k("control_urls", i), u))
	}
	// Otherwise a round in an outage would run into the next.
	if longest := time.Duration(c.Ping.Count) * (c.Ping.Spacing + c.Ping.Timeout); c.Ping.Count > 0 && longest >= c.Interval {
		errs = append(errs, config.RestingOn(config.Invalid(k("interval"), c.Interval,
			fmt.Sprintf("more than ping.count * (ping.spacing + ping.timeout), which is %s: a round has to end before the next begins", longest)),
			k("ping", "count"), k("ping", "spacing"), k("ping", "timeout")))
	}
	return errors.Join(errs...)
}

// Validate checks the section under its key.
func (m Mail) Validate(key string) error {
	k := func(parts ...any) string { return config.Key(append([]any{key}, parts...)...) }
	errs := []error{
		config.OneOf(k("language"), m.Language, English, Japanese),
		checkRecipients(k("to"), m.To),
		config.InRange(k("smtp", "port"), m.SMTP.Port, 1, 65535),
		config.OneOf(k("smtp", "tls"), m.SMTP.TLS, StartTLS, ImplicitTLS, None),
		config.Text(k("smtp", "user"), m.SMTP.User, 512),
		config.Text(k("smtp", "password"), m.SMTP.Password, 1024),
	}
	if m.From != "" || m.Enabled() {
		errs = append(errs, checkAddress(k("from"), m.From))
	}
	if m.SMTP.Host != "" && !isHost(m.SMTP.Host) {
		errs = append(errs, config.Invalid(k("smtp", "host"), m.SMTP.Host, "a host name or address without a port, such as mail.example.com"))
	}
	if m.SES.Region != "" && !isRegion(m.SES.Region) {
		errs = append(errs, config.Invalid(k("ses", "region"), m.SES.Region, "an AWS region, such as ap-northeast-1"))
	}
	if m.SMTP.Host != "" && m.SES.Region != "" {
		errs = append(errs, config.Invalid(k("ses", "region"), m.SES.Region, "empty: "+k("smtp", "host")+" is set, and mail goes one way only"))
	}
	if m.SMTP.User == "" && m.SMTP.Password != "" {
		errs = append(errs, config.Invalid(k("smtp", "user"), nil, "the name that belongs to smtp.password"))
	}
	if m.SMTP.User != "" && m.SMTP.Password == "" {
		errs = append(errs, config.Invalid(k("smtp", "password"), nil, "the password of smtp.user, such as file:/run/secrets/smtp"))
	}
	return errors.Join(errs...)
}

// Warnings are settings that work and yet should be looked at.
func (c Config) Warnings() []string {
	var out []string
	m := c.Mail
	switch {
	case !m.Enabled():
		out = append(out, "mail.smtp.host and mail.ses.region are empty: nobody is told of anything")
	case m.SMTP.Host != "" && m.SMTP.TLS == None && !isLoopback(m.SMTP.Host):
		out = append(out, fmt.Sprintf("mail.smtp.tls is none: mails, and the password if there is one, go to %s unencrypted", m.SMTP.Host))
	}
	if c.HeartbeatURL == "" {
		out = append(out, "heartbeat_url is empty: nobody notices when the watchdog itself is gone")
	}
	for i, s := range c.Sites {
		key := config.Key("sites", i)
		if s.ViewerURL == "" {
			out = append(out, key+".viewer_url is empty: rehearse cannot show that viewers get lighter images, and rehearse --swap refuses")
		}
		if s.AfterRestore == None && len(s.InvalidatePaths) > 0 {
			out = append(out, key+".invalidate_paths has no effect: after_restore is none")
		}
		if s.ExternalID == "" {
			out = append(out, key+".external_id is empty: whoever may assume roles for others could use "+s.RoleARN+" (the confused deputy)")
		}
	}
	return out
}

// checkURL wants http or https, a host, no user and no fragment.
func checkURL(key, value string) error {
	const want = "a whole URL without a user, such as https://www.example.com/logo.jpg"
	if value == "" {
		return config.Invalid(key, nil, want)
	}
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil || u.Fragment != "" || len(value) > 2048 {
		return config.Invalid(key, value, want)
	}
	if !config.GoodPort(u) {
		return config.Invalid(key, value, "a URL with a port from 1 to 65535, or without one")
	}
	return nil
}

func checkRecipients(key string, to []string) error {
	errs := []error{
		config.AtMost(key, len(to), maxRecipients),
		config.Unique(to, func(i int) string { return config.Key(key, i) }),
	}
	for i, address := range to {
		errs = append(errs, checkAddress(config.Key(key, i), address))
	}
	return errors.Join(errs...)
}

func checkAddress(key, value string) error {
	const want = "a mail address, such as ops@example.com"
	if value == "" {
		return config.Invalid(key, nil, want)
	}
	if _, err := mail.ParseAddress(value); err != nil || strings.ContainsAny(value, "\r\n") || len(value) > 320 {
		return config.Invalid(key, value, want)
	}
	return nil
}

func isHost(host string) bool {
	return len(host) <= 253 && !strings.ContainsAny(host, " /@\t\r\n") && (net.ParseIP(host) != nil || !strings.Contains(host, ":"))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
