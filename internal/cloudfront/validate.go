package cloudfront

import (
	"net/http"
	"slices"
	"strconv"
)

// Quotas and ranges of a distribution, from AWS's documentation (2023 to 2026).
const (
	maxOrigins      = 25
	maxOriginGroups = 10
)

var (
	// failoverCodes may be chosen in an origin group.
	failoverCodes = []string{"400", "403", "404", "416", "500", "502", "503", "504"}

	// errorCodes may have a custom error response.
	errorCodes = []string{"400", "403", "404", "405", "414", "416", "500", "501", "502", "503", "504"}

	// counted are the list elements that need a Quantity, and what it counts.
	counted = map[string]string{
		"Aliases": "CNAME", "Origins": "Origin", "OriginGroups": "OriginGroup", "StatusCodes": "StatusCode",
		"Members": "OriginGroupMember", "CacheBehaviors": "CacheBehavior", "CustomErrorResponses": "CustomErrorResponse",
		"CustomHeaders": "OriginCustomHeader", "OriginSslProtocols": "SslProtocol", "AllowedMethods": "Method",
		"CachedMethods": "Method", "Headers": "Name", "TrustedSigners": "AwsAccountNumber", "TrustedKeyGroups": "KeyGroup",
		"LambdaFunctionAssociations": "LambdaFunctionAssociation", "FunctionAssociations": "FunctionAssociation",
		"GeoRestriction": "Location", "Paths": "Path", "QueryStringCacheKeys": "Name", "WhitelistedNames": "Name",
	}

	// single elements may stand once in a DistributionConfig.
	single = []string{
		"CallerReference", "Aliases", "DefaultRootObject", "Origins", "OriginGroups", "DefaultCacheBehavior",
		"CacheBehaviors", "CustomErrorResponses", "Comment", "PriceClass", "Enabled",
	}
)

// validate checks a DistributionConfig; callers hold mu.
func (d *Double) validate(c *node) *failure {
	for _, check := range []func(*node) *failure{checkRequired, checkQuantities, checkOrigins, checkGroups, checkErrorResponses} {
		if fail := check(c); fail != nil {
			return fail
		}
	}
	return d.checkBehaviors(c)
}

func malformed(format string, args ...any) *failure {
	return failf(http.StatusBadRequest, "MalformedXML", format, args...)
}

func checkRequired(c *node) *failure {
	for _, name := range single {
		if len(c.all(name)) > 1 {
			return malformed("The element %s stands %d times.", name, len(c.all(name)))
		}
	}
	for _, name := range []string{"CallerReference", "Origins", "DefaultCacheBehavior", "Comment", "Enabled"} {
		if c.at(name) == nil {
			return invalidArgument("The parameter %s is required.", name)
		}
	}
	if c.text("CallerReference") == "" {
		return invalidArgument("The parameter CallerReference is required.")
	}
	if enabled := c.text("Enabled"); enabled != "true" && enabled != "false" {
		return malformed("Enabled is %q, expected true or false.", enabled)
	}
	return nil
}

// checkQuantities walks the whole document: where there is a Quantity it equals
// the number of items, and lists that AWS knows have one. Elements of other names
// among the items of a known list are not counted.
func checkQuantities(n *node) *failure {
	quantities := n.all("Quantity")
	item, known := counted[n.XMLName.Local]
	known = known && n.XMLName.Space == Namespace
	if known && len(quantities) == 0 && n.at("Items") != nil {
		return invalidArgument("The parameter %s.Quantity is required.", n.XMLName.Local)
	}
	if len(quantities) > 1 || len(n.all("Items")) > 1 {
		return malformed("%s has more than one Quantity or Items.", n.XMLName.Local)
	}
	if len(quantities) == 1 {
		count := 0
		if items := n.at("Items"); items != nil && known {
			count = len(items.all(item))
		} else if items != nil {
			count = len(items.Children)
		}
		if want, err := strconv.Atoi(n.text("Quantity")); err != nil || want != count {
			return failf(http.StatusBadRequest, "InconsistentQuantities",
				"The value of Quantity (%s) and the number of items (%d) in %s do not match.", n.text("Quantity"), count, n.XMLName.Local)
		}
	}
	for i := range n.Children {
		if fail := checkQuantities(&n.Children[i]); fail != nil {
			return fail
		}
	}
	return nil
}

