package cloudfront

import (
	"testing"
)

func TestPolicyEvaluation(t *testing.T) {
	const arn = "arn:aws:cloudfront::111122223333:distribution/"
	for name, tc := range map[string]struct {
		statements, action, resource string
		want                         verdict
	}{
		"allow":               {`[{"Effect":"Allow","Action":"cloudfront:Get*","Resource":"` + arn + `E1"}]`, "cloudfront:GetDistribution", arn + "E1", allowed},
		"action case":         {`[{"Effect":"Allow","Action":"CloudFront:gEt*","Resource":"*"}]`, "cloudfront:GetDistribution", arn + "E1", allowed},
		"other resource":      {`[{"Effect":"Allow","Action":"cloudfront:Get*","Resource":"` + arn + `E1"}]`, "cloudfront:GetDistribution", arn + "E12", silent},
		"resource case":       {`[{"Effect":"Allow","Action":"cloudfront:Get*","Resource":"` + arn + `e1"}]`, "cloudfront:GetDistribution", arn + "E1", silent},
		"question mark":       {`[{"Effect":"Allow","Action":"cloudfront:Get*","Resource":"` + arn + `E?"}]`, "cloudfront:GetDistribution", arn + "E1", allowed},
		"deny wins":           {`[{"Effect":"Deny","Action":"*","Resource":"` + arn + `E1"},{"Effect":"Allow","Action":"*","Resource":"*"}]`, "cloudfront:GetDistribution", arn + "E1", denied},
		"not resource":        {`[{"Effect":"Deny","Action":"*","NotResource":["` + arn + `E1"]}]`, "cloudfront:GetDistribution", arn + "E2", denied},
		"not resource spares": {`[{"Effect":"Deny","Action":"*","NotResource":["` + arn + `E1"]}]`, "cloudfront:GetDistribution", arn + "E1", silent},
		"not action":          {`[{"Effect":"Allow","NotAction":"cloudfront:*","Resource":"*"}]`, "s3:GetObject", "arn:aws:s3:::b/k", allowed},
		"not action spares":   {`[{"Effect":"Allow","NotAction":"cloudfront:*","Resource":"*"}]`, "cloudfront:GetDistribution", arn + "E1", silent},
		"no span":             {`[{"Effect":"Allow","Action":"*","Resource":"arn:aws:cloudfront:*/E1"}]`, "cloudfront:GetDistribution", arn + "E1", silent},
		"account wildcard":    {`[{"Effect":"Allow","Action":"*","Resource":"arn:aws:cloudfront::*:distribution/*"}]`, "cloudfront:GetDistribution", arn + "E1", allowed},
	} {
		if name == "no span" {
			// Fewer than six segments: IAM would refuse the document.
			if _, err := parsePolicy(`{"Version":"2012-10-17","Statement":` + tc.statements + `}`); err == nil {
				t.Error("a short ARN was taken")
			}
			continue
		}
		p, err := parsePolicy(`{"Version":"2012-10-17","Id":"x","Statement":` + tc.statements + `}`)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := p.evaluate(tc.action, tc.resource); got != tc.want {
			t.Errorf("%s: verdict %d, want %d", name, got, tc.want)
		}
	}
}

func TestPolicyRefusals(t *testing.T) {
	for name, document := range map[string]string{
		"not json":       `{`,
		"trailing":       AllowAll + "x",
		"version":        `{"Version":"2008-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`,
		"no statement":   `{"Version":"2012-10-17","Statement":[]}`,
		"effect":         `{"Version":"2012-10-17","Statement":{"Effect":"allow","Action":"*","Resource":"*"}}`,
		"no action":      `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Resource":"*"}}`,
		"both resources": `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*","NotResource":"*"}}`,
		"bare action":    `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"GetDistribution","Resource":"*"}}`,
		"no arn":         `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"E1"}}`,
		"partition":      `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"arn:*:cloudfront::1:distribution/E1"}}`,
		"vendor":         `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"arn:aws:*::1:distribution/E1"}}`,
		"principal":      `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"}}`,
		"condition":      `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Condition":{}}}`,
		"number":         `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":7,"Resource":"*"}}`,
		"sid":            `{"Version":"2012-10-17","Statement":{"Sid":"a b","Effect":"Allow","Action":"*","Resource":"*"}}`,
		"sid twice":      `{"Version":"2012-10-17","Statement":[{"Sid":"a","Effect":"Allow","Action":"*","Resource":"*"},{"Sid":"a","Effect":"Allow","Action":"*","Resource":"*"}]}`,
	} {
		if _, err := parsePolicy(document); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, tc := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true},
		{"*", "", true},
		{"", "a", false},
		{"a*", "a", true},
		{"*b", "aab", true},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "axxbyy", false},
		{"?", "", false},
		{"??", "ab", true},
		{"*?", "a", true},
		{"a", "ab", false},
	} {
		if got := glob(tc.pattern, tc.s); got != tc.want {
			t.Errorf("glob(%q, %q) = %v", tc.pattern, tc.s, got)
		}
	}
}

func TestPrefixLeavesTheRestAlone(t *testing.T) {
	in := `<?xml version="1.0"?><!-- <a xmlns="x"> --><DistributionConfig a="xmlns='no'" xmlns = "` + Namespace + `"><Comment/>` +
		`<o:Foreign xmlns:o="urn:o"><Inside xmlns="urn:p"><Deep/></Inside><Ours>t</Ours></o:Foreign><![CDATA[<b>]]></DistributionConfig >`
	want := `<?xml version="1.0"?><!-- <a xmlns="x"> --><cf:DistributionConfig a="xmlns='no'" xmlns:cf = "` + Namespace + `"><cf:Comment/>` +
		`<o:Foreign xmlns:o="urn:o"><Inside xmlns="urn:p"><Deep/></Inside><cf:Ours>t</cf:Ours></o:Foreign><![CDATA[<b>]]></cf:DistributionConfig >`
	got := withPrefix([]byte(in), "cf")
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if again := withPrefix(got, "cf"); string(again) != want {
		t.Errorf("a prefixed document was changed: %s", again)
	}
	if same := withPrefix([]byte("<no xml"), "cf"); string(same) != "<no xml" {
		t.Errorf("broken text was changed: %s", same)
	}
}
