package cloudfront

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/cloudfront"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront/types"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	mailtypes "github.com/aws/aws-sdk-go-v2/service/sesv2/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

// wantCode checks an error's AWS code and, if given, a part of its message.
func wantCode(t *testing.T, err error, code, part string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) {
		t.Fatalf("error is %v, want the API error %s", err, code)
	}
	if api.ErrorCode() != code || !strings.Contains(api.ErrorMessage(), part) {
		t.Fatalf("error is %s: %s\nwant %s with %q", api.ErrorCode(), api.ErrorMessage(), code, part)
	}
}

func TestSDKReadsAndWrites(t *testing.T) {
	inLab(t, Options{DeployDelay: 3 * time.Minute}, func(ctx context.Context, l *lab) {
		cf := l.cloudfront()
		got, err := cf.GetDistribution(ctx, &sdk.GetDistributionInput{Id: aws.String(shopID)})
		l.must(err)
		if s := aws.ToString(got.Distribution.Status); s != "Deployed" {
			t.Errorf("status of a new distribution is %s", s)
		}
		config, err := cf.GetDistributionConfig(ctx, &sdk.GetDistributionConfigInput{Id: aws.String(shopID)})
		l.must(err)
		if aws.ToString(config.ETag) != aws.ToString(got.ETag) {
			t.Errorf("two ETags for one version: %s and %s", *config.ETag, *got.ETag)
		}
		members := config.DistributionConfig.OriginGroups.Items[0].Members.Items
		members[0], members[1] = members[1], members[0]
		put := func(etag *string) (*sdk.UpdateDistributionOutput, error) {
			return cf.UpdateDistribution(ctx, &sdk.UpdateDistributionInput{
				Id: aws.String(shopID), IfMatch: etag, DistributionConfig: config.DistributionConfig,
			})
		}
		out, err := put(config.ETag)
		l.must(err)
		if aws.ToString(out.ETag) == aws.ToString(config.ETag) {
			t.Error("the ETag did not change with the update")
		}
		if s := aws.ToString(out.Distribution.Status); s != "InProgress" {
			t.Errorf("status after an update is %s", s)
		}
		_, err = put(config.ETag)
		wantCode(t, err, "PreconditionFailed", "")
		_, err = put(nil)
		wantCode(t, err, "InvalidIfMatchVersion", "missing or not valid")
		_, err = put(aws.String("*"))
		wantCode(t, err, "InvalidIfMatchVersion", "missing or not valid")

		// The edge goes on with the old order until the delay is over.
		if deployed, _ := l.Deployed(shopID); !bytes.Equal(deployed, l.shop) {
			t.Error("the edge has the new configuration at once")
		}
		pass(3 * time.Minute)
		snapshot, _ := l.Distribution(shopID)
		if snapshot.Status != "Deployed" || !bytes.Equal(snapshot.Deployed, snapshot.Newest) || bytes.Equal(snapshot.Deployed, l.shop) {
			t.Errorf("after the delay: %s", snapshot.Status)
		}
	})
}

func TestUpdatesPropagateInOrder(t *testing.T) {
	inLab(t, Options{DeployDelay: 5 * time.Minute}, func(_ context.Context, l *lab) {
		change := func(comment string) {
			l.must(l.PutDistribution(shopID, bytes.Replace(l.shop, []byte("the shop"), []byte(comment), 1)))
		}
		edge := func(want string) {
			t.Helper()
			if b, _ := l.Deployed(shopID); !bytes.Contains(b, []byte(want)) {
				t.Errorf("the edge does not have %q", want)
			}
		}
		change("first")
		pass(time.Minute)
		l.SetDeployDelay(time.Second) // a quick one behind a slow one waits for it
		change("second")
		pass(time.Minute)
		edge("the shop")
		pass(3 * time.Minute)
		edge("second")
	})
}

