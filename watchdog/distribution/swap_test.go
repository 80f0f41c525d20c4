package distribution

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
	"github.com/aws/aws-sdk-go-v2/service/cloudfront"

	double "karui/internal/cloudfront"
)

func TestSwapAndBack(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		before, _ := l.Distribution(shopID)
		got, err := l.Swap(ctx, OrderDirect, ForDegrade)
		l.must(err)
		after, _ := l.Distribution(shopID)
		if !bytes.Equal(after.Newest, swapped(l.shop)) {
			t.Error("the double holds something else than the exchanged document")
		}
		if !got.Changed || got.Unsure || got.Was != OrderProxy || got.Want != OrderDirect || got.Difference != "" || got.Warning != nil ||
			got.ETagWas != before.ETag || got.ETag != after.ETag || got.As != shopRole ||
			!bytes.Equal(got.Before, l.shop) || !bytes.Equal(got.After, after.Newest) {
			t.Errorf("result: %+v", got)
		}
		var actions []string
		calls := l.Calls()
		for i, s := range got.Steps {
			actions = append(actions, s.Action)
			if s.Outcome != "ok" || s.RequestID != calls[i].RequestID || s.ETag != calls[i].ETag || s.IfMatch != calls[i].IfMatch || s.Time.IsZero() {
				t.Errorf("step %+v, call %+v", s, calls[i])
			}
		}
		want := []string{"sts:AssumeRole", "cloudfront:GetDistributionConfig", "cloudfront:UpdateDistribution", "cloudfront:GetDistributionConfig"}
		if !slices.Equal(actions, want) {
			t.Errorf("steps: %v", actions)
		}

		deployment, err := l.WaitDeployed(ctx)
		l.must(err)
		if deployment.Took != 4*time.Minute || deployment.ETag != after.ETag || deployment.Looks != 49 {
			t.Errorf("deployment: %+v", deployment)
		}

		again, err := l.Swap(ctx, OrderDirect, ForDegrade)
		l.must(err)
		if again.Changed || again.Was != OrderDirect || len(l.Calls("UpdateDistribution")) != 1 {
			t.Errorf("in the wanted order already, and yet: %+v", again)
		}

		back, err := l.Swap(ctx, OrderProxy, ForRestore)
		l.must(err)
		if !back.Changed || !bytes.Equal(l.newest(), l.shop) {
			t.Error("restoring does not give the first document again")
		}
		if n := len(l.Calls("AssumeRole")); n != 1 {
			t.Errorf("%d sessions for one hour", n)
		}
	})
}

