package mail

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sesv2/types"
	"github.com/aws/smithy-go"
)

// ses hands mails to Amazon SES v2, with the watchdog's own credentials. It is
// its own session: HTTP looks after connections.
type ses struct {
	client *sesv2.Client
	region string
}

func newSES(w way) *ses {
	region := w.mail.SES.Region
	return &ses{region: region, client: sesv2.NewFromConfig(w.aws, func(o *sesv2.Options) {
		o.Region = region
		// The outbox retries. Retrying here would hide how often a mail whose
		// answer was lost is sent again.
		o.Retryer = aws.NopRetryer{}
	})}
}

func (s *ses) open(context.Context) (session, error) { return s, nil }

func (s *ses) close() {}

// send hands over the letter for all recipients at once. Of a letter that SES
// rejects, which one unverified recipient is enough for, it makes one for each.
func (s *ses) send(ctx context.Context, l letter, to []string) (receipt, error) {
	r, err := s.sendOnce(ctx, l, to)
	if err != nil || len(r.refused) == 0 || len(to) == 1 {
		return r, err
	}
	var all receipt
	for i, address := range to {
		one, err := s.sendOnce(ctx, l, []string{address})
		if err != nil {
			// Some may have it already, so that this is no trouble of the way.
			for _, left := range to[i:] {
				e := *asError(err, StageSession)
				e.Recipient, e.Permanent = left, false
				all.refused = append(all.refused, &e)
			}
			return all, nil
		}
		all.taken, all.refused = append(all.taken, one.taken...), append(all.refused, one.refused...)
		all.ids = append(all.ids, one.ids...)
	}
	return all, nil
}

func (s *ses) sendOnce(ctx context.Context, l letter, to []string) (receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	out, err := s.client.SendEmail(ctx, &sesv2.SendEmailInput{
		FromEmailAddress: &l.from,
		Destination:      &types.Destination{ToAddresses: slices.Clone(to)},
		Content:          &types.EmailContent{Raw: &types.RawMessage{Data: l.raw}},
	})
	if err != nil {
		e := s.explain(err)
		if !isAboutLetter(e.Code) {
			return receipt{}, e
		}
		var r receipt
		for _, address := range to {
			about := *e
			about.Recipient, about.Permanent = address, true
			r.refused = append(r.refused, &about)
		}
		return r, nil
	}
	r := receipt{taken: slices.Clone(to)}
	if id := aws.ToString(out.MessageId); id != "" {
		r.ids = []string{messageIDOf(id, s.region)}
	}
	return r, nil
}

// messageIDOf is the Message-ID that SES writes over ours: the id that it answers
// with, at a domain that depends on the region.
func messageIDOf(id, region string) string {
	if region == "us-east-1" {
		return id + "@email.amazonses.com"
	}
	return id + "@" + region + ".amazonses.com"
}

// isAboutLetter tells errors about this mail or its recipients from those that
// the next mail would meet as well.
func isAboutLetter(code string) bool {
	return code == "MessageRejected" || code == "BadRequestException"
}

func (s *ses) explain(err error) *Error {
	e := &Error{Stage: StageConnect, Text: "SES in " + s.region + " cannot be reached: " + innermost(err), cause: err}
	response, answered := errors.AsType[*awshttp.ResponseError](err)
	status := 0
	if answered {
		status = response.HTTPStatusCode() // 0 if the connection broke before one came
	}
	if status != 0 {
		e.Stage, e.Text = StageSession, "SES in "+s.region+" answers "+http.StatusText(status)
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		if strings.Contains(err.Error(), "credentials") {
			e.Stage, e.Text = StageAuth, "no AWS credentials for SES: "+innermost(err)
		}
		return e
	}
	e.Code = api.ErrorCode()
	e.Text = "SES in " + s.region + ": " + e.Code + ": " + oneLine(api.ErrorMessage(), maxText)
	switch e.Code {
	case "MessageRejected":
		e.Stage, e.Hint = StageData, "in the SES sandbox every recipient has to be verified as well as mail.from, in this region"
	case "BadRequestException":
		e.Stage = StageData
	case "MailFromDomainNotVerifiedException", "NotFoundException":
		e.Stage, e.Hint, e.Permanent = StageSender, "verify mail.from or its domain in SES in this region", true
	case "AccountSuspendedException", "SendingPausedException":
		e.Stage, e.Hint = StageAuth, "ask AWS support to let this account send again"
	case "TooManyRequestsException", "LimitExceededException", "Throttling", "ThrottlingException":
		e.Hint = "the account's quota in SES (200 mails a day in the sandbox)"
	default:
		if status >= 400 && status < 500 {
			e.Stage, e.Permanent = StageAuth, true
			e.Hint = "may the watchdog's own credentials do ses:SendEmail for mail.from in this region?"
		}
	}
	return e
}

// innermost is the last cause's text: the SDK's layers hold request ids, which
// differ each time.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return oneLine(withoutPorts(err), maxText)
		}
		err = next
	}
}
