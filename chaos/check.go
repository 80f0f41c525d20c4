package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"karui/internal/picture"
)

// reason names what is wrong with an answer.
type reason string

const (
	// badStatus: neither the file nor what was asked for.
	badStatus reason = "status"
	// noAnswer: none within the limit, or a connection that broke before the head.
	noAnswer reason = "no-answer"
	// badCut: a body that broke off although nothing was done to what sent it.
	badCut reason = "cut"
	// truncated: an answer that looks whole and is not.
	truncated reason = "truncated"
	// undecodable: neither the original nor a file that decodes.
	undecodable reason = "undecodable"
	// wrongPicture: it decodes, but to something else.
	wrongPicture reason = "wrong-picture"
	// wrongFormat: a format that the client did not name.
	wrongFormat reason = "wrong-format"
	// wrongType: Content-Type says something else than the bytes.
	wrongType reason = "wrong-type"
	// noVary: an answer of karui's that does not say that it depends on Accept.
	noVary reason = "no-vary"
	// foreignETag: an entity tag that stands for other bytes than those it came with, or a
	// 304 for a tag that nobody asked with.
	foreignETag reason = "foreign-etag"
	// sharedCookie: an answer made for one visitor reached another.
	sharedCookie reason = "shared-cookie"
	// kept503: a 503 of karui's that caches may keep.
	kept503 reason = "kept-503"
	// oldPicture: a version of a changed picture that no cache may have any more.
	oldPicture reason = "old-picture"
	// wrongPart: a 206 whose bytes do not belong where it says.
	wrongPart reason = "wrong-part"
	// unseenPart is no fault yet: the whole has to be seen before.
	unseenPart reason = "unseen-part"
)

// finding is one thing that is wrong with an answer.
type finding struct {
	reason reason
	words  string
}

// checker judges answers. Its methods may be called from any goroutine.
type checker struct {
	judge *picture.Judge
	files map[string]*original
	// changing are the pictures that change, by id; they are not among files.
	changing map[string]*changing
	// nobodyThere tells whether the true origin was down in a time, in which the edge may
	// answer with what it has, however old.
	nobodyThere func(from, to time.Time) bool
	// byBody tells whose bytes a body is, if they are not its own.
	byBody map[[sha256.Size]byte]*original
	card   []byte

	mu sync.Mutex
	// visitors are those whose personal picture has arrived.
	visitors map[uint64]bool
	// bodies are variants by file and tag, to hold parts against.
	bodies map[string]seenVariant
	// variants counts the different ones seen, by media type.
	variants map[string]int
}

// seenVariant is a variant that was judged, and what it was made of.
type seenVariant struct {
	body []byte
	of   *version
}

func newChecker(files []*original, changes []*changing, card []byte, judge *picture.Judge) *checker {
	c := &checker{
		judge: judge, files: map[string]*original{}, changing: map[string]*changing{}, byBody: map[[sha256.Size]byte]*original{}, card: card,
		visitors: map[uint64]bool{}, bodies: map[string]seenVariant{}, variants: map[string]int{},
		nobodyThere: func(time.Time, time.Time) bool { return false },
	}
	for _, ch := range changes {
		c.changing[ch.id] = ch
	}
	for _, f := range files {
		c.files[f.id] = f
		c.byBody[sha256.Sum256(f.body)] = f
	}
	return c
}

// outcome is what an answer was, where nothing is wrong with it.
type outcome string

const (
	gotOriginal outcome = "original"
	gotVariant  outcome = "variant"
	gotHead     outcome = "head"
	gotPart     outcome = "part"
	gotNothing  outcome = "not modified"
	gotMissing  outcome = "missing"
	gotPersonal outcome = "personal"
)

// check judges an answer that arrived whole; without findings it is good.
func (c *checker) check(a *answer) (outcome, []finding) {
	var found []finding
	say := func(r reason, format string, args ...any) {
		found = append(found, finding{r, fmt.Sprintf(format, args...)})
	}
	c.checkHeader(a, say)
	switch a.status {
	case http.StatusOK:
		switch {
		case a.request.private:
			c.checkPersonal(a, say)
			return gotPersonal, found
		case a.request.method == http.MethodHead:
			c.checkHead(a, say)
			return gotHead, found
		}
		got := c.checkBody(a, a.header, a.body, say)
		return got, found
	case http.StatusPartialContent:
		if a.request.part == "" {
			say(badStatus, "206 although no part was asked for")
			return gotPart, found
		}
		c.checkPart(a, say)
		return gotPart, found
	case http.StatusNotModified:
		if len(a.request.tags) == 0 {
			say(badStatus, "304 although nothing was asked about")
		}
		return gotNothing, found
	case http.StatusNotFound:
		if !a.request.missing {
			say(badStatus, "404 for a file that is there")
		}
		return gotMissing, found
	}
	say(badStatus, "status %d", a.status)
	return "", found
}

