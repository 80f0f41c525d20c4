// Package settings is watchdog.yaml: the structs, their defaults and what makes
// sense of their values.
//
// Guaranteed: every mistake is found at once and named by its key. Nothing is
// opened, resolved or asked; whether addresses answer and ids exist is for
// rehearse to find out.
package settings

import "time"

// DefaultFile is read when no other file is named; it may be missing.
const DefaultFile = "/etc/karui/watchdog.yaml"

// EnvPrefix begins the names of environment variables: KARUI_WATCHDOG_PING_COUNT.
const EnvPrefix = "KARUI_WATCHDOG_"

// Words of the modes.
const (
	Auto       = "auto"
	Manual     = "manual"
	None       = "none"
	Invalidate = "invalidate"

	English  = "en"
	Japanese = "ja"

	StartTLS    = "starttls"
	ImplicitTLS = "implicit"
)

// Config is watchdog.yaml.
type Config struct {
	// Interval is from the start of one round of a site to that of its next.
	Interval time.Duration `yaml:"interval"`
	Ping     Ping          `yaml:"ping"`
	// StateDir holds what must survive a restart, documents and the audit log.
	StateDir string `yaml:"state_dir"`
	// Listen is the address of /healthz, /metrics and /status.
	Listen string `yaml:"listen"`
	// DeployTimeout is how long a change may take to reach the whole edge.
	DeployTimeout time.Duration `yaml:"deploy_timeout"`
	// ProxyDeadline is origin.deadline of karui.yaml: the edge has to wait longer.
	ProxyDeadline time.Duration `yaml:"proxy_deadline"`
	// HeartbeatURL is requested after every round; empty for none.
	HeartbeatURL string `yaml:"heartbeat_url" secret:"true"`
	// ControlURLs answer whenever the watchdog itself has a network. Empty: the
	// endpoints of STS and CloudFront.
	ControlURLs []string `yaml:"control_urls"`
	Mail        Mail     `yaml:"mail"`
	Sites       []Site   `yaml:"sites"`
}

// Ping is the section `ping`: what a round consists of.
type Ping struct {
	// Count is how many failures in a row make a round a bad one.
	Count int `yaml:"count"`
	// Spacing is from the start of one request to that of the next.
	Spacing time.Duration `yaml:"spacing"`
	// Timeout is for one request with its answer.
	Timeout time.Duration `yaml:"timeout"`
}

// Mail is the section `mail`. Without smtp.host and ses.region there is no mail.
type Mail struct {
	From     string   `yaml:"from"`
	To       []string `yaml:"to"`
	Language string   `yaml:"language"`
	SMTP     SMTP     `yaml:"smtp"`
	SES      SES      `yaml:"ses"`
}

// Enabled tells whether mails are sent.
func (m Mail) Enabled() bool { return m.SMTP.Host != "" || m.SES.Region != "" }

// SMTP is a mail server to hand mails to.
type SMTP struct {
	Host string `yaml:"host"`
	Port int    `yaml:"port"`
	// TLS is starttls (refused if the server does not offer it), implicit or none.
	TLS      string `yaml:"tls"`
	User     string `yaml:"user"`
	Password string `yaml:"password" secret:"true"`
}

// SES sends through Amazon SES v2 in a region.
type SES struct {
	Region string `yaml:"region"`
}

// Site is one distribution and the proxy before it.
type Site struct {
	ID string `yaml:"id"`
	// PingURL asks the proxy by its own name, past the edge.
	PingURL     string   `yaml:"ping_url" secret:"query"`
	PingHeaders []Header `yaml:"ping_headers"`
	// OriginURL is at the true origin: any status under 500 means it lives.
	OriginURL string `yaml:"origin_url" secret:"query"`
	// ViewerURL is an image as viewers ask for it; only rehearse needs it.
	ViewerURL      string `yaml:"viewer_url" secret:"query"`
	DistributionID string `yaml:"distribution_id"`
	OriginGroupID  string `yaml:"origin_group_id"`
	ProxyOriginID  string `yaml:"proxy_origin_id"`
	DirectOriginID string `yaml:"direct_origin_id"`
	RoleARN        string `yaml:"role_arn"`
	ExternalID     string `yaml:"external_id" secret:"true"`
	// Degrade and Restore are auto or manual.
	Degrade string `yaml:"degrade"`
	Restore string `yaml:"restore"`
	// RestoreAfter is how many good rounds in a row a restore needs; each flap
	// within 24 h doubles it, up to 12.
	RestoreAfter int `yaml:"restore_after"`
	// AfterRestore is none or invalidate.
	AfterRestore    string   `yaml:"after_restore"`
	InvalidatePaths []string `yaml:"invalidate_paths"`
	// MaxSwapsPerDay bounds the watchdog's own swaps in any 24 hours.
	MaxSwapsPerDay int      `yaml:"max_swaps_per_day"`
	Mail           SiteMail `yaml:"mail"`
}

// Header is a header to send.
type Header struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value" secret:"true"`
}

// SiteMail is what differs from Mail for one site; what is empty does not.
type SiteMail struct {
	To       []string `yaml:"to"`
	Language string   `yaml:"language"`
}

// Default returns the values of a file that says nothing.
func Default() Config {
	return Config{
		Interval:      5 * time.Minute,
		Ping:          Ping{Count: 5, Spacing: 6 * time.Second, Timeout: 5 * time.Second},
		StateDir:      "/var/lib/karui-watchdog",
		Listen:        "127.0.0.1:9091",
		DeployTimeout: 15 * time.Minute,
		ProxyDeadline: 8 * time.Second,
		Mail:          Mail{Language: English, SMTP: SMTP{Port: 587, TLS: StartTLS}},
	}
}

// DefaultSite returns the values of a site that says nothing.
func DefaultSite() Site {
	return Site{Degrade: Auto, Restore: Auto, RestoreAfter: 1, AfterRestore: None, MaxSwapsPerDay: 12}
}

// Recipients of mails about a site, and their language.
func (c Config) Recipients(site Site) (to []string, language string) {
	to, language = c.Mail.To, c.Mail.Language
	if len(site.Mail.To) > 0 {
		to = site.Mail.To
	}
	if site.Mail.Language != "" {
		language = site.Mail.Language
	}
	return to, language
}

// Site finds a site by its id.
func (c Config) Site(id string) (Site, bool) {
	for _, s := range c.Sites {
		if s.ID == id {
			return s, true
		}
	}
	return Site{}, false
}