// Unknown elements inside, between and beside the members, with prefixes,
// comments and odd white space, through the real SDK.
func TestSwapKeepsWhatTheSDKDoesNotKnow(t *testing.T) {
	shop := shopXML(t)
	const karui = "<OriginGroupMember><OriginId>karui</OriginId></OriginGroupMember>"
	const origin = "<OriginGroupMember><OriginId>origin</OriginId></OriginGroupMember>"
	strange := "<OriginGroupMember weight='7'>\n\t<!-- ours --><Weight unit=\"%\">70</Weight><OriginId>\n karui </OriginId></OriginGroupMember>"
	doc := bytes.Replace(shop, []byte(karui+origin), []byte(strange+"<!-- between --><n:Rule xmlns:n='urn:n'>x</n:Rule>\r\n<Backup/>"+origin), 1)
	doc = bytes.Replace(doc, []byte("<Staging>"), []byte("<FutureSetting><Mode>on</Mode></FutureSetting><Staging>"), 1)
	doc = bytes.Replace(doc, []byte("<SelectionCriteria>"), []byte("<Policy>fast</Policy><SelectionCriteria>"), 1)
	doc = bytes.Replace(doc, []byte("<Members><Quantity>2"), []byte("<Members><n:Quota xmlns:n='urn:n'/><Quantity>2"), 1)
	survivors := []string{"<Weight unit=\"%\">70</Weight>", "weight='7'", "<FutureSetting>", "<Policy>fast", "<n:Rule", "<n:Quota", "<Backup/>", "<!-- between -->", "<!-- ours -->"}
	lostBy := func(after []byte) (lost []string) {
		for _, s := range survivors {
			if !bytes.Contains(after, []byte(s)) {
				lost = append(lost, s)
			}
		}
		return lost
	}
	want := bytes.Replace(doc, []byte(strange), []byte("\x00"), 1)
	want = bytes.Replace(want, []byte(origin), []byte(strange), 1)
	want = bytes.Replace(want, []byte("\x00"), []byte(origin), 1)

	t.Run("this package keeps all", func(t *testing.T) {
		inLab(t, func(ctx context.Context, l *lab) {
			got, err := l.Swap(ctx, OrderDirect, ForDegrade)
			l.must(err)
			if !bytes.Equal(l.newest(), want) || lostBy(l.newest()) != nil || got.Difference != "" {
				t.Errorf("lost %q, difference %q", lostBy(l.newest()), got.Difference)
			}
			_, err = l.Swap(ctx, OrderProxy, ForRestore)
			l.must(err)
			if !bytes.Equal(l.newest(), doc) {
				t.Error("restoring does not give the first document again")
			}
		}, doc)
	})
	t.Run("with prefixes", func(t *testing.T) {
		inLab(t, func(ctx context.Context, l *lab) {
			l.SetPrefix("cf")
			before, err := l.Read(ctx)
			l.must(err)
			if !bytes.Contains(before.Raw, []byte("<cf:OriginGroupMember")) {
				t.Fatal("the answer has no prefixes")
			}
			_, err = l.Swap(ctx, OrderDirect, ForDegrade)
			l.must(err)
			after := l.newest()
			if lost := lostBy(bytes.ReplaceAll(after, []byte("cf:"), nil)); lost != nil {
				t.Errorf("lost %q", lost)
			}
			exchanged, err := Exchange(before.Raw, "images", "origin", "karui")
			l.must(err)
			if !bytes.Equal(after, exchanged) {
				t.Error("the double holds something else than the exchanged document")
			}
			_, err = l.WaitDeployed(ctx)
			l.must(err)
		}, doc)
	})
	t.Run("a plain SDK round trip loses some", func(t *testing.T) {
		inLab(t, func(ctx context.Context, l *lab) {
			cf := l.Client.cloudfront
			config, err := cf.GetDistributionConfig(ctx, &cloudfront.GetDistributionConfigInput{Id: aws.String(shopID)})
			l.must(err)
			members := config.DistributionConfig.OriginGroups.Items[0].Members.Items
			members[0], members[1] = members[1], members[0]
			_, err = cf.UpdateDistribution(ctx, &cloudfront.UpdateDistributionInput{
				Id: aws.String(shopID), IfMatch: config.ETag, DistributionConfig: config.DistributionConfig,
			})
			l.must(err)
			if lost := lostBy(l.newest()); len(lost) < 8 {
				t.Errorf("the SDK lost only %q: is this package still needed?", lost)
			}
		}, doc)
	})
}

func TestSignatureCoversTheSentDocument(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		_, err := l.WriteUnchanged(ctx)
		l.must(err) // the double has verified it over these bytes:
		if !bytes.Equal(l.newest(), l.shop) {
			t.Error("other bytes arrived")
		}
		// And it does notice bytes that were not signed.
		cf := cloudfront.NewFromConfig(l.base, func(o *cloudfront.Options) {
			o.Region = "us-east-1"
			o.HTTPClient = tamper{o.HTTPClient}
			o.Retryer = aws.NopRetryer{}
		})
		s, _ := l.Distribution(shopID)
		doc := &sent{body: l.shop}
		_, err = cf.UpdateDistribution(ctx, &cloudfront.UpdateDistributionInput{
			Id: aws.String(shopID), IfMatch: &s.ETag, DistributionConfig: placeholder(),
		}, doc.withDocument)
		if e := shopTarget().explain(ctx, "cloudfront:UpdateDistribution", shopARN, err); e.Code != "SignatureDoesNotMatch" || e.Kind != KindCredentials {
			t.Errorf("a tampered body gives %v", e)
		}
	})
}

