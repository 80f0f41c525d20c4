package cloudfront

import (
	"errors"
	"fmt"
	"slices"
)

// OriginRequestPolicy says what goes to the origin beside what is in the cache
// key. Each of the three parts is a mode and, where the mode takes them, names.
type OriginRequestPolicy struct {
	ID   string
	Name string

	HeaderMode string // "none", "whitelist", "allViewer" or "allExcept"
	Headers    []string
	CookieMode string // "none", "whitelist", "all" or "allExcept"
	Cookies    []string
	QueryMode  string // as CookieMode
	Queries    []string
}

// PutOriginRequestPolicy makes or replaces an origin request policy. An empty
// mode is "none".
func (d *Double) PutOriginRequestPolicy(p OriginRequestPolicy) error {
	if p.ID == "" || p.Name == "" {
		return errors.New("origin request policy needs an id and a name")
	}
	for _, part := range []struct {
		mode  *string
		known []string
	}{
		{&p.HeaderMode, []string{"none", "whitelist", "allViewer", "allExcept"}},
		{&p.CookieMode, []string{"none", "whitelist", "all", "allExcept"}},
		{&p.QueryMode, []string{"none", "whitelist", "all", "allExcept"}},
	} {
		if *part.mode == "" {
			*part.mode = "none"
		}
		if !slices.Contains(part.known, *part.mode) {
			return fmt.Errorf("origin request policy %s: mode %q is none of %v", p.ID, *part.mode, part.known)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.originPolicies[p.ID] = p
	return nil
}

// OriginRequestPolicy is a policy by id, for a data plane.
func (d *Double) OriginRequestPolicy(id string) (OriginRequestPolicy, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.originPolicies[id]
	return p, ok
}