// inRange checks an optional whole number.
func inRange(n *node, low, high int, code string, names ...string) *failure {
	found := n.at(names...)
	if found == nil {
		return nil
	}
	text := n.text(names...)
	if v, err := strconv.Atoi(text); err != nil || v < low || v > high {
		return failf(http.StatusBadRequest, code, "The parameter %s is %q, expected %d to %d.", names[len(names)-1], text, low, high)
	}
	return nil
}

func checkOrigins(c *node) *failure {
	origins := c.items("Origin", "Origins")
	if len(origins) == 0 {
		return invalidArgument("The parameter Origins is required.")
	}
	if len(origins) > maxOrigins {
		return failf(http.StatusBadRequest, "TooManyOrigins", "Your request contains more than %d origins.", maxOrigins)
	}
	seen := make(map[string]bool)
	for _, o := range origins {
		id := o.text("Id")
		if id == "" || o.text("DomainName") == "" {
			return invalidArgument("The parameters Id and DomainName of an origin are required.")
		}
		if seen[id] {
			return invalidArgument("The parameter Origin Id %s stands more than once.", id)
		}
		seen[id] = true
		for _, fail := range []*failure{
			inRange(o, 1, 3, "InvalidArgument", "ConnectionAttempts"),
			inRange(o, 1, 10, "InvalidArgument", "ConnectionTimeout"),
			inRange(o, 1, 120, "InvalidOriginReadTimeout", "CustomOriginConfig", "OriginReadTimeout"),
			inRange(o, 1, 120, "InvalidOriginKeepaliveTimeout", "CustomOriginConfig", "OriginKeepaliveTimeout"),
		} {
			if fail != nil {
				return fail
			}
		}
	}
	return nil
}

// ids lists the origins' ids, or with groups those of both.
func ids(c *node, groups bool) []string {
	var out []string
	for _, o := range c.items("Origin", "Origins") {
		out = append(out, o.text("Id"))
	}
	if groups {
		for _, g := range c.items("OriginGroup", "OriginGroups") {
			out = append(out, g.text("Id"))
		}
	}
	return out
}

func checkGroups(c *node) *failure {
	groups := c.items("OriginGroup", "OriginGroups")
	if len(groups) > maxOriginGroups {
		return failf(http.StatusBadRequest, "TooManyOriginGroupsPerDistribution", "Your request contains more than %d origin groups.", maxOriginGroups)
	}
	known := ids(c, false)
	seen := slices.Clone(known)
	for _, g := range groups {
		id := g.text("Id")
		if id == "" || slices.Contains(seen, id) {
			return invalidArgument("The parameter Origin Group Id %q is empty or not unique.", id)
		}
		seen = append(seen, id)
		if fail := checkGroup(g, id, known); fail != nil {
			return fail
		}
	}
	return nil
}

func checkGroup(g *node, id string, known []string) *failure {
	codes := g.items("StatusCode", "FailoverCriteria", "StatusCodes")
	if len(codes) == 0 {
		return invalidArgument("The parameter FailoverCriteria of origin group %s is required.", id)
	}
	for _, code := range codes {
		if text := code.textContent(); !slices.Contains(failoverCodes, text) {
			return invalidArgument("The parameter StatusCode %s of origin group %s is not valid for failover.", text, id)
		}
	}
	members := g.items("OriginGroupMember", "Members")
	if len(members) != 2 {
		return invalidArgument("The parameter Members of origin group %s must have exactly 2 members, not %d.", id, len(members))
	}
	var names []string
	for _, m := range members {
		if len(m.all("OriginId")) != 1 {
			return malformed("A member of origin group %s needs exactly one OriginId.", id)
		}
		name := m.text("OriginId")
		if !slices.Contains(known, name) {
			return invalidArgument("The parameter Members has one or more origins [%s] for origin group %s that aren't valid. "+
				"Origins that you specify for an origin group must be associated with the distribution.", name, id)
		}
		names = append(names, name)
	}
	if names[0] == names[1] {
		return invalidArgument("The parameter Members of origin group %s has the origin %s twice.", id, names[0])
	}
	switch s := g.text("SelectionCriteria"); s {
	case "", "default", "media-quality-based":
		return nil
	default:
		return invalidArgument("The parameter SelectionCriteria %s of origin group %s is not valid.", s, id)
	}
}