func TestListDistributions(t *testing.T) {
	inLab(t, Options{}, func(ctx context.Context, l *lab) {
		l.must(l.PutDistribution("E9", withPrefix(l.shop, "cf")))
		page, err := l.cloudfront().ListDistributions(ctx, &sdk.ListDistributionsInput{MaxItems: aws.Int32(1)})
		l.must(err)
		first := page.DistributionList
		if len(first.Items) != 1 || !aws.ToBool(first.IsTruncated) {
			t.Fatalf("first page: %d items, truncated %v", len(first.Items), aws.ToBool(first.IsTruncated))
		}
		page, err = l.cloudfront().ListDistributions(ctx, &sdk.ListDistributionsInput{Marker: first.NextMarker})
		l.must(err)
		for _, item := range append(first.Items, page.DistributionList.Items...) {
			if len(item.OriginGroups.Items) != 2 || aws.ToString(item.Comment) != "the shop & its images" || len(item.Aliases.Items) != 1 {
				t.Errorf("%s: summary is incomplete: %+v", aws.ToString(item.Id), item)
			}
		}
		if n := len(page.DistributionList.Items); n != 1 {
			t.Errorf("second page has %d items", n)
		}
	})
}

func TestPrefixedAnswersAndDocuments(t *testing.T) {
	inLab(t, Options{}, func(ctx context.Context, l *lab) {
		l.SetPrefix("cf")
		cf := l.cloudfront()
		config, err := cf.GetDistributionConfig(ctx, &sdk.GetDistributionConfigInput{Id: aws.String(shopID)})
		l.must(err)
		if n := len(config.DistributionConfig.OriginGroups.Items); n != 2 {
			t.Fatalf("the SDK reads %d origin groups out of a prefixed answer", n)
		}
		// The SDK answers without prefixes, which is another way to say the same.
		_, err = cf.UpdateDistribution(ctx, &sdk.UpdateDistributionInput{
			Id: aws.String(shopID), IfMatch: config.ETag, DistributionConfig: config.DistributionConfig,
		})
		l.must(err)
		l.must(l.PutDistribution(shopID, withPrefix(l.shop, "x")))
		policy, err := cf.GetCachePolicy(ctx, &sdk.GetCachePolicyInput{Id: aws.String(imagesPolicy)})
		l.must(err)
		key := policy.CachePolicy.CachePolicyConfig.ParametersInCacheKeyAndForwardedToOrigin
		if key.HeadersConfig.Headers.Items[0] != "Accept" || aws.ToInt64(policy.CachePolicy.CachePolicyConfig.MaxTTL) != 86400 {
			t.Errorf("cache policy came as %+v", policy.CachePolicy.CachePolicyConfig)
		}
		_, err = cf.GetCachePolicy(ctx, &sdk.GetCachePolicyInput{Id: aws.String("none")})
		wantCode(t, err, "NoSuchCachePolicy", "")
	})
}

func TestInvalidation(t *testing.T) {
	inLab(t, Options{InvalidationDelay: time.Minute}, func(ctx context.Context, l *lab) {
		cf := l.cloudfront()
		create := func(reference string, paths ...string) (*sdk.CreateInvalidationOutput, error) {
			return cf.CreateInvalidation(ctx, &sdk.CreateInvalidationInput{
				DistributionId: aws.String(shopID),
				InvalidationBatch: &types.InvalidationBatch{
					CallerReference: aws.String(reference),
					Paths:           &types.Paths{Quantity: aws.Int32(int32(len(paths))), Items: paths},
				},
			})
		}
		out, err := create("a", "/images/*", "/logo.jpg")
		l.must(err)
		again, err := create("a", "/images/*", "/logo.jpg")
		l.must(err)
		if *again.Invalidation.Id != *out.Invalidation.Id {
			t.Error("the same reference and paths made two invalidations")
		}
		_, err = create("a", "/other")
		wantCode(t, err, "InvalidationBatchAlreadyExists", "caller reference")
		for _, bad := range []string{
			"images/*", "/a*b", "/a b", "/~a", "/%7Ea", "/%7ea", "/a**", "/caf\u00e9", "/a[1]", "/a{", "/a\\b", "/a#b", "/" + strings.Repeat("x", 4000),
		} {
			_, err = create("bad"+bad, bad)
			wantCode(t, err, "InvalidArgument", "invalid invalidation paths")
		}
		status := func() string {
			got, err := cf.GetInvalidation(ctx, &sdk.GetInvalidationInput{DistributionId: aws.String(shopID), Id: out.Invalidation.Id})
			l.must(err)
			return *got.Invalidation.Status
		}
		if s := status(); s != "InProgress" {
			t.Errorf("status at first is %s", s)
		}
		many := make([]string, 15)
		for i := range many {
			many[i] = "/" + strings.Repeat("x", i+1) + "*"
		}
		_, err = create("many", many...)
		wantCode(t, err, "TooManyInvalidationsInProgress", "")
		pass(time.Minute)
		if s := status(); s != "Completed" {
			t.Errorf("status after the delay is %s", s)
		}
		_, err = create("many", many...)
		l.must(err)
		if list := l.Invalidations(shopID); len(list) != 2 || len(list[1].Paths) != 15 {
			t.Errorf("the data plane sees %+v", list)
		}
		// What was made already takes nothing of the quotas when it is sent again.
		_, err = create("many", many...)
		l.must(err)
		// Paths without a star have a quota of their own.
		exact := make([]string, 3000)
		for i := range exact {
			exact[i] = fmt.Sprintf("/images/%d.jpg?v=(1),'!$&@+", i)
		}
		_, err = create("exact", exact...)
		l.must(err)
		_, err = create("one more", "/images/x.jpg")
		wantCode(t, err, "TooManyInvalidationsInProgress", "")
		_, err = create("too large", append(exact, many[:]...)...)
		wantCode(t, err, "TooManyInvalidationsInProgress", "")
		_, err = create("far too large", append(exact, exact...)...)
		wantCode(t, err, "BatchTooLarge", "")
	})
}

