package cloudfront

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// defaultPage is MaxItems unless asked otherwise; AWS allows no more than this.
const defaultPage = 100

// summaryParts are the elements of a configuration that a summary repeats.
var summaryParts = []string{
	"Aliases", "Origins", "OriginGroups", "DefaultCacheBehavior", "CacheBehaviors",
	"CustomErrorResponses", "Comment", "PriceClass", "Enabled", "ViewerCertificate",
	"Restrictions", "WebACLId", "HttpVersion", "IsIPV6Enabled", "Staging",
}

// pageSize reads MaxItems.
func pageSize(query url.Values) (int, *failure) {
	text := query.Get("MaxItems")
	if text == "" {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > defaultPage {
		return 0, invalidArgument("The parameter MaxItems is %q, expected 1 to %d.", text, defaultPage)
	}
	return n, nil
}

func (d *Double) listDistributions(c *call) (reply, *failure) {
	query := c.r.URL.Query()
	limit, fail := pageSize(query)
	if fail != nil {
		return reply{}, fail
	}
	marker := query.Get("Marker")
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for id := range d.distributions {
		if id > marker {
			names = append(names, id)
		}
	}
	slices.Sort(names)
	truncated := len(names) > limit
	if truncated {
		names = names[:limit]
	}
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?>` + "\n")
	fmt.Fprintf(&b, `<DistributionList xmlns="%s"><Marker>%s</Marker><MaxItems>%d</MaxItems><IsTruncated>%t</IsTruncated>`,
		Namespace, escapeXML(marker), limit, truncated)
	if truncated {
		b.WriteString("<NextMarker>" + names[len(names)-1] + "</NextMarker>")
	}
	fmt.Fprintf(&b, "<Quantity>%d</Quantity>", len(names))
	if len(names) > 0 {
		b.WriteString("<Items>")
		for _, id := range names {
			d.writeSummary(&b, d.distributions[id])
		}
		b.WriteString("</Items>")
	}
	b.WriteString("</DistributionList>")
	return reply{status: http.StatusOK, body: []byte(b.String())}, nil
}

// writeSummary repeats the parts as they stand in the document, under the
// document's own namespace declarations.
func (d *Double) writeSummary(b *strings.Builder, x *distribution) {
	root := x.newest().root
	open, attrs := "", namespaceAttrs(root)
	if !strings.Contains(attrs, ` xmlns="`+Namespace+`"`) {
		// The document is prefixed throughout, so the part needs a prefix that
		// leaves its default namespace alone.
		open, attrs = "part:", attrs+` xmlns:part="`+Namespace+`"`
	}
	b.WriteString("<DistributionSummary>" + d.summaryHead(x))
	for _, name := range summaryParts {
		if part := root.at(name); part != nil {
			b.WriteString("<" + open + name + attrs + ">")
			b.Write(part.Inner)
			b.WriteString("</" + open + name + ">")
		}
	}
	b.WriteString("</DistributionSummary>")
}