// checkHeader looks at what holds for answers of every status.
func (c *checker) checkHeader(a *answer, say func(reason, string, ...any)) {
	did := a.header.Get("X-Karui")
	if did != "" && did != "bypass" && !names(a.header, "Vary", "Accept") {
		say(noVary, "X-Karui: %s with Vary %q", did, a.header.Get("Vary"))
	}
	if a.status == http.StatusServiceUnavailable && a.header.Get("X-Karui-Reason") != "" && !names(a.header, "Cache-Control", "no-store") {
		say(kept503, "503 for reason %q with Cache-Control %q", a.header.Get("X-Karui-Reason"), a.header.Get("Cache-Control"))
	}
}

// versions are what a path may show, the newest first; none for a file that is not there.
func (c *checker) versions(q request) []*version {
	id := path.Base(q.path)
	switch {
	case q.missing:
	case c.changing[id] != nil:
		return c.changing[id].all()
	case c.files[id] != nil:
		return []*version{{original: c.files[id]}}
	}
	return nil
}

// checkAge judges whether the request may still get one of these versions, which the
// answer may be.
func (c *checker) checkAge(a *answer, may []*version, say func(reason, string, ...any)) {
	ch := c.changing[path.Base(a.request.path)]
	if ch == nil || a.own {
		return
	}
	first := ""
	for _, v := range may {
		why, aged := ch.tooOld(v, a.began, a.request.direct)
		if why == "" || aged && c.nobodyThere(a.began, a.ended) {
			return
		}
		if first == "" {
			first = why
		}
	}
	if first != "" {
		say(oldPicture, "%s", first)
	}
}

// checkBody judges a whole body, be it just arrived or out of the client's own cache.
func (c *checker) checkBody(a *answer, header http.Header, body []byte, say func(reason, string, ...any)) outcome {
	versions := c.versions(a.request)
	if len(versions) == 0 {
		say(badStatus, "200 for a file that is not there")
		return ""
	}
	declared := header.Get("Content-Type")
	if tag, ours := strings.CutPrefix(header.Get("ETag"), `"k-`); ours {
		sum := sha256.Sum256(body)
		if digest := strings.TrimSuffix(tag, `"`); digest != hex.EncodeToString(sum[:16]) {
			say(foreignETag, "the tag %s came with bytes of digest %x", header.Get("ETag"), sum[:16])
		}
	}
	for _, file := range versions {
		if bytes.Equal(body, file.body) {
			if declared != file.mediaType {
				say(wrongType, "the original, which is %s, as %q", file.mediaType, declared)
			}
			c.checkAge(a, []*version{file}, say)
			return gotOriginal
		}
	}
	if other := c.byBody[sha256.Sum256(body)]; other != nil {
		say(wrongPicture, "the original of %s", other.id)
		return ""
	}
	for _, file := range versions {
		if bytes.HasPrefix(file.body, body) {
			say(truncated, "%d of the original's %d bytes", len(body), len(file.body))
			return ""
		}
	}
	format := picture.Format(body)
	if declared != format {
		say(wrongType, "bytes that are %q as %q", format, declared)
	}
	if cutShort(body) {
		say(truncated, "%d bytes of a longer variant", len(body))
		return ""
	}
	if !slices.Contains(a.request.takes, format) {
		say(wrongFormat, "%s for a client that takes %q", format, a.request.accept)
	}
	return c.checkVariant(a, versions, header, format, body, say)
}

func (c *checker) checkVariant(a *answer, versions []*version, header http.Header, format string, body []byte, say func(reason, string, ...any)) outcome {
	key := versions[0].id + " " + header.Get("ETag")
	c.mu.Lock()
	known := c.bodies[key]
	c.mu.Unlock()
	if bytes.Equal(known.body, body) {
		c.checkAge(a, []*version{known.of}, say)
		return gotVariant // it was judged when it came first
	}
	clip, err := picture.Decode(body)
	if err != nil {
		say(undecodable, "%v", err)
		return ""
	}
	file := versions[0]
	for _, v := range versions {
		if v.size == clip.Size() {
			file = v
		}
	}
	problems := c.judge.Problems(file.body, body)
	for _, problem := range problems {
		say(wrongPicture, "%s", problem)
	}
	if len(problems) == 0 {
		c.mu.Lock()
		c.bodies[key] = seenVariant{bytes.Clone(body), file}
		c.variants[format]++
		c.mu.Unlock()
		c.checkAge(a, []*version{file}, say)
	}
	return gotVariant
}

