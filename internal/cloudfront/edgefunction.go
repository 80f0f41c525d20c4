package cloudfront

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
)

// maxFunctionSize is CloudFront's quota for the code of one function, in bytes.
const maxFunctionSize = 10 << 10

var functionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Function is a CloudFront Function: code that runs at the edge on every
// request of the behaviours that it is associated with.
type Function struct {
	ARN  string
	Name string
	Code string // JavaScript with a function handler(event)
}

// PutFunction makes or replaces a function, live at once, and returns its ARN.
// Whether the code runs is found out at the edge.
func (d *Double) PutFunction(name, code string) (string, error) {
	if !functionName.MatchString(name) {
		return "", fmt.Errorf("function name %q: expected 1 to 64 letters, digits, - and _", name)
	}
	if code == "" {
		return "", errors.New("function " + name + " has no code")
	}
	if len(code) > maxFunctionSize {
		return "", fmt.Errorf("function %s has %d bytes, %d are allowed", name, len(code), maxFunctionSize)
	}
	arn := "arn:aws:cloudfront::" + d.account + ":function/" + name
	d.mu.Lock()
	defer d.mu.Unlock()
	d.functions[arn] = Function{ARN: arn, Name: name, Code: code}
	return arn, nil
}

// Function is a function by ARN, for a data plane.
func (d *Double) Function(arn string) (Function, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.functions[arn]
	return f, ok
}

// checkFunctions wants each event once, of a kind that CloudFront Functions know,
// and a function that exists.
func checkFunctions(b *node, functions map[string]Function) *failure {
	seen := make(map[string]bool)
	for _, f := range b.items("FunctionAssociation", "FunctionAssociations") {
		event, arn := f.text("EventType"), f.text("FunctionARN")
		if event != "viewer-request" && event != "viewer-response" || seen[event] {
			return failf(http.StatusBadRequest, "InvalidFunctionAssociation", "The event type %q of a function association is not valid or stands twice.", event)
		}
		seen[event] = true
		if _, ok := functions[arn]; !ok {
			return failf(http.StatusBadRequest, "InvalidFunctionAssociation", "The function %s does not exist.", arn)
		}
	}
	return nil
}
