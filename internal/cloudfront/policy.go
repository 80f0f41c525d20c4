package cloudfront

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// policy is an IAM policy document of the simple form: Allow and Deny, actions
// and resources or their complements, wildcards, no conditions.
type policy struct{ statements []statement }

type statement struct {
	deny                    bool
	actions, notActions     []string
	resources, notResources []string
}

// verdict is what one policy says about a request.
type verdict int

const (
	silent verdict = iota // neither allows nor denies: an implicit deny
	allowed
	denied
)

// list is one string or an array of them, as IAM accepts both.
type list []string

func (l *list) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = list{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(b, &many); err != nil {
		return errors.New("expected a string or a list of strings")
	}
	*l = many
	return nil
}

type statementJSON struct {
	Sid         string
	Effect      string
	Action      list
	NotAction   list
	Resource    list
	NotResource list
}

// parsePolicy reads a document and refuses what IAM would refuse in a session
// or identity policy, and conditions, which the double does not evaluate.
func parsePolicy(document string) (*policy, error) {
	var doc struct {
		Version   string
		ID        string `json:"Id"`
		Statement json.RawMessage
	}
	if err := strictJSON([]byte(document), &doc); err != nil {
		return nil, err
	}
	if doc.Version != "2012-10-17" {
		return nil, fmt.Errorf("version %q, expected 2012-10-17", doc.Version)
	}
	var raw []statementJSON
	if bytes.HasPrefix(bytes.TrimSpace(doc.Statement), []byte("{")) {
		raw = make([]statementJSON, 1)
		if err := strictJSON(doc.Statement, &raw[0]); err != nil {
			return nil, err
		}
	} else if err := strictJSON(doc.Statement, &raw); err != nil {
		return nil, err
	}
	if len(raw) == 0 {
		return nil, errors.New("no statement")
	}
	p := &policy{}
	seen := make(map[string]bool)
	for i, s := range raw {
		if s.Sid != "" && seen[s.Sid] {
			return nil, fmt.Errorf("statement ids (SID) in a single policy must be unique: %q", s.Sid)
		}
		seen[s.Sid] = true
		st, err := s.check()
		if err != nil {
			return nil, fmt.Errorf("statement %d: %w", i+1, err)
		}
		p.statements = append(p.statements, st)
	}
	return p, nil
}

func strictJSON(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("syntax errors in policy: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("syntax errors in policy: something follows the document")
	}
	return nil
}

func (s statementJSON) check() (statement, error) {
	out := statement{
		actions: s.Action, notActions: s.NotAction,
		resources: s.Resource, notResources: s.NotResource,
	}
	switch s.Effect {
	case "Allow":
	case "Deny":
		out.deny = true
	default:
		return out, fmt.Errorf("effect %q, expected Allow or Deny", s.Effect)
	}
	if strings.Trim(s.Sid, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return out, fmt.Errorf("statement id %q may hold only letters and digits", s.Sid)
	}
	if (len(s.Action) == 0) == (len(s.NotAction) == 0) {
		return out, errors.New("policy statement must contain either Action or NotAction, not both")
	}
	if (len(s.Resource) == 0) == (len(s.NotResource) == 0) {
		return out, errors.New("policy statement must contain either Resource or NotResource, not both")
	}
	for _, a := range append(append([]string{}, s.Action...), s.NotAction...) {
		vendor, name, ok := strings.Cut(a, ":")
		if a != "*" && (!ok || vendor == "" || name == "" || strings.ContainsAny(vendor, "*?")) {
			return out, fmt.Errorf("action %q must be prefixed by a vendor such as cloudfront", a)
		}
	}
	for _, r := range append(append([]string{}, s.Resource...), s.NotResource...) {
		if err := checkResource(r); err != nil {
			return out, err
		}
	}
	return out, nil
}

// checkResource accepts "*" and ARNs whose partition and service are spelt out
// and whose region and account, where AWS's own ARNs have one, may be wildcards.
func checkResource(r string) error {
	if r == "*" {
		return nil
	}
	parts := strings.SplitN(r, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" {
		return fmt.Errorf("resource %q must be in ARN format or \"*\"", r)
	}
	switch parts[1] {
	case "aws", "aws-cn", "aws-us-gov":
	default:
		return fmt.Errorf("partition %q is not valid for resource %q", parts[1], r)
	}
	if parts[2] == "" || strings.ContainsAny(parts[2], "*?") {
		return fmt.Errorf("vendor %q is not valid for resource %q", parts[2], r)
	}
	if parts[5] == "" {
		return fmt.Errorf("resource %q has an empty resource part", r)
	}
	return nil
}

// evaluate judges one request. A Deny wins over every Allow.
func (p *policy) evaluate(action, resource string) verdict {
	out := silent
	for _, s := range p.statements {
		if !s.covers(action, resource) {
			continue
		}
		if s.deny {
			return denied
		}
		out = allowed
	}
	return out
}

func (s statement) covers(action, resource string) bool {
	action = strings.ToLower(action) // actions ignore case, resources do not
	matchesAction := func(patterns []string) bool {
		for _, p := range patterns {
			if glob(strings.ToLower(p), action) {
				return true
			}
		}
		return false
	}
	matchesResource := func(patterns []string) bool {
		for _, p := range patterns {
			if matchARN(p, resource) {
				return true
			}
		}
		return false
	}
	if len(s.actions) > 0 && !matchesAction(s.actions) || len(s.notActions) > 0 && matchesAction(s.notActions) {
		return false
	}
	if len(s.resources) > 0 {
		return matchesResource(s.resources)
	}
	return !matchesResource(s.notResources)
}

// matchARN compares segment by segment, since wildcards do not span the colons
// of the first five; the resource part is one segment whatever it holds.
func matchARN(pattern, arn string) bool {
	if pattern == "*" {
		return true
	}
	p, a := strings.SplitN(pattern, ":", 6), strings.SplitN(arn, ":", 6)
	if len(p) != len(a) {
		return false
	}
	for i := range p {
		if !glob(p[i], a[i]) {
			return false
		}
	}
	return true
}

// glob knows * (any run, also none) and ? (any one byte).
func glob(pattern, s string) bool {
	star, retry := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, retry = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			retry++
			p, i = star+1, retry
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