func TestLostAnswers(t *testing.T) {
	for name, when := range map[string]double.DropPoint{"before": double.DropBefore, "after applying": double.DropAfter, "halfway": double.DropHalfway} {
		for _, n := range []int{1, 3, maxAttempts + 2} {
			t.Run(fmt.Sprintf("%s x%d", name, n), func(t *testing.T) {
				inLab(t, func(ctx context.Context, l *lab) {
					l.Drop("UpdateDistribution", when, n)
					got, err := l.Swap(ctx, OrderDirect, ForDegrade)
					l.must(err)
					if !got.Changed || got.Unsure || got.Difference != "" || !bytes.Equal(l.newest(), swapped(l.shop)) {
						t.Errorf("result: changed %v, unsure %v, difference %q", got.Changed, got.Unsure, got.Difference)
					}
					// However often the answer was lost, the change was made once.
					applied := 0
					for _, c := range l.Calls("UpdateDistribution") {
						if c.Status == 200 {
							applied++
						}
					}
					if applied != 1 {
						t.Errorf("applied %d times", applied)
					}
				})
			})
		}
	}
	t.Run("reads too", func(t *testing.T) {
		inLab(t, func(ctx context.Context, l *lab) {
			l.Drop("GetDistributionConfig", double.DropHalfway, 2)
			l.Drop("AssumeRole", double.DropAfter, 2)
			l.Drop("GetDistribution", double.DropHalfway, 2)
			_, err := l.Swap(ctx, OrderDirect, ForDegrade)
			l.must(err)
			_, err = l.WaitDeployed(ctx)
			l.must(err)
		})
	})
	t.Run("unchanged write", func(t *testing.T) {
		inLab(t, func(ctx context.Context, l *lab) {
			l.Drop("UpdateDistribution", double.DropAfter, 1)
			before, _ := l.Distribution(shopID)
			got, err := l.WriteUnchanged(ctx)
			l.must(err)
			after, _ := l.Distribution(shopID)
			if !got.Changed || got.Unsure || after.ETag == before.ETag || !bytes.Equal(after.Newest, l.shop) {
				t.Errorf("result: %+v", got)
			}
		})
	})
	t.Run("for good", func(t *testing.T) {
		inLab(t, func(ctx context.Context, l *lab) {
			l.Before("UpdateDistribution", func() {
				l.Drop("GetDistributionConfig", double.DropBefore, 1000)
				l.Drop("UpdateDistribution", double.DropBefore, 1000)
			})
			l.Drop("UpdateDistribution", double.DropAfter, 1)
			start := time.Now()
			got, err := l.Swap(ctx, OrderDirect, ForDegrade)
			if e := wantKind(t, err, KindUnreachable); !strings.HasSuffix(e.Message, "EOF") || strings.Contains(e.Message, "attempts") {
				t.Errorf("message: %s", e.Message)
			}
			if took := time.Since(start); took > 10*time.Minute || !got.Unsure {
				t.Errorf("took %v, unsure %v: %v", took, got.Unsure, err)
			}
		})
	})
}

func TestForeignChangeIsKept(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		foreign := bytes.Replace(l.shop, []byte("the shop"), []byte("our shop"), 1)
		l.Before("UpdateDistribution", func() { l.must(l.PutDistribution(shopID, foreign)) })
		got, err := l.Swap(ctx, OrderDirect, ForDegrade)
		l.must(err)
		if !bytes.Equal(l.newest(), swapped(foreign)) {
			t.Error("the foreign change is lost")
		}
		var codes []string
		for _, c := range l.Calls("UpdateDistribution") {
			codes = append(codes, c.Code)
		}
		if !got.Changed || !bytes.Equal(got.Before, foreign) || !slices.Equal(codes, []string{"PreconditionFailed", ""}) {
			t.Errorf("changed %v, codes %q", got.Changed, codes)
		}
	})
}

func TestForeignSwapIsNotClaimed(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.Before("UpdateDistribution", func() { l.must(l.PutDistribution(shopID, swapped(l.shop))) })
		got, err := l.Swap(ctx, OrderDirect, ForDegrade)
		l.must(err)
		if got.Changed || got.Unsure || got.Was != OrderProxy {
			t.Errorf("somebody else swapped, and yet: %+v", got)
		}
	})
}

func TestForeignChangesWithoutEnd(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		for i := range maxTries {
			l.Before("UpdateDistribution", func() {
				l.must(l.PutDistribution(shopID, bytes.Replace(l.shop, []byte("the shop"), fmt.Append(nil, i), 1)))
			})
		}
		got, err := l.Swap(ctx, OrderDirect, ForDegrade)
		e := wantKind(t, err, KindConflict)
		if got.Changed || got.Unsure || e.Code != "PreconditionFailed" || len(l.Calls("UpdateDistribution")) != maxTries {
			t.Errorf("%v after %d tries", err, len(l.Calls("UpdateDistribution")))
		}
	})
}

func TestForeignChangeBreaksTheGroup(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		foreign := bytes.Replace(l.shop, []byte("<OriginGroupMember><OriginId>karui"), []byte("<OriginGroupMember><OriginId>assets"), 1)
		l.Before("UpdateDistribution", func() { l.must(l.PutDistribution(shopID, foreign)) })
		_, err := l.Swap(ctx, OrderDirect, ForDegrade)
		wantKind(t, err, KindRefused)
		if !bytes.Equal(l.newest(), foreign) {
			t.Error("something was written")
		}
	})
}

