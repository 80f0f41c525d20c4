package distribution

import (
	"fmt"
	"slices"
	"strings"
)

// Purpose is what a document is checked for. In an outage the bar is low.
type Purpose int

const (
	// ForDegrade refuses only a group that does not hold exactly the two origins.
	ForDegrade Purpose = iota
	// ForRestore refuses also what would make the proxy a danger.
	ForRestore
	// ForRehearsal refuses the same, before any outage.
	ForRehearsal
)

// Codes of findings, stable for metrics and JSON.
const (
	FindingNoGroup     = "no_group"        // origin_group_id is not there
	FindingNoOrigin    = "no_origin"       // an origin id is not there
	FindingMembers     = "members"         // the group holds other origins
	FindingDocument    = "document"        // the document is not understood
	FindingQuality     = "quality_based"   // the group ignores the order
	FindingFailover    = "no_failover_503" // the edge does not fail over on 503
	FindingFailover403 = "no_failover_403"
	FindingUnused      = "unused" // no behaviour uses the group
)

// Finding is one thing that is wrong with a distribution.
type Finding struct {
	Code    string `json:"code"`
	Refusal bool   `json:"refusal"` // nothing is written because of it; else a warning
	Message string `json:"message"` // what is wrong
	Hint    string `json:"hint"`    // what to do about it
}

func (f Finding) String() string { return f.Message + ": " + f.Hint }

// Check looks at the target's group in a document as received and says what
// stands against exchanging its members for this purpose, refusals first.
func Check(raw []byte, doc Document, t Target, p Purpose) []Finding {
	out := t.checkMembers(raw, doc)
	g, ok := doc.Group(t.GroupID)
	if !ok {
		return out
	}
	strict := p != ForDegrade
	if g.Selection != selectionByDefault {
		out = append(out, Finding{
			FindingQuality, strict,
			fmt.Sprintf("origin group %q selects by %q, which ignores the order of its members", g.ID, g.Selection),
			"set the selection criteria of the origin group to default",
		})
	}
	if !slices.Contains(g.Criteria, 503) {
		out = append(out, Finding{
			FindingFailover, strict,
			fmt.Sprintf("origin group %q does not fail over on 503, only on %s", g.ID, numbers(g.Criteria)),
			"add 503 (and 500, 502, 504, 403) to the failover criteria of the origin group",
		})
	}
	if !slices.Contains(g.Criteria, 403) && p == ForRehearsal {
		out = append(out, Finding{
			FindingFailover403, false,
			fmt.Sprintf("origin group %q does not fail over on 403", g.ID),
			"add 403 to the failover criteria, so that a firewall in front of the proxy breaks no images",
		})
	}
	if len(doc.BehaviorsOf(g.ID)) == 0 {
		out = append(out, Finding{
			FindingUnused, strict,
			fmt.Sprintf("no cache behaviour sends requests to origin group %q", g.ID),
			"choose the origin group as the origin of the behaviour for images, or correct origin_group_id",
		})
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		switch {
		case a.Refusal == b.Refusal:
			return 0
		case a.Refusal:
			return -1
		default:
			return 1
		}
	})
	return out
}

// checkMembers is what even a degrade cannot do without.
func (t Target) checkMembers(raw []byte, doc Document) []Finding {
	var groups, origins []string
	for _, g := range doc.Groups {
		groups = append(groups, g.ID)
	}
	for _, o := range doc.Origins {
		origins = append(origins, o.ID)
	}
	if !slices.Contains(groups, t.GroupID) {
		return []Finding{{
			FindingNoGroup, true,
			fmt.Sprintf("distribution %s has no origin group %q, but %s", t.DistributionID, t.GroupID, quoted(groups)),
			"correct origin_group_id, or make an origin group of that id with the two origins",
		}}
	}
	var out []Finding
	for _, key := range []struct{ name, id string }{{"proxy_origin_id", t.ProxyOrigin}, {"direct_origin_id", t.DirectOrigin}} {
		if !slices.Contains(origins, key.id) {
			out = append(out, Finding{
				FindingNoOrigin, true,
				fmt.Sprintf("distribution %s has no origin %q (%s), but %s", t.DistributionID, key.id, key.name, quoted(origins)),
				"correct " + key.name,
			})
		}
	}
	if len(out) > 0 {
		return out
	}
	_, err := membersOf(raw, t.GroupID, t.ProxyOrigin, t.DirectOrigin)
	switch g, _ := doc.Group(t.GroupID); {
	case err == nil:
		return nil
	case t.OrderOf(doc) != OrderUnknown:
		return []Finding{{
			FindingDocument, true, err.Error(), hintByHand,
		}}
	default:
		return []Finding{{
			FindingMembers, true,
			fmt.Sprintf("origin group %q holds %s, expected %q and %q", t.GroupID, quoted(g.Members), t.ProxyOrigin, t.DirectOrigin),
			"put exactly the two origins into the group, or correct origin_group_id, proxy_origin_id and direct_origin_id",
		}}
	}
}

func numbers(list []int) string {
	if len(list) == 0 {
		return "no status"
	}
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(list)), ", "), "[]")
}

// refusals joins those that forbid a write; nil if none does.
func refusals(findings []Finding) *Error {
	var messages, hints []string
	for _, f := range findings {
		if f.Refusal {
			messages = append(messages, f.Message)
			hints = append(hints, f.Hint)
		}
	}
	if messages == nil {
		return nil
	}
	return &Error{Kind: KindRefused, Message: strings.Join(messages, "; "), Hint: strings.Join(hints, "; ")}
}