// cutShort tells whether a RIFF file ends before it says.
func cutShort(body []byte) bool {
	return len(body) >= 12 && string(body[:4]) == "RIFF" && int(binary.LittleEndian.Uint32(body[4:])) > len(body)-8
}

// checkHead judges a HEAD: it has to say what a GET would.
func (c *checker) checkHead(a *answer, say func(reason, string, ...any)) {
	versions := c.versions(a.request)
	if len(versions) == 0 {
		say(badStatus, "200 for a file that is not there")
		return
	}
	declared := a.header.Get("Content-Type")
	switch {
	case declared == versions[0].mediaType:
		length := a.header.Get("Content-Length")
		if length == "" {
			return
		}
		may := slices.DeleteFunc(versions, func(v *version) bool { return strconv.Itoa(len(v.body)) != length })
		if len(may) == 0 {
			say(truncated, "HEAD: the original with Content-Length %s, which it never had", length)
		}
		c.checkAge(a, may, say)
	case !slices.Contains(a.request.takes, declared):
		say(wrongFormat, "HEAD: %s for a client that takes %q", declared, a.request.accept)
	default:
		c.mu.Lock()
		known := c.bodies[versions[0].id+" "+a.header.Get("ETag")]
		c.mu.Unlock()
		if known.of != nil {
			c.checkAge(a, []*version{known.of}, say)
		}
	}
}

// checkPart judges a 206 by the bytes of the representation that its tag names.
func (c *checker) checkPart(a *answer, say func(reason, string, ...any)) {
	versions := c.versions(a.request)
	if len(versions) == 0 {
		say(badStatus, "206 for a file that is not there")
		return
	}
	var first, last, size int
	if _, err := fmt.Sscanf(a.header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size); err != nil {
		say(wrongPart, "Content-Range %q", a.header.Get("Content-Range"))
		return
	}
	fits := func(whole []byte) bool {
		return size == len(whole) && first >= 0 && last < size && first <= last && bytes.Equal(a.body, whole[first:last+1])
	}
	if declared := a.header.Get("Content-Type"); declared != versions[0].mediaType {
		c.mu.Lock()
		known := c.bodies[versions[0].id+" "+a.header.Get("ETag")]
		c.mu.Unlock()
		if !slices.Contains(a.request.takes, declared) {
			say(wrongFormat, "part of %s for a client that takes %q", declared, a.request.accept)
		}
		switch {
		case known.of == nil:
			say(unseenPart, "a part of type %q and tag %s, which nobody has seen whole", declared, a.header.Get("ETag"))
		case !fits(known.body):
			say(wrongPart, "bytes %d to %d of %d are not those of the whole, which has %d", first, last, size, len(known.body))
		default:
			c.checkAge(a, []*version{known.of}, say)
		}
		return
	}
	may := slices.DeleteFunc(versions, func(v *version) bool { return !fits(v.body) })
	if len(may) == 0 {
		say(wrongPart, "bytes %d to %d of %d are not those of any original there was", first, last, size)
	}
	c.checkAge(a, may, say)
}

// checkPersonal judges the answer that the origin made for one visitor.
func (c *checker) checkPersonal(a *answer, say func(reason, string, ...any)) {
	visitor, ok := visitorOf(c.card, a.body)
	if !ok {
		if bytes.HasPrefix(a.body, c.card[:2]) && picture.Format(a.body) == "image/jpeg" {
			say(truncated, "a personal picture of %d bytes", len(a.body))
			return
		}
		say(sharedCookie, "a personal picture that was converted, so kept: %s", picture.Format(a.body))
		return
	}
	if cookie := a.header.Get("Set-Cookie"); cookie != "" && cookie != "visitor="+strconv.FormatUint(visitor, 10) {
		say(sharedCookie, "the picture of visitor %d with %s", visitor, cookie)
	}
	c.mu.Lock()
	seen := c.visitors[visitor]
	c.visitors[visitor] = true
	c.mu.Unlock()
	if seen {
		say(sharedCookie, "the picture of visitor %d, which another has", visitor)
	}
}

// names tells whether a list in a header holds a word.
func names(h http.Header, name, word string) bool {
	for _, line := range h.Values(name) {
		for member := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(member), word) {
				return true
			}
		}
	}
	return false
}
