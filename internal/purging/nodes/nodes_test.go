package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"karui/internal/api"
	"karui/internal/purging"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is an API of routes that a test makes, asked without a network.
type node struct {
	name    string
	handler http.Handler
	cut     func() error // nil lets every request through
	remark  string       // of a purge that no disk took
}

func (n *node) Base() string { return n.name }

func (n *node) Do(ctx context.Context, method, path string, in, out any) error {
	if n.cut != nil {
		if err := n.cut(); err != nil {
			return err
		}
	}
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if in == nil {
		b = nil
	}
	r := httptest.NewRequestWithContext(ctx, method, api.Prefix+path, bytes.NewReader(b))
	r.Host = "127.0.0.1"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	n.handler.ServeHTTP(w, r)
	if w.Code >= 300 {
		var failure struct{ Error *api.Error }
		if err := json.Unmarshal(w.Body.Bytes(), &failure); err != nil {
			return err
		}
		return fmt.Errorf("refused: %w", failure.Error)
	}
	return json.Unmarshal(w.Body.Bytes(), out)
}

// ledger notes what happens on all nodes, in order.
type ledger struct {
	mu    sync.Mutex
	lines []string
}

func (l *ledger) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// purges makes a node that takes purges, and whose edge takes three looks.
func (l *ledger) purges(name string, refuse func(purging.Request) error) *node {
	looks := map[string]int{}
	var mu sync.Mutex
	n := &node{name: name}
	n.handler = api.New(api.Options{Log: slog.New(slog.DiscardHandler), Routes: []api.Route{
		{Method: "POST", Pattern: "/purge", Right: api.Purge, MaxBody: 4 << 20, Handle: func(c *api.Call) (any, error) {
			var q purging.Request
			if err := c.Decode(&q); err != nil {
				return nil, err
			}
			if refuse != nil {
				if err := refuse(q); err != nil {
					return nil, err
				}
			}
			l.note("%s %s %d edge %v exact %v", name, q.Site, len(q.Prefixes), *q.Edge, q.Exact)
			mu.Lock()
			defer mu.Unlock()
			p := purging.Purge{ID: fmt.Sprint(name, len(looks)), Site: q.Site, State: purging.Done, Remark: n.remark, Volatile: n.remark != ""}
			if *q.Edge {
				p.State = purging.Running
			}
			looks[p.ID] = 0
			return p, nil
		}},
		{Method: "GET", Pattern: "/purge/{id}", Right: api.Purge, Handle: func(c *api.Call) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			id := c.PathValue("id")
			if _, ok := looks[id]; !ok {
				return nil, api.NotFound("no such purge", "")
			}
			p := purging.Purge{ID: id, State: purging.Running}
			if looks[id]++; looks[id] >= 3 {
				p.State = purging.Done
			}
			return p, nil
		}},
	}})
	return n
}

func order(n int) Order {
	o := Order{Site: "shop", Edge: true}
	for i := range n {
		o.Prefixes = append(o.Prefixes, fmt.Sprintf("/%d/", i))
	}
	return o
}

func TestTheEdgeComesAfterAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		first := l.purges("a", nil)
		all := []Node{first}
		for i := range 5 {
			all = append(all, l.purges(string(rune('b'+i)), func(purging.Request) error {
				<-time.After(time.Duration(i) * time.Minute) // some take long
				return nil
			}))
		}
		r := Purge(t.Context(), all, order(2))
		if r.Failed || len(r.Purges) != 1 || len(r.Nodes) != 6 {
			t.Fatalf("%+v", r)
		}
		for i, line := range l.lines {
			if last := i == len(l.lines)-1; strings.Contains(line, "edge true") != last || strings.HasPrefix(line, "a ") != last {
				t.Errorf("%v", l.lines)
			}
		}
		seen := 0
		purges, err := Follow(t.Context(), first, r.Purges, func([]purging.Purge) { seen++ })
		if err != nil || purges[0].State != purging.Done || seen != 3 {
			t.Errorf("%+v, %v, %d looks", purges, err, seen)
		}
	})
}

