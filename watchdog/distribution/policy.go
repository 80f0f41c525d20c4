package distribution

import (
	"encoding/json"
	"fmt"
)

// maxPolicy is IAM's limit for an inline session policy, in characters.
const maxPolicy = 2048

type policyDocument struct {
	Version   string
	Statement []policyStatement
}

type policyStatement struct {
	Sid         string
	Effect      string
	Action      string
	Resource    string   `json:",omitempty"`
	NotResource []string `json:",omitempty"`
}

// SessionPolicy is the inline policy of every session: what the role allows, but
// nothing of CloudFront on any distribution except this one.
//
// IAM knows no "these resources except that one": a statement has either
// Resource or NotResource, and no condition key holds the resource's ARN. So the
// Deny names what it spares: this distribution, and every CloudFront resource
// that is no distribution, by the first letter of its type (the types are
// lower-case words), since the list of types grows. Of the types with a d, only
// distribution-tenant is spared. Actions without a resource (ListDistributions
// and the other lists) are denied too: nothing here needs them.
func SessionPolicy(t Target) (string, error) {
	partition, _ := t.partition()
	spared := []string{t.ARN(), "arn:" + partition + ":cloudfront::*:distribution-*"}
	for letter := 'a'; letter <= 'z'; letter++ {
		if letter != 'd' {
			spared = append(spared, fmt.Sprintf("arn:%s:cloudfront::*:%c*", partition, letter))
		}
	}
	b, err := json.Marshal(policyDocument{
		Version: "2012-10-17",
		Statement: []policyStatement{
			{Sid: "AsTheRoleAllows", Effect: "Allow", Action: "*", Resource: "*"},
			{Sid: "NoOtherDistribution", Effect: "Deny", Action: "cloudfront:*", NotResource: spared},
		},
	})
	if err != nil {
		return "", fmt.Errorf("write session policy: %w", err)
	}
	if len(b) > maxPolicy {
		return "", fmt.Errorf("session policy has %d characters, IAM takes %d", len(b), maxPolicy)
	}
	return string(b), nil
}
