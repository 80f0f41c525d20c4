package cloudfront

import (
	"net/http"
	"net/url"
	"strings"
)

// The services, by the name that a signature's scope and a policy use.
const (
	serviceCloudFront = "cloudfront"
	serviceSTS        = "sts"
	serviceSES        = "ses"
)

const (
	actionListDistributions     = "ListDistributions"
	actionGetDistribution       = "GetDistribution"
	actionGetDistributionConfig = "GetDistributionConfig"
	actionUpdateDistribution    = "UpdateDistribution"
	actionCreateInvalidation    = "CreateInvalidation"
	actionGetInvalidation       = "GetInvalidation"
	actionListInvalidations     = "ListInvalidations"
	actionGetCachePolicy        = "GetCachePolicy"
	actionAssumeRole            = "AssumeRole"
	actionGetCallerIdentity     = "GetCallerIdentity"
	actionSendEmail             = "SendEmail"
)

// action is a request that was understood: what is asked of what.
type action struct {
	service string
	name    string
	id      string // distribution or cache policy
	sub     string // invalidation
	form    url.Values
	sender  string // of a mail
	handle  func(*Double, *call) (reply, *failure)
}

// resource is the ARN that a policy has to allow; "*" for actions that know no
// resources.
func (a action) resource(account, region string) string {
	switch a.name {
	case actionGetCachePolicy:
		return "arn:aws:cloudfront::" + account + ":cache-policy/" + a.id
	case actionListDistributions, actionGetCallerIdentity:
		return "*"
	case actionAssumeRole:
		return a.form.Get("RoleArn")
	case actionSendEmail:
		return "arn:aws:ses:" + region + ":" + account + ":identity/" + a.sender
	default:
		return distributionARN(account, a.id)
	}
}

func distributionARN(account, id string) string {
	return "arn:aws:cloudfront::" + account + ":distribution/" + id
}

// route tells the action by method, path and, for STS, the form.
func route(r *http.Request, body []byte) (action, *failure) {
	path := r.URL.Path
	switch {
	case path == "/" || path == "":
		return routeSTS(r, body)
	case path == "/v2/email/outbound-emails" && r.Method == http.MethodPost:
		return routeSES(body)
	case strings.HasPrefix(path, "/v2/email/"):
		return action{service: serviceSES}, failf(http.StatusNotFound, "NotFoundException",
			"The double does not know %s %s.", r.Method, path)
	}
	return routeCloudFront(r.Method, path)
}

func routeSTS(r *http.Request, body []byte) (action, *failure) {
	a := action{service: serviceSTS}
	form, err := url.ParseQuery(string(body))
	if err != nil || r.Method != http.MethodPost {
		return a, failf(http.StatusBadRequest, "MalformedQueryString", "The query string contains a syntax error.")
	}
	a.form = form
	a.name = form.Get("Action")
	if v := form.Get("Version"); v != stsVersion {
		return a, failf(http.StatusBadRequest, "InvalidAction", "Could not find operation %s for version %s", a.name, v)
	}
	switch a.name {
	case actionAssumeRole:
		a.handle = (*Double).assumeRole
	case actionGetCallerIdentity:
		a.handle = (*Double).getCallerIdentity
	default:
		return a, failf(http.StatusBadRequest, "InvalidAction", "Could not find operation %s for version %s", a.name, stsVersion)
	}
	return a, nil
}

func routeCloudFront(method, path string) (action, *failure) {
	a := action{service: serviceCloudFront}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	unknown := failf(http.StatusNotFound, "UnknownOperationException", "The double does not know %s %s.", method, path)
	if len(parts) < 2 || parts[0] != apiVersion {
		return a, unknown
	}
	if len(parts) > 2 {
		a.id = parts[2]
	}
	// The shape of the path, with identifiers left out.
	shape := method + " " + parts[1]
	switch {
	case len(parts) == 3:
		shape += "/{id}"
	case len(parts) == 4:
		shape += "/{id}/" + parts[3]
	case len(parts) == 5:
		shape += "/{id}/" + parts[3] + "/{id}"
		a.sub = parts[4]
	case len(parts) > 5:
		return a, unknown
	}
	switch shape {
	case "GET distribution":
		a.name, a.handle = actionListDistributions, (*Double).listDistributions
	case "GET distribution/{id}":
		a.name, a.handle = actionGetDistribution, (*Double).getDistribution
	case "GET distribution/{id}/config":
		a.name, a.handle = actionGetDistributionConfig, (*Double).getDistributionConfig
	case "PUT distribution/{id}/config":
		a.name, a.handle = actionUpdateDistribution, (*Double).updateDistribution
	case "POST distribution/{id}/invalidation":
		a.name, a.handle = actionCreateInvalidation, (*Double).createInvalidation
	case "GET distribution/{id}/invalidation":
		a.name, a.handle = actionListInvalidations, (*Double).listInvalidations
	case "GET distribution/{id}/invalidation/{id}":
		a.name, a.handle = actionGetInvalidation, (*Double).getInvalidation
	case "GET cache-policy/{id}":
		a.name, a.handle = actionGetCachePolicy, (*Double).getCachePolicy
	default:
		return a, unknown
	}
	return a, nil
}
