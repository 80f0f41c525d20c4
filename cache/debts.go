package cache

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A volume that cannot be written, or is not configured for a while, misses that
// its entries are deleted, or replaced by newer ones in other volumes. Graves know
// of it while the process lives. So that nothing old comes back after a restart
// either, another volume keeps book, in the folder
//
//	owed/     a file for each volume that missed something, by its seed
//	members   the seeds and paths of all volumes that were ever used together
//
// A debt says that what a volume holds under a key is of no use if it was fetched at
// a given time or before. It is paid when the volume works again: the file is looked
// at, and goes if it is meant.

// debtBytes is a hash and a time, nanoseconds since 1970.
const debtBytes = 16 + 8

func owedFile(keeper *volume, seed uint64) string {
	return filepath.Join(keeper.path, "owed", fmt.Sprintf("%016x", seed))
}

// ghost is a volume that was used once and is not configured now.
type ghost struct {
	seed uint64
	path string
}

// owe notes a debt of the volume with another one that works. Without any that does,
// it is known only as long as the process lives. Called with the key's lock held.
func (v *volume) owe(h hash, until int64) {
	v.mu.Lock()
	v.owing = true
	v.mu.Unlock()
	for _, keeper := range v.others {
		if keeper.working() == nil && keeper.book(v.seed, h, until) == nil {
			return
		}
	}
}

// tellGhosts notes for the volumes that are not configured what they miss.
func (v *volume) tellGhosts(h hash, until int64) {
	for _, g := range v.ghosts {
		_ = v.book(g.seed, h, until) // counted there
	}
}

// book writes a debt down. A book that is full says that the volume is not to be
// trusted at all, and gets no longer.
func (v *volume) book(seed uint64, h hash, until int64) error {
	v.booking.Lock()
	defer v.booking.Unlock()
	name := owedFile(v, seed)
	if err := v.files.MkdirAll(filepath.Dir(name)); err != nil {
		v.fault(err, true)
		return err
	}
	f, err := v.files.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND)
	if err != nil {
		v.fault(err, true)
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() < maxHidden*debtBytes {
		_, err = f.Write(binary.LittleEndian.AppendUint64(h[:], uint64(until)))
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		v.fault(err, true)
	}
	return err
}

// readDebts digs the graves in the other volumes that this one has kept book of.
func (v *volume) readDebts() {
	dir := filepath.Join(v.path, "owed")
	_ = v.files.Names(dir, func(name string) bool { // none is no error, and others are found by what follows
		seed, err := strconv.ParseUint(name, 16, 64)
		i := slices.IndexFunc(v.others, func(o *volume) bool { return o.seed == seed })
		if err == nil && i >= 0 {
			v.readBook(owedFile(v, seed), v.others[i])
		}
		return true
	})
}

func (v *volume) readBook(name string, debtor *volume) {
	f, err := v.files.Open(name, unix.O_RDONLY)
	if err != nil {
		v.fault(err, false)
		return
	}
	defer f.Close()
	debtor.mu.Lock()
	debtor.owing = true
	debtor.mu.Unlock()
	for at := int64(0); ; {
		b := make([]byte, 1024*debtBytes)
		n, err := f.ReadAt(b, at)
		at += int64(n)
		debtor.mu.Lock()
		for ; n >= debtBytes; b, n = b[debtBytes:], n-debtBytes { // a torn end is of no debt that counts
			h, until := hash(b[:16]), int64(binary.LittleEndian.Uint64(b[16:]))
			if r := debtor.index.find(h); r == nil || r.fetched <= until {
				debtor.index.remove(h)
				debtor.dig(h, grave{dug: debtor.now().UnixNano(), file: true, until: until})
			}
		}
		debtor.distrust = debtor.distrust || at >= maxHidden*debtBytes
		debtor.mu.Unlock()
		if err != nil || at > maxHidden*debtBytes {
			return
		}
	}
}

// paid burns the books about a volume that has nothing to pay any more.
func (v *volume) paid() {
	v.mu.Lock()
	settled := v.owing && !v.distrust && v.health.state == StateOK && v.hiding == 0
	if settled {
		v.owing = false // what is booked from here on sets it again
	}
	v.mu.Unlock()
	if !settled {
		return
	}
	for _, keeper := range v.others {
		if keeper.working() == nil {
			keeper.booking.Lock()
			_ = keeper.files.Remove(owedFile(keeper, v.seed)) // what stays is looked at once more, in vain
			keeper.booking.Unlock()
		}
	}
}

// introduce makes the volumes known to one another, and gives those that are
// missing: the ones that any of them has been used with before.
func (vs volumes) introduce() (missing []ghost) {
	known := map[uint64]string{}
	for _, v := range vs {
		for _, g := range v.members() {
			known[g.seed] = g.path
		}
	}
	for _, v := range vs {
		known[v.seed] = v.path
	}
	var text []string
	for seed, path := range known {
		text = append(text, fmt.Sprintf("%016x %s\n", seed, strconv.Quote(path)))
		if !slices.ContainsFunc(vs, func(v *volume) bool { return v.seed == seed }) {
			missing = append(missing, ghost{seed, path})
		}
	}
	slices.Sort(text)
	if len(known) == 1 {
		return nil // alone: nobody can miss anything
	}
	for _, v := range vs {
		if v.working() == nil && len(v.members()) != len(known) {
			v.note("members", strings.Join(text, ""))
		}
	}
	return missing
}

// maxMembers bounds the file of that name, in bytes.
const maxMembers = 1 << 20

// members reads what introduce wrote. What cannot be read is left out.
func (v *volume) members() (list []ghost) {
	for line := range strings.Lines(v.readNote("members", maxMembers)) {
		seed, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseUint(seed, 16, 64)
		name, qerr := strconv.Unquote(path)
		if err == nil && qerr == nil && seedOf(name) == n {
			list = append(list, ghost{n, name})
		}
	}
	return list
}

// note writes a small file of the volume's own, and says whether it could. One that is
// missing is worse for nobody but who relies on it later: errors are left.
func (v *volume) note(name, text string) (written bool) {
	temporary := v.path + "/tmp/" + v.run + name + ".note"
	f, err := v.files.Open(temporary, unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC)
	if err != nil {
		return false
	}
	_, err = f.Write([]byte(text))
	if cerr := f.Close(); err == nil && cerr == nil && v.files.Rename(temporary, filepath.Join(v.path, name)) == nil {
		return true
	}
	_ = v.files.Remove(temporary)
	return false
}

// readNote reads one; empty if there is none that is not longer than most.
func (v *volume) readNote(name string, most int64) string {
	f, err := v.files.Open(filepath.Join(v.path, name), unix.O_RDONLY)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return ""
	}
	b := make([]byte, info.Size())
	if err := readFull(f, b, 0); err != nil {
		return ""
	}
	return string(b)
}
