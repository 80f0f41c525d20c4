package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"karui/internal/api"
	"karui/internal/purging"
)

const (
	// lookEvery is how often a node is asked how a purge does.
	lookEvery = time.Second
	// silence is how long a node may give no answer: it may be restarted meanwhile, and
	// goes on with the edge then.
	silence = 2 * time.Minute
)

// Follow waits until the purges of a node have ended, also at the edge, and tells seen,
// unless that is nil, how they do. It gives what it saw last. The error is ctx's, or
// says that the node gives no answer or does not know a purge.
func Follow(ctx context.Context, n Node, purges []purging.Purge, seen func([]purging.Purge)) ([]purging.Purge, error) {
	var silent time.Time
	for {
		ended := true
		for i := range purges {
			if purges[i].State != purging.Running {
				continue
			}
			p, err := Find(ctx, n, purges[i].ID)
			if e := (*api.Error)(nil); errors.As(err, &e) {
				return purges, err
			}
			switch {
			case err == nil:
				purges[i], silent = p, time.Time{}
			case ctx.Err() != nil:
				return purges, ctx.Err()
			case silent.IsZero():
				silent = time.Now()
			case time.Since(silent) > silence:
				return purges, fmt.Errorf("no answer for %s: %w", silence, err)
			}
			ended = ended && purges[i].State != purging.Running
		}
		if seen != nil {
			seen(purges)
		}
		if ended {
			return purges, nil
		}
		if err := wait(ctx, lookEvery); err != nil {
			return purges, err
		}
	}
}

// Find asks a node for one purge.
func Find(ctx context.Context, n Node, id string) (p purging.Purge, err error) {
	return p, n.Do(ctx, http.MethodGet, "/purge/"+url.PathEscape(id), nil, &p)
}

// List asks a node for all that the token may see.
func List(ctx context.Context, n Node) (l purging.List, err error) {
	return l, n.Do(ctx, http.MethodGet, "/purge", nil, &l)
}
