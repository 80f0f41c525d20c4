package flight

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Sizes in bytes.
const (
	probeBytes  = 4 << 10  // read before anything is reserved: a body that hangs costs no more
	firstChunk  = 32 << 10 // of a body without a declared length; each further chunk is twice as large
	largestPart = 1 << 20  // of such a body, so that a slow reader holds no more of what went to disk since
	fileBuffer  = 32 << 10 // between the connection and the file, one per spool that is in a file
	windowPart  = 16 << 10
	windowBytes = 64 << 10 // what a paced spool holds
)

// store is what the spools of a group share: where bytes may go.
type store struct {
	memory   budget
	disk     budget
	most     int64 // of one body in memory
	open     func() (file, error)
	stall    time.Duration
	assembly *semaphore.Weighted // of bytes that Whole puts together
	assemble int64               // its size
	refused  func(error)         // hears why a spool became paced
	probes   sync.Pool           // of *[probeBytes]byte
	spilled  atomic.Int64        // spools that went to a file, ever
	paced    atomic.Int64        // spools that became paced, ever
}

func (st *store) probe() *[probeBytes]byte {
	if b, ok := st.probes.Get().(*[probeBytes]byte); ok {
		return b
	}
	return new([probeBytes]byte)
}

// file is what a spool needs of a temporary file.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// openUnnamed makes a file in dir that disappears with its last descriptor.
func openUnnamed(dir string) (file, error) {
	f, err := os.CreateTemp(dir, "karui-spool-*")
	if err != nil {
		return nil, fmt.Errorf("create spool file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close() // the first error says more
		return nil, fmt.Errorf("unlink spool file: %w", err)
	}
	return f, nil
}