func TestReadBackFindsAnUndoneSwap(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.Before("GetDistributionConfig", func() {}) // the first read
		l.Before("GetDistributionConfig", func() { l.must(l.PutDistribution(shopID, l.shop)) })
		got, err := l.Swap(ctx, OrderDirect, ForDegrade)
		wantKind(t, err, KindReadBack)
		if !got.Changed || len(l.Calls("UpdateDistribution")) != 1 {
			t.Error("it fights the other")
		}
	})
	inLab(t, func(ctx context.Context, l *lab) {
		l.Before("GetDistributionConfig", func() {})
		l.Before("GetDistributionConfig", func() {
			l.must(l.PutDistribution(shopID, bytes.Replace(swapped(l.shop), []byte("the shop"), []byte("our shop"), 1)))
		})
		got, err := l.Swap(ctx, OrderDirect, ForDegrade)
		l.must(err)
		if !strings.Contains(got.Difference, "Comment") {
			t.Errorf("difference: %q", got.Difference)
		}
	})
}

func TestReadsThatLag(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.SetReadLag(10 * time.Second)
		got, err := l.Swap(ctx, OrderDirect, ForDegrade)
		l.must(err)
		if !got.Changed || got.Difference != "" || len(l.Calls("UpdateDistribution")) != 1 {
			t.Errorf("a read-back that lags: %+v", got)
		}
		// A first read that lags behind somebody else's change.
		foreign := bytes.Replace(swapped(l.shop), []byte("the shop"), []byte("our shop"), 1)
		l.must(l.PutDistribution(shopID, foreign))
		got, err = l.Swap(ctx, OrderProxy, ForRestore)
		l.must(err)
		if !got.Changed || !bytes.Equal(swapped(l.newest()), foreign) {
			t.Error("the foreign change is lost")
		}
		<-time.After(time.Hour)
		l.SetReadLag(time.Hour)
		got, err = l.Swap(ctx, OrderDirect, ForDegrade)
		wantKind(t, err, KindReadBack)
		if !got.Changed || !errors.Is(err, errStale) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestRefusalsWriteNothing(t *testing.T) {
	quality := bytes.Replace(shopXML(t), []byte(">default<"), []byte(">media-quality-based<"), 1)
	inLab(t, func(ctx context.Context, l *lab) {
		for _, p := range []Purpose{ForRestore, ForRehearsal} {
			_, err := l.Swap(ctx, OrderDirect, p)
			if e := wantKind(t, err, KindRefused); !strings.Contains(e.Message, "media-quality-based") {
				t.Error(e)
			}
		}
		if n := len(l.Calls("UpdateDistribution")); n != 0 {
			t.Errorf("%d writes", n)
		}
		got, err := l.Swap(ctx, OrderDirect, ForDegrade)
		l.must(err)
		if !got.Changed || len(got.Warning) != 1 || got.Warning[0].Code != FindingQuality {
			t.Errorf("degrade: %+v", got)
		}
	}, quality)
	inLab(t, func(ctx context.Context, l *lab) {
		target := shopTarget()
		target.GroupID = "static"
		c := l.client(target)
		defer c.Close()
		_, err := c.Swap(ctx, OrderDirect, ForDegrade)
		wantKind(t, err, KindRefused)
		if _, err := c.Swap(ctx, OrderUnknown, ForDegrade); err == nil {
			t.Error("a swap to no order was taken")
		}
	})
}

func TestThrottling(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		l.Throttle("UpdateDistribution", 1)
		_, err := l.Swap(ctx, OrderDirect, ForDegrade)
		l.must(err)
		start := time.Now()
		_, err = l.Swap(ctx, OrderProxy, ForRestore)
		l.must(err)
		if took := time.Since(start); took < 50*time.Second || took > 3*time.Minute || !bytes.Equal(l.newest(), l.shop) {
			t.Errorf("took %v", took)
		}
	})
	inLab(t, func(ctx context.Context, l *lab) {
		l.Fail("GetDistributionConfig", 1000, 400, "Throttling", "Rate exceeded")
		start := time.Now()
		_, err := l.Read(ctx)
		e := wantKind(t, err, KindThrottled)
		if took := time.Since(start); took < time.Minute || took > 5*time.Minute {
			t.Errorf("gave up after %v", took)
		}
		if e.Message != "Rate exceeded" || e.RequestID == "" {
			t.Errorf("error: %+v", e)
		}
	})
	inLab(t, func(ctx context.Context, l *lab) {
		l.Fail("UpdateDistribution", 1000, 503, "ServiceUnavailable", "later")
		got, err := l.Swap(ctx, OrderDirect, ForDegrade)
		wantKind(t, err, KindService)
		if !got.Unsure {
			t.Error("after a 503 nobody knows whether it was applied")
		}
	})
}