func checkErrorResponses(c *node) *failure {
	for _, r := range c.items("CustomErrorResponse", "CustomErrorResponses") {
		if code := r.text("ErrorCode"); !slices.Contains(errorCodes, code) {
			return failf(http.StatusBadRequest, "InvalidErrorCode", "The error code %s is not one for a custom error response.", code)
		}
		if fail := inRange(r, 0, 1<<31-1, "InvalidArgument", "ErrorCachingMinTTL"); fail != nil {
			return fail
		}
	}
	return nil
}

func (d *Double) checkBehaviors(c *node) *failure {
	targets := ids(c, true)
	origins := ids(c, false)
	behaviors := append([]*node{c.at("DefaultCacheBehavior")}, c.items("CacheBehavior", "CacheBehaviors")...)
	for i, b := range behaviors {
		target := b.text("TargetOriginId")
		if !slices.Contains(targets, target) {
			return failf(http.StatusNotFound, "NoSuchOrigin", "One or more of your origins or origin groups do not exist.")
		}
		if i > 0 && b.text("PathPattern") == "" {
			return invalidArgument("The parameter PathPattern is required.")
		}
		if b.text("ViewerProtocolPolicy") == "" {
			return invalidArgument("The parameter ViewerProtocolPolicy is required.")
		}
		if !slices.Contains(origins, target) && writes(b) {
			return invalidArgument("The parameter AllowedMethods cannot include POST, PUT, PATCH, or DELETE for a cached behavior associated with an origin group.")
		}
		if fail := checkCaching(b, d.policies); fail != nil {
			return fail
		}
		if fail := checkFunctions(b, d.functions); fail != nil {
			return fail
		}
		if id := b.text("OriginRequestPolicyId"); id != "" {
			if _, ok := d.originPolicies[id]; !ok {
				return failf(http.StatusNotFound, "NoSuchOriginRequestPolicy", "The specified origin request policy does not exist.")
			}
		}
	}
	return nil
}

func writes(behavior *node) bool {
	for _, m := range behavior.items("Method", "AllowedMethods") {
		switch m.textContent() {
		case "GET", "HEAD", "OPTIONS":
		default:
			return true
		}
	}
	return false
}

// checkCaching wants a cache policy or the older settings, not both.
func checkCaching(b *node, policies map[string]CachePolicy) *failure {
	id, legacy := b.text("CachePolicyId"), b.at("ForwardedValues")
	switch {
	case id != "" && (legacy != nil || b.at("MinTTL") != nil):
		return invalidArgument("The parameter ForwardedValues cannot be used when a cache policy is associated to the cache behavior.")
	case id == "" && legacy == nil:
		return invalidArgument("The parameter ForwardedValues is required.")
	case id != "":
		if _, ok := policies[id]; !ok {
			return failf(http.StatusNotFound, "NoSuchCachePolicy", "The specified cache policy does not exist.")
		}
		return nil
	}
	ttls := make([]int, 3)
	for i, name := range []string{"MinTTL", "DefaultTTL", "MaxTTL"} {
		ttls[i] = []int{0, 86400, 31536000}[i] // AWS's defaults
		if fail := inRange(b, 0, 1<<31-1, "InvalidArgument", name); fail != nil {
			return fail
		}
		if text := b.text(name); text != "" {
			ttls[i], _ = strconv.Atoi(text) // checked just above
		}
	}
	if !slices.IsSorted(ttls) {
		return failf(http.StatusBadRequest, "InvalidTTLOrder", "The order of the cache behavior's MinTTL, DefaultTTL and MaxTTL is invalid.")
	}
	return nil
}
