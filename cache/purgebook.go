package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"karui/cache/purge"
	"karui/internal/sabotage"
)

// Every volume keeps a book of all purges that are remembered, and of how far it has
// been swept for each itself; what another volume says about that does not count. It
// is the file `purges` in its folder, lines of text:
//
//	karui purges 1
//	cursor 17                                        the folder that is swept next
//	purge 1764475028000000000 1764475028000000001 42 "shop" "/images/"
//	sum 0123456789abcdef                             XXH64 of all above
//
// A purge has its time, since when it is known (nanoseconds since 1970 both), the
// folders before the cursor that have been swept, site and prefix. The book is written
// under another name, synced, and renamed, so that a kill at any instant leaves the old
// or the new one. One that is damaged was changed by the disk: nobody knows what it
// said, so nothing in the volume is trusted any more.
const (
	bookName  = "purges"
	bookTitle = "karui purges 1"
	// maxBook bounds what is read of one, in bytes: prefixes of their greatest length,
	// with every byte quoted.
	maxBook = 2 * maxPurges * (4*purge.MaxPrefix + 256)
)

var errBook = errors.New("the book of purges is damaged")

// save writes the books of all volumes that work, and waits for their disks, but for
// purgeWait at most. It is an error if none of them has its book then.
func (p *purges) save() error {
	answers := make(chan error, len(p.volumes))
	for _, v := range p.volumes {
		v.bookStale.Store(true)
		go func() { answers <- p.saveWith(v, v.squeezeBook) }() // close waits for it, as one of those that are busy
	}
	limit := time.NewTimer(purgeWait)
	defer limit.Stop()
	saved := false
	var failure error
	for range p.volumes {
		select {
		case err := <-answers:
			saved = saved || err == nil
			failure = errors.Join(failure, err)
			continue
		case <-limit.C:
			failure = errors.Join(failure, errors.New("a disk does not answer"))
		}
		break
	}
	switch {
	case saved:
		return nil // the others get theirs when they work
	case errors.Is(failure, ErrClosed):
		return failure
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, failure)
}

// saveTo writes a volume's book, unless somebody else has just done so.
func (p *purges) saveTo(v *volume) error { return p.saveWith(v, v.writeBook) }

// saveWith is saveTo with a way to write.
func (p *purges) saveWith(v *volume, write func(text string) error) error {
	if sabotage.LostPurge {
		return nil
	}
	done, err := v.begin()
	if err != nil {
		return err
	}
	defer done()
	v.bookSaving.Lock()
	defer v.bookSaving.Unlock()
	if !v.bookStale.Swap(false) {
		return nil
	}
	text := p.text(v)
	err = write(text)
	if err != nil {
		v.bookStale.Store(true)
		v.fault(err, true)
	}
	return err
}

// writeBook returns when the book is on the disk under its name.
func (v *volume) writeBook(text string) (err error) {
	temporary := v.path + "/tmp/" + v.run + bookName
	defer func() {
		if err != nil {
			_ = v.files.Remove(temporary) // what stays goes at the next start
		}
	}()
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC
	f, err := v.files.Open(temporary, flags)
	if errors.Is(err, fs.ErrNotExist) { // somebody emptied the folder
		if err = v.files.MkdirAll(filepath.Dir(temporary)); err == nil {
			f, err = v.files.Open(temporary, flags)
		}
	}
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := v.files.Rename(temporary, filepath.Join(v.path, bookName)); err != nil {
		return err
	}
	folder, err := v.files.Open(v.path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	err = folder.Sync()
	if cerr := folder.Close(); err == nil {
		err = cerr
	}
	return err
}

// Room that is made for a book on a full disk, in bytes: at first and at most, since what
// it is too full for may be something else, and entries are worth keeping then.
const (
	leastBookRoom = 64 << 10
	mostBookRoom  = 4 << 20
)

// squeezeBook is writeBook that makes room where the disk is full: a purge must be on the
// disk when it returns, and entries can be fetched again.
func (v *volume) squeezeBook(text string) error {
	err := v.writeBook(text)
	room := max(2*roundUp(int64(len(text))), leastBookRoom)
	for most := max(room, mostBookRoom); noSpace(err) && room <= most && v.makeRoom(room); room *= 2 {
		err = v.writeBook(text)
	}
	return err
}

// makeRoom removes the least recently used entries until about so many bytes are gone;
// false if there is none. It waits for the load to find some, for roomWait at most.
func (v *volume) makeRoom(bytes int64) bool {
	limit := time.NewTimer(roomWait)
	defer limit.Stop()
	for {
		v.mu.Lock()
		progress := v.progress
		loading := v.loading && !v.closed
		v.mu.Unlock()
		before := v.evictions.Load()
		v.evict(context.Background(), bytes, 1, nil)
		if v.evictions.Load() != before {
			return true
		}
		if !loading {
			return false
		}
		select {
		case <-progress:
		case <-limit.C:
			return false
		}
	}
}

// text is what the volume's book should say.
func (p *purges) text(v *volume) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := make([]string, 0, len(p.list))
	for _, r := range p.list {
		lines = append(lines, fmt.Sprintf("purge %d %d %d %q %q\n",
			toNano(r.At), toNano(r.noted), r.swept[v], r.Site, r.Prefix))
	}
	slices.Sort(lines)
	body := fmt.Sprintf("%s\ncursor %d\n%s", bookTitle, p.cursors[v], strings.Join(lines, ""))
	return fmt.Sprintf("%ssum %016x\n", body, xxhash.Sum64String(body))
}

