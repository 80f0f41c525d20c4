package server

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"karui/internal/config"
)

// Bounds of the root's lists.
const (
	maxSites  = 1000
	maxTokens = 1000
)

// Normalize brings hosts into the form in which requests' hosts are compared.
func (c *Config) Normalize() {
	for i := range c.Sites {
		for j, host := range c.Sites[i].Hosts {
			c.Sites[i].Hosts[j] = strings.ToLower(strings.TrimSuffix(host, "."))
		}
	}
}

// Validate checks all sections, and what holds between them. It opens no port
// and reads nothing but origin.ca_file.
func (c Config) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	errs := []error{
		config.Address(k("listen"), c.Listen),
		config.InRange(k("drain"), c.Drain, 0, 15*time.Minute),
		c.Log.Validate(k("log")),
		c.Limits.Validate(k("limits")),
		c.Admin.validate(k("admin"), c.Listen, c.ids()),
		c.Edge.Validate(k("edge")),
		c.Ping.Validate(k("ping")),
		c.FirstResponse.Validate(k("first_response")),
		c.TTL.Validate(k("ttl")),
		c.Convert.Validate(k("convert")),
		c.Cache.Validate(k("cache")),
		c.Disk.Validate(k("disk")),
		c.Stress.Validate(k("stress")),
		c.Origin.Validate(k("origin")),
		c.Retry.Validate(k("retry")),
		c.Dial.Validate(k("dial")),
		c.validateSites(k("sites")),
		// A viewer that waits for its variant must still get the original in time.
		config.Below(k("first_response.wait"), c.FirstResponse.Wait, k("origin.deadline"), c.Origin.Deadline),
	}
	if c.Cluster.Redis != "" {
		errs = append(errs, &config.Problem{Key: k("cluster.redis"), What: "is set, but a cluster is not in this version"})
	}
	return errors.Join(errs...)
}

func (c Config) ids() []string {
	ids := make([]string, len(c.Sites))
	for i, s := range c.Sites {
		ids[i] = s.ID
	}
	return ids
}

func (c Config) validateSites(key string) error {
	if len(c.Sites) == 0 {
		return config.Invalid(key, nil, "a list with at least one site (or start with --origin https://www.example.com)")
	}
	errs := []error{
		config.AtMost(key, len(c.Sites), maxSites),
		config.Unique(lower(c.ids()), func(i int) string { return config.Key(key, i, "id") }),
	}
	hosts, keys := []string{}, []string{}
	standard := -1
	for i, s := range c.Sites {
		errs = append(errs, s.Validate(config.Key(key, i)))
		for j, host := range s.Hosts {
			hosts, keys = append(hosts, strings.ToLower(host)), append(keys, config.Key(key, i, "hosts", j))
		}
		switch {
		case s.Default && standard >= 0:
			errs = append(errs, config.Invalid(config.Key(key, i, "default"), true,
				fmt.Sprintf("false: %s is true, and only one site can be the default", config.Key(key, standard, "default"))))
		case s.Default:
			standard = i
		}
		errs = append(errs, c.notForwarded(config.Key(key, i), i))
	}
	errs = append(errs, config.Unique(hosts, func(i int) string { return keys[i] }))
	return errors.Join(errs...)
}

// notForwarded refuses the routing header among those that an origin gets.
func (c Config) notForwarded(key string, i int) error {
	var errs []error
	refuse := func(key, name string) {
		if strings.EqualFold(name, c.Edge.RoutingHeader) && !strings.EqualFold(name, "X-Routing") { // that one is refused anyway
			errs = append(errs, config.Invalid(key, name, "another header: edge.routing_header is never forwarded"))
		}
	}
	for j, name := range c.Sites[i].ForwardHeaders {
		refuse(config.Key(key, "forward_headers", j), name)
	}
	for j, place := range c.Sites[i].Origins {
		for l, h := range place.Headers {
			refuse(config.Key(key, "origins", j, "headers", l, "name"), h.Name)
		}
	}
	return errors.Join(errs...)
}

func lower(words []string) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = strings.ToLower(w)
	}
	return list
}

func (c AdminConfig) validate(key, listen string, sites []string) error {
	k := func(name string) string { return config.Key(key, name) }
	if err := config.Address(k("listen"), c.Listen); err != nil {
		return err
	}
	errs := []error{config.AtMost(k("tokens"), len(c.Tokens), maxTokens)}
	if len(c.Tokens) == 0 && !isLoopback(c.Listen) {
		errs = append(errs, config.Invalid(k("listen"), c.Listen,
			"on the loopback, such as 127.0.0.1:9090, as long as "+k("tokens")+" is empty: anybody could command karui"))
	}
	if _, port, err := net.SplitHostPort(c.Listen); err == nil && port != "0" && c.Listen == listen {
		errs = append(errs, config.Invalid(k("listen"), c.Listen, "another address than listen: the edge must not reach the operators' side"))
	}
	names, tokens := make([]string, len(c.Tokens)), make([]string, len(c.Tokens))
	for i, t := range c.Tokens {
		names[i], tokens[i] = t.Name, t.Token
		errs = append(errs, t.validate(config.Key(key, "tokens", i), sites))
	}
	errs = append(errs,
		config.Unique(names, func(i int) string { return config.Key(key, "tokens", i, "name") }),
		config.Unique(tokens, func(i int) string { return config.Key(key, "tokens", i, "token") }))
	return errors.Join(errs...)
}

// minToken keeps tokens from being guessed; eight characters at random are about 40 bits.
const minToken = 8

func (t TokenConfig) validate(key string, sites []string) error {
	k := func(name string) string { return config.Key(key, name) }
	errs := []error{
		config.Name(k("name"), t.Name),
		config.Text(k("token"), t.Token, 512),
	}
	switch {
	case t.Token == "":
		errs = append(errs, config.Invalid(k("token"), nil, fmt.Sprintf("a secret of at least %d characters", minToken)))
	case len(t.Token) < minToken:
		errs = append(errs, config.Invalid(k("token"), t.Token, fmt.Sprintf("a secret of at least %d characters", minToken)))
	}
	if len(t.Rights) == 0 {
		errs = append(errs, config.Invalid(k("rights"), nil, "a list of read, purge or dial"))
	}
	for i, right := range t.Rights {
		errs = append(errs, config.OneOf(config.Key(key, "rights", i), right, "read", "purge", "dial"))
	}
	for i, site := range t.Sites {
		known := false
		for _, id := range sites {
			known = known || id == site
		}
		if !known {
			errs = append(errs, config.Invalid(config.Key(key, "sites", i), site, "the id of one of the sites"))
		}
	}
	return errors.Join(errs...)
}
