package distribution

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNoGroup means the distribution has no origin group of that id.
	ErrNoGroup = errors.New("no such origin group")

	// ErrMembers means the group does not hold exactly the two wanted origins.
	ErrMembers = errors.New("origin group does not hold exactly the two configured origins")
)

// Exchange returns the DistributionConfig document with the two members of an
// origin group in this order. The member elements change places as they are,
// with their own tags, attributes, comments and unknown content; whatever
// stands around and between them stays where it is, byte for byte. A document in
// that order already is returned as it is.
//
// Errors: ErrDocument for one that is not understood, ErrNoGroup, ErrMembers.
func Exchange(doc []byte, groupID, wantFirst, wantSecond string) ([]byte, error) {
	members, err := membersOf(doc, groupID, wantFirst, wantSecond)
	if err != nil {
		return nil, err
	}
	if members[0].id == wantFirst {
		return doc, nil
	}
	out := swapBytes(doc, members)
	// What goes to CloudFront replaces a whole distribution, so it is proved
	// right instead of believed: it reads as wanted, and swaps back to the input.
	again, err := membersOf(out, groupID, wantFirst, wantSecond)
	if err != nil {
		return nil, fmt.Errorf("check the exchanged document: %w", err)
	}
	if again[0].id != wantFirst || !bytes.Equal(swapBytes(out, again), doc) {
		return nil, documentError("exchanging the members of origin group %q does not give the same document in the other order", groupID)
	}
	return out, nil
}

// member is one OriginGroupMember and the origin it names.
type member struct {
	*element
	id string
}

func swapBytes(doc []byte, m [2]member) []byte {
	out := make([]byte, 0, len(doc))
	out = append(out, doc[:m[0].start]...)
	out = append(out, doc[m[1].start:m[1].end]...)
	out = append(out, doc[m[0].end:m[1].start]...)
	out = append(out, doc[m[0].start:m[0].end]...)
	return append(out, doc[m[1].end:]...)
}

// membersOf finds the two members of the group, in the order of the document.
func membersOf(doc []byte, groupID, a, b string) ([2]member, error) {
	var out [2]member
	if a == b {
		return out, fmt.Errorf("%w: both are %q", ErrMembers, a)
	}
	root, err := parse(doc, "DistributionConfig")
	if err != nil {
		return out, err
	}
	group, err := groupOf(root, groupID)
	if err != nil {
		return out, err
	}
	at := fmt.Sprintf("origin group %q", groupID)
	list, err := group.only(at, "Members")
	if err != nil {
		return out, err
	}
	items, err := list.only(at+"/Members", "Items")
	if err != nil {
		return out, err
	}
	var ids []string
	found := items.all("OriginGroupMember")
	for i, m := range found {
		id, err := m.only(fmt.Sprintf("member %d of %s", i+1, at), "OriginId")
		if err != nil {
			return out, err
		}
		if len(id.children) > 0 {
			return out, documentError("the OriginId of member %d of %s holds elements", i+1, at)
		}
		ids = append(ids, id.text)
	}
	if len(ids) != 2 || !(ids[0] == a && ids[1] == b || ids[0] == b && ids[1] == a) {
		return out, fmt.Errorf("%w: %q holds %s, expected %s and %s", ErrMembers, groupID, quoted(ids), a, b)
	}
	if q := list.all("Quantity"); len(q) > 1 || len(q) == 1 && q[0].text != "2" {
		return out, documentError("%s/Members has two members and says Quantity %q", at, list.value("Quantity"))
	}
	return [2]member{{found[0], ids[0]}, {found[1], ids[1]}}, nil
}

// groupOf finds the one group of that id.
func groupOf(root *element, groupID string) (*element, error) {
	if n := len(root.all("OriginGroups")); n > 1 {
		return nil, documentError("DistributionConfig has %d elements OriginGroups, expected one", n)
	}
	groups := root.first("OriginGroups")
	if n := len(groups.all("Items")); n > 1 {
		return nil, documentError("OriginGroups has %d elements Items, expected one", n)
	}
	var found []*element
	var known []string
	for _, g := range groups.first("Items").all("OriginGroup") {
		id, err := g.only("an origin group", "Id")
		if err != nil {
			return nil, err
		}
		known = append(known, id.text)
		if id.text == groupID {
			found = append(found, g)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, fmt.Errorf("%w: %q; the distribution has %s", ErrNoGroup, groupID, quoted(known))
	default:
		return nil, documentError("it has %d origin groups with the id %q", len(found), groupID)
	}
}

// quoted lists ids for an error message.
func quoted(ids []string) string {
	if len(ids) == 0 {
		return "none"
	}
	return fmt.Sprintf("%q", strings.Join(ids, ", "))
}