// One that does not acknowledge is named, the others purge, and the edge is left alone.
func TestANodeThatDoesNotAcknowledge(t *testing.T) {
	for name, bad := range map[string]func(*node){
		"away":   func(n *node) { n.cut = func() error { return errors.New("connection refused") } },
		"unable": func(n *node) {},
	} {
		for _, at := range []int{0, 1, 2} {
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var l ledger
					var all []Node
					for i := range 3 {
						var refuse func(purging.Request) error
						if i == at && name == "unable" {
							refuse = func(purging.Request) error {
								return &api.Error{Status: 503, Code: purging.CodeNotPurged, Message: "nothing was purged"}
							}
						}
						n := l.purges(string(rune('a'+i)), refuse)
						if i == at {
							bad(n)
						}
						all = append(all, n)
					}
					r := Purge(t.Context(), all, order(1))
					if !r.Failed || len(l.lines) != 2 {
						t.Errorf("%+v, %v", r, l.lines)
					}
					for i, a := range r.Nodes {
						if a.Acknowledged != (i != at) || (a.Error == "") != a.Acknowledged {
							t.Errorf("%+v", r.Nodes)
						}
					}
					if at > 0 && strings.Contains(strings.Join(l.lines, ";"), "edge true") {
						t.Errorf("the edge was asked: %v", l.lines)
					}
				})
			})
		}
	}
}

// A node whose purge holds until its next start only is named, the edge goes on.
func TestANodeThatCouldNotWrite(t *testing.T) {
	for at := range 2 {
		synctest.Test(t, func(t *testing.T) {
			var l ledger
			all := []Node{l.purges("a", nil), l.purges("b", nil)}
			all[at].(*node).remark = "the disk is full" //nolint:forcetypeassert // it was made above
			r := Purge(t.Context(), all, order(2*purging.MaxPrefixes))
			if r.Failed || r.Nodes[at].Volatile != true || r.Nodes[1-at].Volatile || !slices.Equal(r.Nodes[at].Remarks, []string{"the disk is full"}) {
				t.Errorf("%+v", r)
			}
			if !strings.Contains(l.lines[len(l.lines)-1], "edge true") {
				t.Errorf("%v", l.lines)
			}
		})
	}
}

func TestMuchIsSentInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		busy := 0
		a := l.purges("a", func(q purging.Request) error {
			if busy++; busy == 2 || busy == 3 {
				return &api.Error{Status: 429, Code: purging.CodeBusy, Message: "too many"}
			}
			return nil
		})
		o := order(2*purging.MaxPrefixes + 1)
		o.Exact = true
		r := Purge(t.Context(), []Node{a, l.purges("b", nil)}, o)
		want := []string{
			"b shop 3000 edge false exact true", "b shop 3000 edge false exact true", "b shop 1 edge false exact true",
			"a shop 3000 edge true exact true", "a shop 3000 edge true exact true", "a shop 1 edge true exact true",
		}
		if r.Failed || len(r.Purges) != 3 || !slices.Equal(l.lines, want) {
			t.Errorf("%+v %v", r, l.lines)
		}
	})
	long := strings.Repeat("x", 3000)
	if pieces := cut(slices.Repeat([]string{long}, 400)); len(pieces) != 3 {
		t.Errorf("%d pieces", len(pieces))
	}
}

// A restart of the node is waited out; a node that stays away, or does not know the
// purge, is not.
func TestFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		a := l.purges("a", nil)
		began := time.Now()
		r := Purge(t.Context(), []Node{a}, order(1))
		a.cut = func() error {
			if since := time.Since(began); since > time.Second && since < 100*time.Second {
				return errors.New("connection refused")
			}
			return nil
		}
		if purges, err := Follow(t.Context(), a, r.Purges, nil); err != nil || purges[0].State != purging.Done {
			t.Errorf("%+v %v", purges, err)
		}
		a.cut = func() error { return errors.New("connection refused") }
		if _, err := Follow(t.Context(), a, []purging.Purge{{ID: "a0", State: purging.Running}}, nil); err == nil || !strings.Contains(err.Error(), "no answer for 2m0s: connection refused") {
			t.Errorf("%v", err)
		}
		a.cut = nil
		if _, err := Follow(t.Context(), a, []purging.Purge{{ID: "gone", State: purging.Running}}, nil); err == nil || !strings.Contains(err.Error(), "no such purge") {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		a.cut = func() error { return errors.New("connection refused") }
		if _, err := Follow(ctx, a, []purging.Purge{{ID: "a0", State: purging.Running}}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}
