package nodes

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"karui/internal/api"
	"karui/internal/purging"
)

// Node is the admin listener of a node. *admin.Client is one.
type Node interface {
	Base() string
	Do(ctx context.Context, method, path string, in, out any) error
}

// Order is what to purge.
type Order struct {
	Site string
	// Prefixes are in the form of purging.Prefix.
	Prefixes []string
	Exact    bool
	// Edge is whether the edge is purged as well.
	Edge bool
}

// Result is what came of an order.
type Result struct {
	Site  string   `json:"site"`
	Nodes []Answer `json:"nodes"`
	// Purges are those of the first node, whose edge parts may go on.
	Purges []purging.Purge `json:"purges"`
	// Failed is whether a node has not acknowledged, so that the edge was left alone.
	Failed bool `json:"failed"`
}

// Answer is what a node said.
type Answer struct {
	Admin        string `json:"admin"`
	Acknowledged bool   `json:"acknowledged"`
	Error        string `json:"error,omitempty"`
	// Remarks say in what its purge differs from the usual, and Volatile that it holds
	// until the node's next start only.
	Remarks  []string `json:"remarks,omitempty"`
	Volatile bool     `json:"volatile,omitempty"`
	Err      error    `json:"-"`
}

// retryBusy is how long a node that has no room for another purge at its edge is left
// alone.
const retryBusy = 5 * time.Second

// Purge sends the order to all nodes at once, the first one last, which then purges the
// edge. There is at least one node. It ends early only with ctx.
func Purge(ctx context.Context, nodes []Node, o Order) Result {
	r := Result{Site: o.Site, Nodes: make([]Answer, len(nodes)), Purges: []purging.Purge{}}
	for i, n := range nodes {
		r.Nodes[i] = Answer{Admin: n.Base(), Acknowledged: true}
	}
	pieces := cut(o.Prefixes)
	var others sync.WaitGroup
	for i, n := range nodes[1:] {
		others.Go(func() {
			for _, piece := range pieces {
				p, err := send(ctx, n, o, piece, false)
				if err != nil {
					r.Nodes[i+1].fail(err)
					return
				}
				r.Nodes[i+1].note(p)
			}
		})
	}
	others.Wait()
	for _, a := range r.Nodes {
		r.Failed = r.Failed || !a.Acknowledged
	}
	edge := o.Edge && !r.Failed
	for _, piece := range pieces {
		p, err := send(ctx, nodes[0], o, piece, edge)
		if err != nil {
			r.Nodes[0].fail(err)
			r.Failed = true
			break
		}
		r.Nodes[0].note(p)
		r.Purges = append(r.Purges, p)
	}
	return r
}

func (a *Answer) note(p purging.Purge) {
	a.Volatile = a.Volatile || p.Volatile
	if p.Remark != "" && !slices.Contains(a.Remarks, p.Remark) {
		a.Remarks = append(a.Remarks, p.Remark)
	}
}

func (a *Answer) fail(err error) { a.Acknowledged, a.Err, a.Error = false, err, err.Error() }

// send asks one node, again while it says that it is busy.
func send(ctx context.Context, n Node, o Order, prefixes []string, edge bool) (p purging.Purge, err error) {
	for {
		err = n.Do(ctx, http.MethodPost, "/purge", purging.Request{Site: o.Site, Prefixes: prefixes, Edge: &edge, Exact: o.Exact}, &p)
		if e := (*api.Error)(nil); !errors.As(err, &e) || e.Code != purging.CodeBusy {
			return p, err
		}
		if wait(ctx, retryBusy) != nil {
			return p, err
		}
	}
}

// cut makes pieces of what one request may hold.
func cut(prefixes []string) (pieces [][]string) {
	begin, size := 0, 0
	for i, p := range prefixes {
		if i > begin && (i-begin == purging.MaxPrefixes || size+len(p) > purging.MaxBytes) {
			pieces = append(pieces, prefixes[begin:i])
			begin, size = i, 0
		}
		size += len(p)
	}
	return append(pieces, prefixes[begin:])
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
