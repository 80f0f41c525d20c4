package cloudfront

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/cloudfront"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront/types"
	"github.com/aws/smithy-go"
)

func TestThrottle(t *testing.T) {
	inLab(t, Options{}, func(ctx context.Context, l *lab) {
		l.Throttle("GetDistribution", 2)
		read := func() error {
			_, err := l.cloudfront().GetDistribution(ctx, &sdk.GetDistributionInput{Id: aws.String(shopID)})
			return err
		}
		l.must(read())
		pass(30 * time.Second)
		l.must(read())
		wantCode(t, read(), "Throttling", "Rate exceeded")
		pass(30 * time.Second) // the first is a minute old, the second is not
		l.must(read())
		wantCode(t, read(), "Throttling", "Rate exceeded")
		l.Calm()
		l.must(read())
	})
}

func TestDropsTakeEffectWhereTheySay(t *testing.T) {
	inLab(t, Options{}, func(ctx context.Context, l *lab) {
		cf := l.cloudfront()
		for _, tc := range []struct {
			when    DropPoint
			applied bool
		}{{DropBefore, false}, {DropAfter, true}, {DropHalfway, true}} {
			before, _ := l.Distribution(shopID)
			config, err := cf.GetDistributionConfig(ctx, &sdk.GetDistributionConfigInput{Id: aws.String(shopID)})
			l.must(err)
			l.Drop("UpdateDistribution", tc.when, 1)
			_, err = cf.UpdateDistribution(ctx, &sdk.UpdateDistributionInput{
				Id: aws.String(shopID), IfMatch: config.ETag, DistributionConfig: config.DistributionConfig,
			})
			var api smithy.APIError
			if err == nil || errors.As(err, &api) {
				t.Errorf("drop %d: error is %v, want one of the connection", tc.when, err)
			}
			after, _ := l.Distribution(shopID)
			if applied := after.ETag != before.ETag; applied != tc.applied {
				t.Errorf("drop %d: applied is %v", tc.when, applied)
			}
		}
		if calls := l.Calls("UpdateDistribution"); len(calls) != 2 {
			t.Errorf("%d updates noted, want 2", len(calls))
		}
	})
}

func TestLatencyFailAndHook(t *testing.T) {
	inLab(t, Options{}, func(ctx context.Context, l *lab) {
		l.SetLatency("GetDistribution", 20*time.Second)
		l.Fail("GetDistribution", 1, http.StatusServiceUnavailable, "ServiceUnavailable", "come back later")
		hooked := 0
		l.Before("GetDistribution", func() { hooked++ })
		start := time.Now()
		_, err := l.cloudfront().GetDistribution(ctx, &sdk.GetDistributionInput{Id: aws.String(shopID)})
		wantCode(t, err, "ServiceUnavailable", "come back")
		if took := time.Since(start); took != 20*time.Second || hooked != 1 {
			t.Errorf("took %v, hook ran %d times", took, hooked)
		}
		_, err = l.cloudfront().GetDistribution(ctx, &sdk.GetDistributionInput{Id: aws.String(shopID)})
		l.must(err)
		if hooked != 1 {
			t.Errorf("hook ran %d times", hooked)
		}
	})
}

// A plain get-modify-put through the SDK loses what the SDK does not know. The
// double keeps what it is sent, so the loss shows.
func TestPlainRoundTripLosesUnknownElements(t *testing.T) {
	inLab(t, Options{}, func(ctx context.Context, l *lab) {
		with := bytes.Replace(l.shop, []byte("</OriginGroupMember>"), []byte("<Weight>7</Weight></OriginGroupMember>"), 1)
		with = bytes.Replace(with, []byte("<Staging>"), []byte("<FutureSetting>on</FutureSetting><Staging>"), 1)
		l.must(l.PutDistribution(shopID, with))
		cf := l.cloudfront()
		config, err := cf.GetDistributionConfig(ctx, &sdk.GetDistributionConfigInput{Id: aws.String(shopID)})
		l.must(err)
		_, err = cf.UpdateDistribution(ctx, &sdk.UpdateDistributionInput{
			Id: aws.String(shopID), IfMatch: config.ETag, DistributionConfig: config.DistributionConfig,
		})
		l.must(err)
		after, _ := l.Distribution(shopID)
		for _, gone := range []string{"Weight", "FutureSetting"} {
			if !bytes.Contains(with, []byte(gone)) || bytes.Contains(after.Newest, []byte(gone)) {
				t.Errorf("%s: before %v, after %v", gone, bytes.Contains(with, []byte(gone)), bytes.Contains(after.Newest, []byte(gone)))
			}
		}
	})
}

