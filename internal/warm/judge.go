package warm

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"karui/convert/header"
	"karui/proxy/rules"
)

// next says what follows from an answer.
type next int

const (
	// settled: nothing more comes.
	settled next = iota
	// again: the answer will be another one soon.
	again
	// stressed: the proxy wants to be left alone.
	stressed
	// unserved: the origin gave no image. That may be this image's own fault, or the
	// origin wants to be left alone: what becomes of other images tells.
	unserved
	// failed: asking again would bring the same.
	failed
	// missing: the origin has no such image, so that there is nothing to warm.
	missing
	// hopeless: no request of this run will be answered otherwise.
	hopeless
)

// Outcome is how an image in one form was settled.
type Outcome string

// The outcomes.
const (
	// Variant: the lighter form is in the cache.
	Variant Outcome = "variant"
	// Kept: the original is the settled answer.
	Kept Outcome = "kept"
	// Bypassed: karui does not keep it, so there is nothing to warm.
	Bypassed Outcome = "bypass"
)

// judgement is what an answer means.
type judgement struct {
	next    next
	outcome Outcome
	// ready is whether it was in the cache already.
	ready bool
	// kept is why an original is kept, in a stable word, where that was said.
	kept string
	// before and after are the bytes of the original and of what viewers get instead; before is 0
	// where it is not known.
	before, after int64
	// reason says in words what is wrong.
	reason string
}

// judge tells what an answer to a request for the form means. Short is the lifetime of
// answers that are not settled.
func judge(a answer, form Form, short time.Duration) judgement {
	switch {
	case a.unreached != nil:
		return judgement{next: stressed, reason: "the proxy could not be reached: " + a.unreached.Error()}
	case a.status == http.StatusServiceUnavailable:
		return unavailable(a.header.Get("X-Karui-Reason"))
	case a.status == http.StatusNotFound || a.status == http.StatusGone:
		return judgement{next: missing, reason: fmt.Sprintf("the origin has no such file (%d)", a.status)}
	case a.status != http.StatusOK:
		return judgement{next: failed, reason: refused(a)}
	case a.broken != nil:
		return judgement{next: again, reason: fmt.Sprintf("the answer broke off after %d bytes: %v", a.bytes, a.broken)}
	}
	did := a.header.Get("X-Karui")
	if did == "" {
		did = guess(a, form, short)
	}
	switch did {
	case "hit", "wait":
		return variant(a, form, did == "hit")
	case "original":
		return judgement{outcome: Kept, kept: a.header.Get("X-Karui-Kept"), before: a.bytes, after: a.bytes, ready: true}
	case "bypass":
		return judgement{outcome: Bypassed, before: a.bytes, after: a.bytes}
	case "miss":
		return judgement{next: again, reason: "it is still the original: the variant was not made in time (karui's log and metrics say why)"}
	case "stale":
		return judgement{next: again, reason: "it is past its lifetime, and the origin does not say whether it still holds"}
	}
	return judgement{next: failed, reason: fmt.Sprintf("the answer says X-Karui: %s, which this version does not know", cut(did, 40))}
}

// unavailable is about a 503 with the proxy's reason.
func unavailable(reason string) judgement {
	switch reason {
	case "route":
		return judgement{next: hopeless, reason: "the proxy does not know the site: does it run with this configuration?"}
	case "secret":
		return judgement{next: hopeless, reason: "the proxy refuses the key: its edge.secrets are others than those of this configuration"}
	case "origin":
		return judgement{next: unserved, reason: "the origin could not be reached, or answered that it is overloaded (503 origin)"}
	case "latency":
		return judgement{next: stressed, reason: "the proxy turns requests away since they take too long (503 latency)"}
	case "disk":
		return judgement{next: stressed, reason: "the proxy's disks are full or out of use (503 disk)"}
	case "shed":
		return judgement{next: stressed, reason: "an operator has requests turned away (503 shed)"}
	case "drain":
		return judgement{next: stressed, reason: "the proxy is being stopped (503 drain)"}
	case "":
		return judgement{next: stressed, reason: "503 by something that is not karui"}
	}
	return judgement{next: stressed, reason: "503 " + cut(reason, 40)}
}

// refused is about any other answer that is no image.
func refused(a answer) string {
	if a.status >= 300 && a.status < 400 {
		return fmt.Sprintf("the origin answers %d and sends viewers to %q", a.status, cut(a.header.Get("Location"), 200))
	}
	return fmt.Sprintf("answered with %d %s", a.status, http.StatusText(a.status))
}

// variant checks that an answer is what it says.
func variant(a answer, form Form, ready bool) judgement {
	if a.sniffed != form.format {
		return judgement{next: failed, reason: fmt.Sprintf("the answer is %s, but %s was asked for", a.sniffed, form)}
	}
	if t := a.header.Get("Content-Type"); t != form.format.ContentType() {
		return judgement{next: failed, reason: fmt.Sprintf("the answer is %s and says that it is %q", a.sniffed, cut(t, 60))}
	}
	if tag := a.header.Get("Etag"); strings.HasPrefix(tag, `"k-`) && tag != a.digest.ETag() {
		return judgement{next: again, reason: fmt.Sprintf("the answer is %d bytes that are not those of its ETag", a.bytes)}
	}
	j := judgement{outcome: Variant, ready: ready, after: a.bytes}
	if saved, err := strconv.ParseInt(a.header.Get("X-Karui-Saved"), 10, 64); err == nil && saved > 0 {
		j.before = a.bytes + saved
	}
	return j
}

// guess tells what X-Karui would say, where edge.debug_headers is off.
func guess(a answer, form Form, short time.Duration) string {
	control := rules.ParseCacheControl(a.header["Cache-Control"])
	switch {
	case strings.HasPrefix(a.header.Get("Etag"), `"k-`) && form != Original:
		return "hit"
	case control.Private || control.NoStore || !slices.Contains(rules.Tokens(a.header["Vary"]), "accept"):
		return "bypass"
	case !slices.Contains([]header.Format{header.JPEG, header.PNG, header.GIF}, a.sniffed):
		return "bypass"
	case form == Original || control.MaxAge > short:
		return "original"
	}
	return "miss"
}