func TestListInvalidations(t *testing.T) {
	inLab(t, Options{InvalidationDelay: time.Minute}, func(ctx context.Context, l *lab) {
		cf := l.cloudfront()
		list := func(marker *string, most *int32) *types.InvalidationList {
			out, err := cf.ListInvalidations(ctx, &sdk.ListInvalidationsInput{DistributionId: aws.String(shopID), Marker: marker, MaxItems: most})
			l.must(err)
			return out.InvalidationList
		}
		if none := list(nil, nil); *none.Quantity != 0 || *none.IsTruncated {
			t.Errorf("%+v", none)
		}
		var made []string
		for i := range 5 {
			out, err := cf.CreateInvalidation(ctx, &sdk.CreateInvalidationInput{
				DistributionId: aws.String(shopID),
				InvalidationBatch: &types.InvalidationBatch{
					CallerReference: aws.String(fmt.Sprint(i)), Paths: &types.Paths{Quantity: aws.Int32(1), Items: []string{"/a"}},
				},
			})
			l.must(err)
			made = append([]string{*out.Invalidation.Id}, made...)
			pass(20 * time.Second)
		}
		var seen, status []string
		page := list(nil, aws.Int32(2))
		for {
			for _, i := range page.Items {
				seen, status = append(seen, *i.Id), append(status, *i.Status)
			}
			if !*page.IsTruncated {
				break
			}
			page = list(page.NextMarker, aws.Int32(2))
		}
		if !slices.Equal(seen, made) || strings.Join(status, " ") != "InProgress InProgress Completed Completed Completed" {
			t.Errorf("%v %v, want %v", seen, status, made)
		}
		_, err := cf.ListInvalidations(ctx, &sdk.ListInvalidationsInput{DistributionId: aws.String(shopID), Marker: aws.String("I404")})
		wantCode(t, err, "InvalidArgument", "Marker")
		_, err = cf.ListInvalidations(ctx, &sdk.ListInvalidationsInput{DistributionId: aws.String("E404")})
		wantCode(t, err, "NoSuchDistribution", "")
	})
}