func TestUpdateRefusals(t *testing.T) {
	member := func(id string) string {
		return "<OriginGroupMember><OriginId>" + id + "</OriginId></OriginGroupMember>"
	}
	for name, tc := range map[string]struct{ old, new, code string }{
		"caller reference":   {"terraform-20240401101500", "other", "IllegalUpdate"},
		"unknown member":     {member("karui"), member("nowhere"), "InvalidArgument"},
		"same member twice":  {member("karui"), member("origin"), "InvalidArgument"},
		"one member":         {"<Quantity>2</Quantity><Items>" + member("karui"), "<Quantity>1</Quantity><Items>", "InvalidArgument"},
		"three members":      {"<Quantity>2</Quantity><Items>" + member("karui"), "<Quantity>3</Quantity><Items>" + member("karui") + member("assets"), "InvalidArgument"},
		"wrong quantity":     {"<Quantity>2</Quantity><Items>" + member("karui"), "<Quantity>3</Quantity><Items>" + member("karui"), "InconsistentQuantities"},
		"no quantity":        {"<Quantity>2</Quantity><Items>" + member("karui"), "<Items>" + member("karui"), "InvalidArgument"},
		"429":                {"<StatusCode>503</StatusCode>", "<StatusCode>429</StatusCode>", "InvalidArgument"},
		"selection":          {"<SelectionCriteria>default", "<SelectionCriteria>best", "InvalidArgument"},
		"group id":           {"<Id>static</Id>", "<Id>karui</Id>", "InvalidArgument"},
		"unknown target":     {"<TargetOriginId>images", "<TargetOriginId>pictures", "NoSuchOrigin"},
		"posts to a group":   {"<TargetOriginId>origin", "<TargetOriginId>images", "InvalidArgument"},
		"cache policy":       {imagesPolicy, "none", "NoSuchCachePolicy"},
		"crossed tags":       {"<MaxTTL>31536000", "<MaxTTL>0</MaxTTL><Old>", "MalformedXML"},
		"ttl order":          {"<DefaultTTL>0</DefaultTTL><MaxTTL>31536000", "<DefaultTTL>9</DefaultTTL><MaxTTL>8", "InvalidTTLOrder"},
		"read timeout":       {"<OriginReadTimeout>10", "<OriginReadTimeout>121", "InvalidOriginReadTimeout"},
		"attempts":           {"<ConnectionAttempts>1", "<ConnectionAttempts>4", "InvalidArgument"},
		"error code":         {"<ErrorCode>502", "<ErrorCode>429", "InvalidErrorCode"},
		"no comment":         {"<Comment>the shop &amp; its images</Comment>", "", "InvalidArgument"},
		"two comments":       {"<PriceClass>", "<Comment>x</Comment><PriceClass>", "MalformedXML"},
		"document type":      {"<DistributionConfig ", "<!DOCTYPE x><DistributionConfig ", "MalformedXML"},
		"other namespace":    {Namespace, "http://cloudfront.amazonaws.com/doc/2010-11-01/", "MalformedXML"},
		"not well-formed":    {"</Comment>", "</Coment>", "MalformedXML"},
		"second root":        {"</DistributionConfig>", "</DistributionConfig><x/>", "MalformedXML"},
		"duplicate origin":   {"<Id>assets</Id>", "<Id>origin</Id>", "InvalidArgument"},
		"members twice over": {"<OriginId>karui</OriginId>", "<OriginId>karui</OriginId><OriginId>karui</OriginId>", "MalformedXML"},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, Options{}, func(_ context.Context, l *lab) {
				before, _ := l.Distribution(shopID)
				body := strings.Replace(string(l.shop), tc.old, tc.new, 1)
				if body == string(l.shop) {
					t.Fatal("the document is unchanged")
				}
				answer, text := l.raw(http.MethodPut, "/2020-05-31/distribution/"+shopID+"/config", body, func(r *http.Request) {
					r.Header.Set("If-Match", before.ETag)
				}, nil)
				if !strings.Contains(text, "<Code>"+tc.code+"</Code>") {
					t.Errorf("answer %d: %s", answer.StatusCode, text)
				}
				after, _ := l.Distribution(shopID)
				if after.ETag != before.ETag || !bytes.Equal(after.Newest, l.shop) {
					t.Error("a refused update changed the distribution")
				}
			})
		})
	}
}

