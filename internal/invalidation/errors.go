package invalidation

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Kind is the class of an Error, a stable word for JSON.
type Kind string

// The kinds.
const (
	KindCredentials Kind = "credentials" // karui has no usable AWS credentials of its own
	KindAssume      Kind = "assume"      // the role does not let karui in
	KindDenied      Kind = "denied"      // the role lacks a right
	KindNotFound    Kind = "not_found"   // no such distribution, or no such invalidation
	KindRejected    Kind = "rejected"    // AWS does not take the request
	KindThrottled   Kind = "throttled"   // AWS asks to slow down
	KindQuota       Kind = "quota"       // too much is in progress already
	KindService     Kind = "service"     // AWS is in trouble of its own
	KindUnreachable Kind = "unreachable" // no answer came
	KindCanceled    Kind = "canceled"    // the caller gave up
)

// AssumeAction is the action of an Error about getting a session of the role.
const AssumeAction = "sts:AssumeRole"

// Error is a failure in terms of an operator: which action, on what, what AWS
// said, what to do.
type Error struct {
	Kind      Kind
	Action    string // "cloudfront:CreateInvalidation"
	On        string // what the action was about
	Code      string // AWS's error code
	Message   string // AWS's message, or ours
	RequestID string // for AWS's support
	Hint      string // what to do about it
	Err       error  // the cause
}

// Error says everything but the hint in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Action + " on " + e.On + ": ")
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

// Passing tells whether the same call may go through later.
func (e *Error) Passing() bool {
	switch e.Kind {
	case KindThrottled, KindQuota, KindService, KindUnreachable:
		return true
	}
	return false
}

// explain turns an error of the SDK into one for operators.
func (t Target) explain(ctx context.Context, action string, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own // of the session, which is got within the call that needs it
	}
	e := &Error{Action: action, On: t.arn(), Err: err, Message: err.Error()}
	if action == AssumeAction {
		e.On = t.RoleARN
	}
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		e.RequestID = response.ServiceRequestID()
	}
	var (
		api   smithy.APIError
		empty *credentials.StaticCredentialsEmptyError
	)
	switch {
	case errors.Is(ctx.Err(), context.Canceled), errors.Is(err, errClosed):
		e.Kind, e.Message = KindCanceled, "given up"
	case errors.As(err, &api):
		e.Code, e.Message = api.ErrorCode(), api.ErrorMessage()
		status := 0
		if response != nil {
			status = response.HTTPStatusCode()
		}
		e.classify(t, status)
	case strayOperation(err), errors.As(err, &empty):
		e.Kind, e.Message = KindCredentials, lastCause(err)
		e.Hint = "give karui AWS credentials of its own: an instance or task role, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	case ctx.Err() != nil:
		e.Kind, e.Message, e.Hint = KindUnreachable, "no answer within "+callTimeout.String()+": "+lastCause(err), hintNetwork(action)
	default:
		e.Kind, e.Message, e.Hint = KindUnreachable, lastCause(err), hintNetwork(action)
	}
	return e
}

// classify tells an error that AWS answered with by its code.
func (e *Error) classify(t Target, status int) {
	switch code := e.Code; {
	case isThrottling(code):
		e.Kind = KindThrottled
		e.Hint = "AWS takes about one such request in two seconds; look for something else that keeps calling"
	case code == "TooManyInvalidationsInProgress":
		e.Kind = KindQuota
		e.Hint = "other invalidations of this distribution are in progress; they end by themselves, the CloudFront console lists them"
	case strings.HasPrefix(code, "AccessDenied") && e.Action == AssumeAction:
		e.Kind = KindAssume
		e.Hint = "check the trust policy of " + t.RoleARN + ": it has to name karui's own AWS identity, with sts:ExternalId equal to " +
			"distribution.external_id; and karui's own policy has to allow sts:AssumeRole on it"
	case strings.HasPrefix(code, "AccessDenied"):
		e.Kind, e.Hint = KindDenied, e.hintDenied(t)
	case isBadIdentity(code):
		e.Kind = KindCredentials
		e.Hint = "karui's AWS credentials are wrong or expired, or the clock of its machine is; replace them, set the clock"
	case status == http.StatusNotFound:
		e.Kind = KindNotFound
		e.Hint = "check distribution.id (" + t.Distribution + "), and that distribution.role_arn belongs to the account of the distribution"
	case status >= http.StatusInternalServerError:
		e.Kind = KindService
		e.Hint = "AWS has trouble of its own; see its health dashboard"
	default:
		e.Kind = KindRejected
		e.Hint = "AWS does not accept this request, and its message says why; the same paths in the CloudFront console meet it too"
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

// hintDenied names the right that is missing.
func (e *Error) hintDenied(t Target) string {
	action := e.Action
	if m := deniedAction.FindStringSubmatch(e.Message); m != nil {
		action = m[1]
	}
	if strings.Contains(e.Message, "explicit deny") {
		return "a policy of the account or organization denies " + action + " to " + t.who() + "; ask for an exception"
	}
	return "add " + action + " to the policy of " + t.who() + " on " + t.arn()
}

func hintNetwork(action string) string {
	service, _, _ := strings.Cut(action, ":")
	return "check the network, DNS and proxy settings of karui's machine, and AWS_ENDPOINT_URL_" + strings.ToUpper(service) + " if it is set"
}

// strayOperation tells whether an error comes from an operation of neither service:
// the search for credentials.
func strayOperation(err error) bool {
	for _, op := range operations(err) {
		if op.ServiceID != "CloudFront" && op.ServiceID != "STS" {
			return true
		}
	}
	return false
}

// operations lists the SDK operations that an error passed through, outermost
// first.
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