func TestSendEmail(t *testing.T) {
	inLab(t, Options{}, func(ctx context.Context, l *lab) {
		raw := "From: karui@example.com\r\nTo: ops@example.com\r\nSubject: =?UTF-8?B?6YCa55+l?=\r\nAuto-Submitted: auto-generated\r\n\r\nbody\r\n"
		send := func(content mailtypes.EmailContent, to ...string) error {
			in := &sesv2.SendEmailInput{Content: &content, FromEmailAddress: aws.String("karui <karui@example.com>")}
			if to != nil {
				in.Destination = &mailtypes.Destination{ToAddresses: to}
			}
			_, err := l.ses().SendEmail(ctx, in)
			return err
		}
		l.must(send(mailtypes.EmailContent{Raw: &mailtypes.RawMessage{Data: []byte(raw)}}))
		simple := mailtypes.EmailContent{Simple: &mailtypes.Message{
			Subject: &mailtypes.Content{Data: aws.String("subject")},
			Body:    &mailtypes.Body{Text: &mailtypes.Content{Data: aws.String("text")}},
		}}
		l.must(send(simple, "a@example.com", "b@example.org"))
		got := l.Messages()
		if len(got) != 2 || string(got[0].Raw) != raw || got[0].To[0] != "ops@example.com" || got[0].Headers["Auto-Submitted"] != "auto-generated" {
			t.Fatalf("kept: %+v", got)
		}
		if got[1].Subject != "subject" || got[1].Text != "text" || len(got[1].To) != 2 || got[1].From != "karui@example.com" {
			t.Errorf("kept: %+v", got[1])
		}
		l.SetVerified("example.com")
		wantCode(t, send(simple, "b@example.org"), "MessageRejected", "b@example.org")
		wantCode(t, send(mailtypes.EmailContent{Raw: &mailtypes.RawMessage{Data: []byte("no mail")}}, "a@example.com"), "BadRequestException", "")
		l.Deny("arn:aws:iam::111122223333:user/ops", "ses:SendEmail")
		wantCode(t, send(simple, "a@example.com"), "AccessDeniedException", "ses:SendEmail on resource: arn:aws:ses:eu-west-1:111122223333:identity/karui@example.com")
	})
}

func TestAssumeRole(t *testing.T) {
	inLab(t, Options{}, func(ctx context.Context, l *lab) {
		arn, err := l.PutRole(Role{Name: "watchdog", ExternalID: "secret-17", Policy: AllowAll, Trusted: []string{"arn:aws:iam::111122223333:user/ops"}})
		l.must(err)
		stranger, err := l.AddUser("stranger", AllowAll)
		l.must(err)
		assume := func(l *lab, change func(*sts.AssumeRoleInput)) (*sts.AssumeRoleOutput, error) {
			in := &sts.AssumeRoleInput{RoleArn: &arn, RoleSessionName: aws.String("karui-watchdog"), ExternalId: aws.String("secret-17")}
			change(in)
			return l.sts().AssumeRole(ctx, in)
		}
		same := func(*sts.AssumeRoleInput) {}
		out, err := assume(l, same)
		l.must(err)
		session := l.as(*out.Credentials.AccessKeyId, *out.Credentials.SecretAccessKey, *out.Credentials.SessionToken)
		who, err := session.sts().GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		l.must(err)
		if want := "arn:aws:sts::111122223333:assumed-role/watchdog/karui-watchdog"; *who.Arn != want || *out.AssumedRoleUser.Arn != want {
			t.Errorf("the session is %s, %s", *who.Arn, *out.AssumedRoleUser.Arn)
		}
		denied := "user/ops is not authorized to perform: sts:AssumeRole on resource: "
		for name, tc := range map[string]struct {
			lab        *lab
			change     func(*sts.AssumeRoleInput)
			code, part string
		}{
			"wrong external id":  {l, func(in *sts.AssumeRoleInput) { in.ExternalId = aws.String("other") }, "AccessDenied", denied},
			"no external id":     {l, func(in *sts.AssumeRoleInput) { in.ExternalId = nil }, "AccessDenied", denied},
			"unknown role":       {l, func(in *sts.AssumeRoleInput) { in.RoleArn = aws.String(arn + "x") }, "AccessDenied", denied},
			"untrusted":          {l.as(stranger.AccessKeyID, stranger.SecretAccessKey, ""), same, "AccessDenied", "user/stranger"},
			"wrong secret":       {l.as(stranger.AccessKeyID, "wrong", ""), same, "SignatureDoesNotMatch", ""},
			"unknown key":        {l.as("AKIAUNKNOWN", "wrong", ""), same, "InvalidClientTokenId", ""},
			"wrong token":        {l.as(*out.Credentials.AccessKeyId, *out.Credentials.SecretAccessKey, "other"), same, "InvalidClientTokenId", ""},
			"short session name": {l, func(in *sts.AssumeRoleInput) { in.RoleSessionName = aws.String("k") }, "ValidationError", "roleSessionName"},
			"duration":           {l, func(in *sts.AssumeRoleInput) { in.DurationSeconds = aws.Int32(60) }, "ValidationError", "durationSeconds"},
			"over the role's":    {l, func(in *sts.AssumeRoleInput) { in.DurationSeconds = aws.Int32(7200) }, "ValidationError", "MaxSessionDuration"},
			"policy too long":    {l, func(in *sts.AssumeRoleInput) { in.Policy = aws.String(strings.Repeat(" ", 2049)) }, "ValidationError", "'policy'"},
			"policy malformed":   {l, func(in *sts.AssumeRoleInput) { in.Policy = aws.String(`{"Version":"2012-10-17"}`) }, "MalformedPolicyDocument", ""},
		} {
			_, err := assume(tc.lab, tc.change)
			t.Log(name)
			wantCode(t, err, tc.code, tc.part)
		}
		pass(time.Hour)
		_, err = session.sts().GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		wantCode(t, err, "ExpiredToken", "expired")

		_, err = l.PutRole(Role{Name: "watchdog", Policy: AllowAll})
		l.must(err)
		_, err = assume(l, func(in *sts.AssumeRoleInput) { in.ExternalId = aws.String("anything") })
		l.must(err) // an open trust lets every external id in
	})
}