// page is what a volume's book says.
type page struct {
	cursor int
	purges []noted
}

type noted struct {
	purge.Purge
	since time.Time
	swept int
}

// parseBook reads what text wrote.
func parseBook(text string) (page, error) {
	end := strings.LastIndex(text, "sum ")
	if end < 0 || text[end:] != fmt.Sprintf("sum %016x\n", xxhash.Sum64String(text[:end])) {
		return page{}, fmt.Errorf("%w: its checksum is wrong", errBook)
	}
	var got page
	i := 0
	for line := range strings.Lines(text[:end]) {
		line = strings.TrimSuffix(line, "\n")
		var err error
		switch i {
		case 0:
			if line != bookTitle {
				err = errors.New("it is of another version")
			}
		case 1:
			got.cursor, err = folderNumber(strings.CutPrefix(line, "cursor "))
		default:
			var n noted
			if n, err = parseNoted(line); err == nil {
				got.purges = append(got.purges, n)
			}
		}
		if i++; err != nil {
			return page{}, fmt.Errorf("%w: line %d: %w", errBook, i, err)
		}
	}
	return got, nil
}

func folderNumber(text string, found bool) (int, error) {
	n, err := strconv.Atoi(text)
	if !found || err != nil || n < 0 || n > folders {
		return 0, errors.New("no number of a folder")
	}
	return n, nil
}

func parseNoted(line string) (n noted, err error) {
	word := strings.SplitN(line, " ", 5)
	if len(word) < 5 || word[0] != "purge" {
		return n, errors.New("no purge")
	}
	at, err := strconv.ParseInt(word[1], 10, 64)
	since, err2 := strconv.ParseInt(word[2], 10, 64)
	swept, err3 := folderNumber(word[3], true)
	if err = errors.Join(err, err2, err3); err != nil {
		return n, err
	}
	quoted, err := strconv.QuotedPrefix(word[4])
	if err != nil {
		return n, err
	}
	site, _ := strconv.Unquote(quoted) // what QuotedPrefix takes can be unquoted
	prefix, err := strconv.Unquote(strings.TrimPrefix(word[4][len(quoted):], " "))
	if err != nil {
		return n, err
	}
	n = noted{Purge: purge.Purge{Site: site, Prefix: prefix, At: fromNano(at)}, since: fromNano(since), swept: swept}
	return n, n.Check()
}

// readPurges takes what a volume's book says into the list, before anything is answered
// from the volume. An error is one of the disk: the volume is out of use then, and must
// not be used again before the book has been read.
func (v *volume) readPurges() error {
	text, err := v.bookText()
	var got page
	if err == nil && text != "" {
		got, err = parseBook(text)
	}
	switch {
	case err == nil:
	case judge(err, false) == failed:
		v.fault(err, false)
		v.bookUnread = true
		return err
	default:
		v.log.Error("the book of purges cannot be read: the volume starts empty, rather than that something purged comes back", "err", err)
		v.mu.Lock()
		v.distrust = true
		v.mu.Unlock()
	}
	v.purges.merge(v, got)
	v.bookUnread = false
	return nil
}

func (v *volume) bookText() (string, error) {
	f, err := v.files.Open(filepath.Join(v.path, bookName), unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxBook || info.Size() == 0 {
		return "", fmt.Errorf("%w: %d bytes", errBook, info.Size())
	}
	b := make([]byte, info.Size())
	if err := readFull(f, b, 0); err != nil {
		return "", err
	}
	return string(b), nil
}

// merge adds what a volume's book says. About other volumes the book says nothing, and
// nobody else about this one.
func (p *purges) merge(v *volume, got page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.list {
		delete(r.swept, v)
	}
	p.cursors[v] = got.cursor % folders
	for _, n := range got.purges {
		r := p.list[idOf(n.Purge)]
		switch {
		case r == nil:
			r = &remembered{Purge: n.Purge, noted: n.since, swept: map[*volume]int{}}
			p.list[idOf(n.Purge)] = r
		case n.At.After(r.At):
			r.At = n.At
			clear(r.swept)
		case n.At.Before(r.At):
			continue
		}
		if n.since.After(r.noted) {
			r.noted = n.since
		}
		r.swept[v] = n.swept
	}
	v.bookStale.Store(len(p.list) > 0)
	p.refresh()
}