func TestEmptyBody(t *testing.T) {
	inLab(t, Options{}, func(_ context.Context, l *lab) {
		s, _ := l.Distribution(shopID)
		_, text := l.raw(http.MethodPut, "/2020-05-31/distribution/"+shopID+"/config", "", func(r *http.Request) {
			r.Header.Set("If-Match", s.ETag)
		}, nil)
		if !strings.Contains(text, "MissingBody") {
			t.Error(text)
		}
		if err := l.PutDistribution(shopID, nil); err == nil {
			t.Error("an empty document was taken")
		}
	})
}

func TestUnknownThings(t *testing.T) {
	inLab(t, Options{}, func(ctx context.Context, l *lab) {
		cf := l.cloudfront()
		_, err := cf.GetDistribution(ctx, &sdk.GetDistributionInput{Id: aws.String("E404")})
		wantCode(t, err, "NoSuchDistribution", "")
		_, err = cf.GetInvalidation(ctx, &sdk.GetInvalidationInput{DistributionId: aws.String(shopID), Id: aws.String("I404")})
		wantCode(t, err, "NoSuchInvalidation", "")
		_, err = cf.CreateInvalidation(ctx, &sdk.CreateInvalidationInput{DistributionId: aws.String("E404"), InvalidationBatch: &types.InvalidationBatch{
			CallerReference: aws.String("x"), Paths: &types.Paths{Quantity: aws.Int32(0)},
		}})
		wantCode(t, err, "NoSuchDistribution", "")
		_, err = cf.DeleteDistribution(ctx, &sdk.DeleteDistributionInput{Id: aws.String(shopID)})
		wantCode(t, err, "UnknownOperationException", "DELETE")
		if _, ok := l.Distribution("E404"); ok {
			t.Error("an unknown distribution exists")
		}
	})
}

func TestServerClosesCleanly(t *testing.T) {
	d := New(Options{})
	server, err := d.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Start(strings.TrimPrefix(server.URL, "http://")); err == nil {
		t.Error("two servers on one address")
	}
	d.SetLatency(actionGetCallerIdentity, time.Hour)
	done := make(chan error, 1)
	arrived := make(chan struct{})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, &signalReader{
		r: strings.NewReader("Action=GetCallerIdentity&Version=2011-06-15"), done: arrived,
	})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	go func() {
		resp, err := (&http.Client{Transport: transport}).Do(request)
		if err == nil {
			err = resp.Body.Close()
		}
		done <- err
	}()
	<-arrived
	if err := server.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	<-done // the request that was waiting an hour ended with the server
}

// signalReader says when it was read to its end.
type signalReader struct {
	r    io.Reader
	done chan struct{}
}

func (s *signalReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if errors.Is(err, io.EOF) {
		close(s.done)
	}
	return n, err
}
