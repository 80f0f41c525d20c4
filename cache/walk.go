package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// walkFolder calls visit with the hash of every entry file in one of the folders, and
// with when it was fetched, as far as the index knows (nanoseconds since 1970; 0 is not
// known, and the file has to be read: see openHead). It goes by the names on disk and
// not by the index, so that it comes to files that have not been loaded yet too; they
// are read some hundreds at a time, however many there are. No lock is held while visit
// runs. To remove a file, use discard, which asks once more under the key's lock
// whether it is the one that is meant.
//
// Every file that is there from the beginning to the end is visited, unless it is
// replaced meanwhile by a newer Put; what is put or removed during the walk may be
// visited or not.
//
// It rests as p says. An error says that it ended early: ctx is over, the disk failed
// (then the folder has to be walked again when the volume returns), or what visit gave.
func (v *volume) walkFolder(ctx context.Context, i int, p *pace, visit func(h hash, fetched int64) error) error {
	sub := fmt.Sprintf("%02x", i)
	var stopped error
	err := v.files.Names(v.path+"/entries/"+sub, func(name string) bool {
		h, ok := parseHash(name)
		if !ok || name[:2] != sub { // somebody else put it there
			return true
		}
		var fetched int64
		v.mu.Lock()
		if r := v.index.find(h); r != nil {
			fetched = r.fetched
		}
		v.mu.Unlock()
		if stopped = visit(h, fetched); stopped == nil {
			stopped = p.step(ctx)
		}
		return stopped == nil
	})
	switch {
	case stopped != nil:
		return stopped
	case errors.Is(err, fs.ErrNotExist):
		return ctx.Err()
	case err != nil:
		v.fault(err, false)
		return err
	}
	return ctx.Err()
}
