package cloudfront

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
)

// failure is an error answer as AWS words it.
type failure struct {
	status  int
	code    string
	message string
}

func (f *failure) Error() string { return f.code + ": " + f.message }

// failf makes a failure; a nil *failure means success everywhere here.
func failf(status int, code, format string, args ...any) *failure {
	return &failure{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

func invalidArgument(format string, args ...any) *failure {
	return failf(http.StatusBadRequest, "InvalidArgument", format, args...)
}

// xmlError is the body of an error of CloudFront and STS. AWS calls 4xx the
// sender's fault and 5xx the receiver's.
type xmlError struct {
	XMLName   xml.Name `xml:"ErrorResponse"`
	Namespace string   `xml:"xmlns,attr"`
	Type      string   `xml:"Error>Type"`
	Code      string   `xml:"Error>Code"`
	Message   string   `xml:"Error>Message"`
	RequestID string   `xml:"RequestId"`
}

// reply turns the failure into an answer in the protocol of the service.
func (f *failure) reply(service, requestID string) reply {
	if service == serviceSES {
		body, err := json.Marshal(map[string]string{"message": f.message})
		if err != nil {
			body = []byte("{}")
		}
		return reply{
			status: f.status,
			header: map[string]string{"Content-Type": "application/json", "X-Amzn-Errortype": f.code},
			body:   body,
		}
	}
	e := xmlError{Namespace: Namespace, Type: "Sender", Code: f.code, Message: f.message, RequestID: requestID}
	if service == serviceSTS {
		e.Namespace = stsNamespace
	}
	if f.status >= http.StatusInternalServerError {
		e.Type = "Receiver"
	}
	return reply{status: f.status, header: map[string]string{"Content-Type": "text/xml"}, body: mustXML(e)}
}

// mustXML marshals one of this package's own structs, which cannot fail: they
// hold strings and numbers only.
func mustXML(v any) []byte {
	b, err := xml.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshal %T: %v", v, err))
	}
	return append([]byte(xml.Header), b...)
}
