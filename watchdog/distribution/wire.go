package distribution

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront"
	"github.com/aws/aws-sdk-go-v2/service/cloudfront/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// received catches the body of a good answer as it came, and gives the SDK an
// empty one to decode: nothing of its structs is used, so that no configuration
// can trip over them.
type received struct{ body []byte }

func (*received) ID() string { return "KaruiReceivedDocument" }

func (m *received) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	if err != nil {
		return out, metadata, err
	}
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if !ok || response.StatusCode < 200 || response.StatusCode > 299 {
		return out, metadata, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err != nil {
		// Of the connection, so that the SDK tries again.
		return out, metadata, &smithyhttp.RequestSendError{Err: fmt.Errorf("read the document: %w", err)}
	}
	if len(body) > maxDocument {
		return out, metadata, documentError("it has more than %d bytes", maxDocument)
	}
	m.body = body
	empty(response)
	return out, metadata, nil
}

// sent puts a document in the place of what the SDK serialized, before the
// request is signed, and watches whether every attempt was answered.
type sent struct {
	body  []byte
	still []func(context.Context) error // asked before each attempt, see Swap
	lost  bool                          // an attempt may have taken effect without its answer arriving
}

func (*sent) ID() string { return "KaruiSentDocument" }

// HandleSerialize runs after the SDK's own serializer.
func (m *sent) HandleSerialize(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (
	middleware.SerializeOutput, middleware.Metadata, error,
) {
	request, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return middleware.SerializeOutput{}, middleware.Metadata{}, fmt.Errorf("put the document into a %T: expected an HTTP request", in.Request)
	}
	request, err := request.SetStream(bytes.NewReader(m.body))
	if err != nil {
		return middleware.SerializeOutput{}, middleware.Metadata{}, fmt.Errorf("put the document into the request: %w", err)
	}
	in.Request = request
	return next.HandleSerialize(ctx, in)
}

// HandleDeserialize looks at each attempt. Of a good answer only the header is
// needed; whether its body arrives does not matter any more.
func (m *sent) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	for _, still := range m.still {
		if err := still(ctx); err != nil {
			return middleware.DeserializeOutput{}, middleware.Metadata{}, &Error{Kind: KindRefused, Message: err.Error(), Err: err}
		}
	}
	out, metadata, err := next.HandleDeserialize(ctx, in)
	response, ok := out.RawResponse.(*smithyhttp.Response)
	switch {
	case err != nil || !ok || response.StatusCode >= 500:
		m.lost = true
	case response.StatusCode >= 200 && response.StatusCode <= 299:
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxDocument)) // see above
		empty(response)
	}
	return out, metadata, err
}

func empty(r *smithyhttp.Response) {
	_ = r.Body.Close() // read to its end or no longer wanted
	r.Body = io.NopCloser(bytes.NewReader(nil))
}

// withDocument makes a call carry the document.
func (m *sent) withDocument(o *cloudfront.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return errors.Join(
			stack.Serialize.Insert(serializeStep{m}, "OperationSerializer", middleware.After),
			stack.Deserialize.Add(deserializeStep{m}, middleware.After),
		)
	})
}

// catch makes a call fill the document.
func (m *received) catch(o *cloudfront.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(m, middleware.After)
	})
}

// The two halves of sent, since each step wants a middleware of its own.
type (
	serializeStep   struct{ *sent }
	deserializeStep struct{ *sent }
)

// placeholder satisfies the SDK's own checks of an update. It never leaves the
// process; if it did, CloudFront would refuse it, since a caller reference must
// not change and there are no origins.
func placeholder() *types.DistributionConfig {
	return &types.DistributionConfig{
		CallerReference: aws.String("replaced before signing"),
		Comment:         aws.String(""),
		Enabled:         aws.Bool(false),
		DefaultCacheBehavior: &types.DefaultCacheBehavior{
			TargetOriginId:       aws.String(""),
			ViewerProtocolPolicy: types.ViewerProtocolPolicyAllowAll,
		},
		Origins: &types.Origins{Quantity: aws.Int32(0), Items: []types.Origin{}},
	}
}
