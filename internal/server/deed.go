package server

import (
	"fmt"
	"net/http"
	"strings"

	"karui/internal/api"
)

// deed is something that an operator asked for, in words: "set", "set" and "the dial".
type deed struct {
	did, do, what string
	// how are what was asked for in particular. Of a request that was refused it is
	// left out: nobody has looked at it.
	how string
}

// words is a sentence.
func (d deed) words(refused bool) string {
	if refused {
		return "An operator asked in vain to " + d.do + " " + d.what
	}
	return "An operator " + d.did + " " + d.what + d.how
}

// deedOf reads a request that was to change something.
func deedOf(c *api.Call) deed {
	path := strings.TrimPrefix(c.URL.Path, api.Prefix)
	kind, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch c.Method + " " + kind {
	case "PUT dial":
		return dialDeed(c)
	case "PUT places":
		var change PlaceChange
		_ = c.Decode(&change) // one that cannot be read was refused, and how is left out
		if change.State == "in" {
			return deed{"let", "let", "place " + name + " be used again", ofSite(change.Site)}
		}
		return deed{"took", "take", "place " + name + " out of use", ofSite(change.Site) + forSpan(change.For)}
	case "PUT retry":
		var change RetryChange
		_ = c.Decode(&change)
		if change.Mode == "auto" {
			return deed{"allowed", "allow", "second tries", ofSite(change.Site) + forSpan(change.For)}
		}
		return deed{"switched", "switch", "second tries off", ofSite(change.Site) + forSpan(change.For)}
	case "DELETE quarantine":
		return deed{"let", "let", fmt.Sprintf("original %.12s be tried again", name), ""}
	case "DELETE backlog":
		return deed{"emptied", "empty", "the backlog", ofSite(name)}
	case "POST purge":
		return deed{"had", "have", "something purged", ""}
	case "POST warm":
		return deed{"had", "have", "pictures made ahead", ""}
	}
	if c.Method == http.MethodDelete {
		return deed{"ended", "end", path, ""}
	}
	return deed{"called", "call", c.Method + " " + c.URL.Path, ""}
}

func dialDeed(c *api.Call) deed {
	var change DialChange
	_ = c.Decode(&change) // one that cannot be read was refused, and how is left out
	d := deed{did: "set", do: "set", what: "the dial"}
	end := ofSite(change.Site) + forSpan(change.For)
	switch {
	case change.Level == "auto":
		d = deed{did: "gave", do: "give", what: "the dial back", how: end}
	case change.Level != "":
		d.how = " to " + change.Level + end
	}
	if change.Shed == "" {
		return d
	}
	shed := deed{did: "set", do: "set", what: "the share of requests that is turned away", how: " to " + change.Shed + end}
	if change.Level != "" {
		shed.how = " to " + change.Shed + ", and " + d.did + " " + d.what + d.how
	}
	return shed
}

// ofSite and forSpan write the ends of a sentence, if there are any.
func ofSite(site string) string {
	if site == "" {
		return ""
	}
	return ", of site " + site
}

func forSpan(span string) string {
	if span == "" {
		return ""
	}
	return ", for " + span
}
