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
	// Sites are those that are watched.
	Sites []Site `yaml:"sites"`
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

// Mail is the section `mail`: whom to tell, and how. Without smtp.host and ses.region
// there is no mail.
type Mail struct {
	// From is the sender's address.
	From string `yaml:"from"`
	// To are the recipients of mails about all sites that name none of their own.
	To []string `yaml:"to"`
	// Language is en or ja.
	Language string `yaml:"language"`
	SMTP     SMTP   `yaml:"smtp"`
	SES      SES    `yaml:"ses"`
}

// Enabled tells whether mails are sent.
func (m Mail) Enabled() bool { return m.SMTP.Host != "" || m.SES.Region != "" }

// SMTP is a mail server to hand mails to.
type SMTP struct {
	// Host is the mail server's name; empty for none.
	Host string `yaml:"host"`
	// Port is the mail server's: 587 for starttls, 465 for implicit.
	Port int `yaml:"port"`
	// TLS is starttls (refused if the server does not offer it), implicit or none.
	TLS string `yaml:"tls"`
	// User is whom to log in as; empty for no login.
	User string `yaml:"user"`
	// Password is the user's.
	Password string `yaml:"password" secret:"true"`
}

// SES sends through Amazon SES v2 in a region.
type SES struct {
	// Region is where SES is asked; empty for no SES. It is used instead of smtp.
	Region string `yaml:"region"`
}

// Site is one distribution and the proxy before it.
type Site struct {
	// ID names the site in mails, metrics and commands.
	ID string `yaml:"id"`
	// PingURL asks the proxy by its own name, past the edge.
	PingURL string `yaml:"ping_url" secret:"query"`
	// PingHeaders are sent with the ping, X-Routing for example.
	PingHeaders []Header `yaml:"ping_headers"`
	// OriginURL is at the true origin: any status under 500 means it lives.
	OriginURL string `yaml:"origin_url" secret:"query"`
	// ViewerURL is an image as viewers ask for it; only rehearse needs it.
	ViewerURL string `yaml:"viewer_url" secret:"query"`
	// DistributionID is that of the site's distribution at CloudFront.
	DistributionID string `yaml:"distribution_id"`
	// OriginGroupID is that of the origin group with the two origins.
	OriginGroupID string `yaml:"origin_group_id"`
	// ProxyOriginID is the id of karui's origin in the distribution.
	ProxyOriginID string `yaml:"proxy_origin_id"`
	// DirectOriginID is the id of the true origin in the distribution.
	DirectOriginID string `yaml:"direct_origin_id"`
	// RoleARN is the role to assume for reading and changing the distribution.
	RoleARN string `yaml:"role_arn"`
	// ExternalID is what the role's trust asks for.
	ExternalID string `yaml:"external_id" secret:"true"`
	// Degrade is auto or manual: whether the true origin is put first without a person.
	Degrade string `yaml:"degrade"`
	// Restore is auto or manual: whether the proxy is put first again without a person.
	Restore string `yaml:"restore"`
	// RestoreAfter is how many good rounds in a row a restore needs; each flap
	// within 24 h doubles it, up to 12.
	RestoreAfter int `yaml:"restore_after"`
	// AfterRestore is none or invalidate: whether the edge is told to drop the originals
	// that it took meanwhile.
	AfterRestore string `yaml:"after_restore"`
	// InvalidatePaths are what is invalidated then, such as /images/*.
	InvalidatePaths []string `yaml:"invalidate_paths"`
	// MaxSwapsPerDay bounds the watchdog's own swaps in any 24 hours.
	MaxSwapsPerDay int `yaml:"max_swaps_per_day"`
	// Mail is what differs from mail above for this site.
	Mail SiteMail `yaml:"mail"`
}

// Header is a header to send.
type Header struct {
	// Name is the header's.
	Name string `yaml:"name"`
	// Value is what it holds.
	Value string `yaml:"value" secret:"true"`
}

// SiteMail is what differs from Mail for one site; what is empty does not.
type SiteMail struct {
	// To are the recipients of mails about the site, instead of mail.to.
	To []string `yaml:"to"`
	// Language is en or ja, instead of mail.language.
	Language string `yaml:"language"`
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
