package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// kind is a kind of browser, by what it says it takes.
type kind struct {
	Name   string // a word in addresses
	Label  string
	Accept string
}

// kinds of browsers, the usual one first.
func kinds() []kind {
	return []kind{
		{"webp", "A browser that takes WebP", "image/webp,image/apng,image/*,*/*;q=0.8"},
		{"plain", "A browser without WebP", "image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"},
		{"avif", "A browser that takes AVIF too", "image/avif,image/webp,image/apng,image/*,*/*;q=0.8"},
	}
}

// kindNamed finds a kind; the usual one for words that name none.
func kindNamed(name string) kind {
	for _, k := range kinds() {
		if k.Name == name {
			return k
		}
	}
	return kinds()[0]
}

// Bounds of one visit.
const (
	// visitTimeout is longer than the edge waits for karui and then the origin.
	visitTimeout = 20 * time.Second
	bodyMax      = 64 << 20
)

// fate is what became of a visit.
type fate string

// The fates.
const (
	fateGood        fate = "good"        // a whole image that is the right one
	fateBroken      fate = "broken"      // an image that is not: what must never happen
	fateCut         fate = "cut"         // the connection broke while the body came
	fateUnavailable fate = "unavailable" // an honest error: nobody has the image
)

// answer is what a viewer got.
type answer struct {
	Fate   fate
	Status int // 0 if none came
	Way    way
	Format string
	Bytes  int64
	Saved  int64
	Took   time.Duration
	Why    string // of every fate but good
}

// viewer asks the edge as browsers do.
type viewer struct {
	edge   string // its URL
	host   string
	client *http.Client
	judge  *judge
}

func newViewer(edge, host string, j *judge) *viewer {
	return &viewer{edge: edge, host: host, judge: j, client: &http.Client{
		Timeout: visitTimeout,
		Transport: &http.Transport{
			DialContext:        (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			DisableCompression: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (v *viewer) close() { v.client.CloseIdleConnections() }

// request asks the edge; the caller closes the body.
func (v *viewer) request(ctx context.Context, k kind, target string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.edge+target, nil)
	if err != nil {
		return nil, err
	}
	req.Host = v.host
	req.Header.Set("Accept", k.Accept)
	req.Header.Set("User-Agent", "karui-demo")
	return v.client.Do(req)
}

// visit asks for an image and looks at every byte of the answer.
func (v *viewer) visit(ctx context.Context, k kind, target string) answer {
	began := time.Now()
	a := v.look(ctx, k, target)
	a.Took = time.Since(began)
	return a
}

func (v *viewer) look(ctx context.Context, k kind, target string) answer {
	resp, err := v.request(ctx, k, target)
	if err != nil {
		return answer{Fate: fateUnavailable, Way: wayNone, Why: "the edge did not answer: " + err.Error()}
	}
	defer resp.Body.Close()
	a := answer{Status: resp.StatusCode, Way: wayOf(resp.Header), Saved: savedOf(resp.Header)}
	body, err := io.ReadAll(io.LimitReader(resp.Body, bodyMax))
	a.Bytes = int64(len(body))
	if a.Status != http.StatusOK {
		a.Fate, a.Way, a.Saved = fateUnavailable, wayNone, 0
		a.Why = fmt.Sprintf("the edge answered %d", a.Status)
		return a
	}
	if err != nil {
		a.Fate, a.Why = fateCut, "the body broke off: "+err.Error()
		return a
	}
	a.Format = formatOf(body)
	path, _, _ := strings.Cut(target, "?")
	err = v.judge.fault(path, body)
	if err == nil && (a.Format == "webp" || a.Format == "avif") && !strings.Contains(k.Accept, "image/"+a.Format) {
		err = errors.New("a format that this browser does not take")
	}
	a.Fate = fateGood
	if err != nil {
		a.Fate, a.Why = fateBroken, err.Error()
	}
	return a
}

// wayOf tells who answered, by the headers that the edge gives viewers.
func wayOf(h http.Header) way {
	switch cache := h.Get("X-Cache"); {
	case strings.HasPrefix(cache, "Hit"):
		return wayEdge
	case strings.HasPrefix(cache, "Error"):
		return wayNone
	case h.Get("X-Karui") != "":
		return wayKarui
	default:
		return wayOrigin
	}
}

func savedOf(h http.Header) int64 {
	n, err := strconv.ParseInt(h.Get("X-Karui-Saved"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// fates counts what became of the visits.
type fates struct {
	mu     sync.Mutex
	counts map[fate]int
	last   map[fate]string // in words
}

func (f *fates) add(target string, a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		f.counts, f.last = make(map[fate]int), make(map[fate]string)
	}
	f.counts[a.Fate]++
	if a.Why != "" {
		f.last[a.Fate] = target + ": " + a.Why
	}
}

func (f *fates) of(which fate) (int, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[which], f.last[which]
}