func TestSessionPolicyNarrowsTheRole(t *testing.T) {
	inLab(t, Options{}, func(ctx context.Context, l *lab) {
		l.must(l.PutDistribution("E9", l.shop))
		onShop := `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":["cloudfront:GetDistribution*","cloudfront:ListDistributions"],` +
			`"Resource":"arn:aws:cloudfront::111122223333:distribution/*"}}`
		arn, err := l.PutRole(Role{Name: "watchdog", Policy: onShop})
		l.must(err)
		session := func(policy string) *sdk.Client {
			in := &sts.AssumeRoleInput{RoleArn: &arn, RoleSessionName: aws.String("karui-watchdog")}
			if policy != "" {
				in.Policy = &policy
			}
			out, err := l.sts().AssumeRole(ctx, in)
			l.must(err)
			return l.as(*out.Credentials.AccessKeyId, *out.Credentials.SecretAccessKey, *out.Credentials.SessionToken).cloudfront()
		}
		read := func(cf *sdk.Client, id string) error {
			_, err := cf.GetDistributionConfig(ctx, &sdk.GetDistributionConfigInput{Id: &id})
			return err
		}
		plain := session("")
		l.must(read(plain, "E9"))
		_, err = plain.UpdateDistribution(ctx, placeholderUpdate())
		wantCode(t, err, "AccessDenied", "assumed-role/watchdog/karui-watchdog is not authorized to perform: cloudfront:UpdateDistribution on resource: "+
			"arn:aws:cloudfront::111122223333:distribution/E123SHOP because no identity-based policy allows the cloudfront:UpdateDistribution action")
		_, err = plain.ListDistributions(ctx, &sdk.ListDistributionsInput{})
		wantCode(t, err, "AccessDenied", "on resource: * because")

		denying := session(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"},` +
			`{"Effect":"Deny","Action":"cloudfront:*","NotResource":"arn:aws:cloudfront::111122223333:distribution/E123SHOP"}]}`)
		l.must(read(denying, shopID))
		wantCode(t, read(denying, "E9"), "AccessDenied", "with an explicit deny in a session policy")
		_, err = denying.UpdateDistribution(ctx, placeholderUpdate())
		wantCode(t, err, "AccessDenied", "no identity-based policy") // a session adds nothing

		narrow := session(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}`)
		wantCode(t, read(narrow, shopID), "AccessDenied", "because no session policy allows")

		l.Deny(arn, "cloudfront:GetDistributionConfig")
		wantCode(t, read(plain, shopID), "AccessDenied", "no identity-based policy")
		l.Allow(arn, "cloudfront:GetDistributionConfig")
		l.must(read(plain, shopID))
	})
}

// placeholderUpdate passes the SDK's own checks and nothing else.
func placeholderUpdate() *sdk.UpdateDistributionInput {
	return &sdk.UpdateDistributionInput{
		Id: aws.String(shopID), IfMatch: aws.String("E0000000000000"),
		DistributionConfig: &types.DistributionConfig{
			CallerReference: aws.String("x"), Comment: aws.String(""), Enabled: aws.Bool(false),
			DefaultCacheBehavior: &types.DefaultCacheBehavior{TargetOriginId: aws.String("x"), ViewerProtocolPolicy: "allow-all"},
			Origins:              &types.Origins{Quantity: aws.Int32(0), Items: []types.Origin{}},
		},
	}
}
