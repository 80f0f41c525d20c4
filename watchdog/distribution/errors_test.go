package distribution

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	double "karui/internal/cloudfront"
)

func asError(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

func TestErrorsForOperators(t *testing.T) {
	read := func(ctx context.Context, l *lab) error { _, err := l.Read(ctx); return err }
	swap := func(ctx context.Context, l *lab) error { _, err := l.Swap(ctx, OrderDirect, ForDegrade); return err }
	for name, tc := range map[string]struct {
		prepare func(l *lab)
		do      func(context.Context, *lab) error
		kind    Kind
		message string
		hint    string
	}{
		"no right to update": {
			func(l *lab) { l.Deny(shopRole, "cloudfront:UpdateDistribution") }, swap, KindDenied,
			"cloudfront:UpdateDistribution on " + shopARN + " as " + shopRole + ": AccessDenied: User: arn:aws:sts::111122223333:assumed-role/karui-watchdog/karui-watchdog " +
				"is not authorized to perform: cloudfront:UpdateDistribution on resource: " + shopARN + " because no identity-based policy allows the cloudfront:UpdateDistribution action (request id ",
			"add cloudfront:UpdateDistribution to the policy of " + shopRole + " on " + shopARN,
		},
		"no right to read": {
			func(l *lab) { l.Deny(shopRole, "cloudfront:GetDistributionConfig") }, read, KindDenied,
			"cloudfront:GetDistributionConfig on ", "add cloudfront:GetDistributionConfig",
		},
		"another right missing": {
			func(l *lab) {
				l.Fail("UpdateDistribution", 1, 403, "AccessDenied", "User: x is not authorized to perform: lambda:EnableReplication* on resource: arn:aws:lambda:us-east-1:1:function:f:1")
			}, swap, KindDenied, "lambda:EnableReplication*", "add lambda:EnableReplication* to the policy of " + shopRole,
		},
		"denied from above": {
			func(l *lab) {
				l.Fail("UpdateDistribution", 1, 403, "AccessDenied", "User: x is not authorized to perform: cloudfront:UpdateDistribution on resource: y with an explicit deny in a service control policy")
			}, swap, KindDenied, "service control policy", "ask for an exception",
		},
		"wrong external id": {
			func(l *lab) {
				_, err := l.PutRole(double.Role{Name: "karui-watchdog", ExternalID: "another", Policy: rolePolicy})
				l.must(err)
			}, read, KindAssume, "sts:AssumeRole on " + shopRole + ": AccessDenied: User: arn:aws:iam::111122223333:user/watchdog is not authorized", "trust policy of " + shopRole,
		},
		"no such distribution": {
			func(l *lab) {
				target := shopTarget()
				target.DistributionID = "E404"
				l.Client = l.client(target)
			}, read, KindNotFound, "distribution/E404 as " + shopRole + ": NoSuchDistribution", "check distribution_id",
		},
		"wrong secret": {
			func(l *lab) {
				credentials, err := l.base.Credentials.Retrieve(context.Background())
				l.must(err)
				l.base.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					credentials.SecretAccessKey = "wrong"
					return credentials, nil
				})
				l.Client = l.client(shopTarget())
			}, read, KindCredentials, "sts:AssumeRole on " + shopRole + ": SignatureDoesNotMatch", "credentials are wrong",
		},
		"refused document": {
			func(l *lab) {
				l.Fail("UpdateDistribution", 1, 400, "InvalidArgument", "The parameter X is bad.")
			}, swap, KindRejected, "InvalidArgument: The parameter X is bad.", "by hand in the console",
		},
		"no network": {
			func(l *lab) {
				l.Drop("GetDistributionConfig", double.DropBefore, 1000)
			}, read, KindUnreachable, "cloudfront:GetDistributionConfig on " + shopARN, "AWS_ENDPOINT_URL_CLOUDFRONT",
		},
		"silence": {
			func(l *lab) { l.SetLatency("GetDistributionConfig", time.Hour) }, read, KindTimeout, "no answer within", "network",
		},
		"silence of STS": {
			func(l *lab) { l.SetLatency("AssumeRole", time.Hour) }, read, KindTimeout, "no answer within", "network",
		},
		"html instead": {
			func(l *lab) {
				l.Drop("GetDistributionConfig", double.DropBefore, 0)
				l.base.HTTPClient = html{}
				l.Client = l.client(shopTarget())
			},
			read, KindUnreachable, "sts:AssumeRole", "AWS_ENDPOINT_URL_STS",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(ctx context.Context, l *lab) {
				tc.prepare(l)
				start := time.Now()
				err := tc.do(ctx, l)
				e := wantKind(t, err, tc.kind)
				if !strings.Contains(e.Error(), tc.message) || !strings.Contains(e.Hint, tc.hint) {
					t.Errorf("error %s\n hint %s", e, e.Hint)
				}
				if took := time.Since(start); took > 3*time.Minute {
					t.Errorf("took %v", took)
				}
				if strings.Contains(e.Error(), "\n") || strings.Contains(e.Error(), "external-17") {
					t.Errorf("not for a log: %s", e)
				}
			})
		})
	}
}
