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
	// byBody tells whose bytes a body is, if they are not its own.
	byBody map[[sha256.Size]byte]*original
	card   []byte

	mu sync.Mutex
	// visitors are those whose personal picture has arrived.
	visitors map[uint64]bool
	// bodies are variants by file and tag, to hold parts against.
	bodies map[string][]byte
	// variants counts the different ones seen, by media type.
	variants map[string]int
}

func newChecker(files []*original, card []byte, judge *picture.Judge) *checker {
	c := &checker{
		judge: judge, files: map[string]*original{}, byBody: map[[sha256.Size]byte]*original{}, card: card,
		visitors: map[uint64]bool{}, bodies: map[string][]byte{}, variants: map[string]int{},
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

// checkBody judges a whole body, be it just arrived or out of the client's own cache.
func (c *checker) checkBody(a *answer, header http.Header, body []byte, say func(reason, string, ...any)) outcome {
	file := c.files[path.Base(a.request.path)]
	if a.request.missing || file == nil {
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
	if bytes.Equal(body, file.body) {
		if declared != file.mediaType {
			say(wrongType, "the original, which is %s, as %q", file.mediaType, declared)
		}
		return gotOriginal
	}
	if other := c.byBody[sha256.Sum256(body)]; other != nil {
		say(wrongPicture, "the original of %s", other.id)
		return ""
	}
	if bytes.HasPrefix(file.body, body) {
		say(truncated, "%d of the original's %d bytes", len(body), len(file.body))
		return ""
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
	return c.checkVariant(file, header, format, body, say)
}

func (c *checker) checkVariant(file *original, header http.Header, format string, body []byte, say func(reason, string, ...any)) outcome {
	key := file.id + " " + header.Get("ETag")
	c.mu.Lock()
	known := bytes.Equal(c.bodies[key], body)
	c.mu.Unlock()
	if known {
		return gotVariant // it was judged when it came first
	}
	if _, err := picture.Decode(body); err != nil {
		say(undecodable, "%v", err)
		return ""
	}
	problems := c.judge.Problems(file.body, body)
	for _, problem := range problems {
		say(wrongPicture, "%s", problem)
	}
	if len(problems) == 0 {
		c.mu.Lock()
		c.bodies[key] = bytes.Clone(body)
		c.variants[format]++
		c.mu.Unlock()
	}
	return gotVariant
}

// cutShort tells whether a RIFF file ends before it says.
func cutShort(body []byte) bool {
	return len(body) >= 12 && string(body[:4]) == "RIFF" && int(binary.LittleEndian.Uint32(body[4:])) > len(body)-8
}

// checkHead judges a HEAD: it has to say what a GET would.
func (c *checker) checkHead(a *answer, say func(reason, string, ...any)) {
	file := c.files[path.Base(a.request.path)]
	if a.request.missing || file == nil {
		say(badStatus, "200 for a file that is not there")
		return
	}
	declared := a.header.Get("Content-Type")
	switch {
	case declared == file.mediaType:
		if length := a.header.Get("Content-Length"); length != "" && length != strconv.Itoa(len(file.body)) {
			say(truncated, "HEAD: the original of %d bytes with Content-Length %s", len(file.body), length)
		}
	case !slices.Contains(a.request.takes, declared):
		say(wrongFormat, "HEAD: %s for a client that takes %q", declared, a.request.accept)
	}
}

// checkPart judges a 206 by the bytes of the representation that its tag names.
func (c *checker) checkPart(a *answer, say func(reason, string, ...any)) {
	file := c.files[path.Base(a.request.path)]
	if file == nil {
		say(badStatus, "206 for a file that is not there")
		return
	}
	whole := file.body
	if declared := a.header.Get("Content-Type"); declared != file.mediaType {
		c.mu.Lock()
		whole = c.bodies[file.id+" "+a.header.Get("ETag")]
		c.mu.Unlock()
		if !slices.Contains(a.request.takes, declared) {
			say(wrongFormat, "part of %s for a client that takes %q", declared, a.request.accept)
		}
		if whole == nil {
			say(unseenPart, "a part of type %q and tag %s, which nobody has seen whole", declared, a.header.Get("ETag"))
			return
		}
	}
	var first, last, size int
	if _, err := fmt.Sscanf(a.header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size); err != nil {
		say(wrongPart, "Content-Range %q", a.header.Get("Content-Range"))
		return
	}
	if size != len(whole) || first < 0 || last >= size || first > last || !bytes.Equal(a.body, whole[first:last+1]) {
		say(wrongPart, "bytes %d to %d of %d are not those of the whole, which has %d", first, last, size, len(whole))
	}
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
