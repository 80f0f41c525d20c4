package distribution

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Kind is the class of an Error, a stable word for metrics and JSON.
type Kind string

const (
	KindCredentials Kind = "credentials" // the watchdog has no usable AWS credentials of its own
	KindAssume      Kind = "assume"      // the role does not let the watchdog in
	KindDenied      Kind = "denied"      // the role lacks a right
	KindNotFound    Kind = "not_found"   // no such distribution, policy or invalidation
	KindThrottled   Kind = "throttled"   // AWS asks to slow down, and went on asking
	KindConflict    Kind = "conflict"    // somebody else kept changing the distribution
	KindRejected    Kind = "rejected"    // AWS does not take the request
	KindService     Kind = "service"     // AWS is in trouble of its own
	KindUnreachable Kind = "unreachable" // no answer came
	KindTimeout     Kind = "timeout"     // a wait came to its limit
	KindCanceled    Kind = "canceled"    // the caller gave up
	KindDocument    Kind = "document"    // the configuration is not understood
	KindRefused     Kind = "refused"     // Check found a refusal
	KindReadBack    Kind = "read_back"   // what was read after the write is not what was wanted
)

// Error is a failure in terms of an operator: which action, on what, as whom,
// what AWS said, what to do.
type Error struct {
	Kind      Kind
	Action    string // "cloudfront:UpdateDistribution"; empty if AWS was not asked
	On        string // ARN or id of what the action was about
	As        string // role that was used
	Code      string // AWS's error code
	Message   string // AWS's message, or ours
	RequestID string // for AWS's support
	Hint      string // what to do about it
	Err       error  // the cause
}

// Error says everything but the hint in one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Action != "" {
		b.WriteString(e.Action)
		if e.On != "" {
			b.WriteString(" on " + e.On)
		}
		if e.As != "" {
			b.WriteString(" as " + e.As)
		}
		b.WriteString(": ")
	}
	if e.Code != "" {
		b.WriteString(e.Code + ": ")
	}
	b.WriteString(e.Message)
	if e.RequestID != "" {
		b.WriteString(" (request id " + e.RequestID + ")")
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, context.Canceled) true for a caller who gave up.
func (e *Error) Is(target error) bool {
	return e.Kind == KindCanceled && target == context.Canceled
}

// KindOf is the kind of an error of this package; empty for others.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// HintOf is the remedy of an error of this package; empty for others.
func HintOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

// hintByHand is what is left when karui does not understand a configuration.
const hintByHand = "make the change by hand in the CloudFront console, and report this configuration as one that karui does not understand"

const (
	serviceCloudFront = "cloudfront"
	serviceSTS        = "sts"
)

// explain turns an error of the SDK into one for operators. on is what the
// CloudFront action was about.
func (t Target) explain(ctx context.Context, action, on string, err error) *Error {
	e := &Error{Action: action, On: on, As: t.RoleARN, Err: err, Message: err.Error()}
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	foreign := false // an operation of neither service: the search for credentials
	for _, op := range operations(err) {
		switch op.ServiceID {
		case "CloudFront":
		case "STS":
			if op.OperationName == "AssumeRole" {
				e.Action, e.On, e.As = "sts:AssumeRole", t.RoleARN, ""
			}
		default:
			foreign = true
		}
	}
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		e.RequestID = response.ServiceRequestID()
	}
	var api smithy.APIError
	var empty *credentials.StaticCredentialsEmptyError
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		e.Kind, e.Message = KindCanceled, "given up"
	case errors.Is(err, ErrDocument):
		e.Kind, e.Hint = KindDocument, hintByHand
	case foreign || errors.As(err, &empty):
		e.Kind = KindCredentials
		e.Hint = "give the watchdog AWS credentials of its own: an instance or task role, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	case errors.As(err, &api):
		e.Code, e.Message = api.ErrorCode(), api.ErrorMessage()
		status := 0
		if response != nil {
			status = response.HTTPStatusCode()
		}
		e.classify(t, status)
	case ctx.Err() != nil:
		e.Kind, e.Message = KindTimeout, "no answer within the time for a call: "+lastCause(err)
		e.Hint = hintNetwork(e.Action)
	default:
		e.Kind, e.Message = KindUnreachable, lastCause(err)
		e.Hint = hintNetwork(e.Action)
	}
	return e
}

// classify tells an error that AWS answered with by its code.
func (e *Error) classify(t Target, status int) {
	sts := strings.HasPrefix(e.Action, serviceSTS+":")
	switch code := e.Code; {
	case isThrottling(code):
		e.Kind = KindThrottled
		e.Hint = "AWS takes only a few updates a minute; try again in a minute, and look for something else that keeps calling"
	case code == "PreconditionFailed":
		e.Kind = KindConflict
		e.Hint = "somebody else is changing the distribution at the same time; find out who (CloudTrail), then try again"
	case strings.HasPrefix(code, "AccessDenied") && sts:
		e.Kind = KindAssume
		e.Hint = "check the trust policy of " + t.RoleARN + ": it has to name the watchdog's own identity, with sts:ExternalId equal to external_id; " +
			"and the watchdog's own policy has to allow sts:AssumeRole on it"
	case strings.HasPrefix(code, "AccessDenied"):
		e.Kind = KindDenied
		e.Hint = hintDenied(e, t)
	case isBadIdentity(code):
		e.Kind = KindCredentials
		e.Hint = "the credentials are wrong or expired, or the clock of this machine is; replace them, set the clock"
	case status == http.StatusNotFound:
		e.Kind = KindNotFound
		e.Hint = "check distribution_id, and that role_arn belongs to the account of the distribution"
	case status >= http.StatusInternalServerError:
		e.Kind = KindService
		e.Hint = "AWS has trouble of its own; see its health dashboard and try again"
	default:
		e.Kind = KindRejected
		e.Hint = "AWS does not accept this request; the message says why. If it is about the configuration, " +
			"the same change by hand in the console meets it too"
	}
}

func isThrottling(code string) bool {
	switch code {
	case "Throttling", "ThrottlingException", "ThrottledException", "RequestLimitExceeded", "RequestThrottled", "TooManyRequestsException", "SlowDown":
		return true
	}
	return false
}

func isBadIdentity(code string) bool {
	switch code {
	case "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "ExpiredToken", "ExpiredTokenException",
		"MissingAuthenticationToken", "IncompleteSignature", "RequestExpired", "InvalidSignatureException", "AuthFailure":
		return true
	}
	return false
}

var deniedAction = regexp.MustCompile(`perform: ([a-z0-9-]+:[A-Za-z*]+)`)

// hintDenied names the right that is missing, which is not always the action
// that was called: with old-style logs or Lambda@Edge an update needs more.
func hintDenied(e *Error, t Target) string {
	action := e.Action
	if m := deniedAction.FindStringSubmatch(e.Message); m != nil {
		action = m[1]
	}
	if strings.Contains(e.Message, "explicit deny in a session policy") {
		return "the session may use distribution " + t.DistributionID + " only; check distribution_id"
	}
	if strings.Contains(e.Message, "explicit deny") {
		return "a policy of the account or organization denies " + action + " to " + t.RoleARN + "; ask for an exception"
	}
	hint := "add " + action + " to the policy of " + t.RoleARN
	if strings.HasPrefix(action, serviceCloudFront+":") && e.On != "" {
		hint += " on " + e.On
	}
	return hint
}

func hintNetwork(action string) string {
	service, _, _ := strings.Cut(action, ":")
	return fmt.Sprintf("check this machine's network, DNS and proxy settings, and AWS_ENDPOINT_URL_%s if it is set", strings.ToUpper(service))
}

// operations lists the SDK operations that an error passed through, outermost
// first: assuming the role happens inside the call that needs it.
func operations(err error) []*smithy.OperationError {
	var out []*smithy.OperationError
	for err != nil {
		var op *smithy.OperationError
		if !errors.As(err, &op) {
			break
		}
		out = append(out, op)
		err = op.Err
	}
	return out
}

// lastCause is the innermost error's text, without the SDK's layers around it.
func lastCause(err error) string {
	if ops := operations(err); len(ops) > 0 {
		err = ops[len(ops)-1].Err
	}
	var canceled *aws.RequestCanceledError
	if errors.As(err, &canceled) {
		err = canceled.Err
	}
	var unsent *smithyhttp.RequestSendError
	if errors.As(err, &unsent) {
		err = unsent.Err
	}
	return err.Error()
}
