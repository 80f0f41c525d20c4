package convert

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"karui/convert/header"
)

// The talk between the pool and a worker is frames over one stream socket:
//
//	1 byte   kind
//	4 bytes  length of the head, big endian, at most maxHead
//	4 bytes  length of the body, big endian, bounded by whoever reads
//	head     JSON
//	body     image bytes
//
// A worker says ready once, then for every job: started (the job was read whole) and result. Nothing else is ever
// sent, and a pool never sends a second job before the result of the first: anything else is garbage and ends the
// worker.
const (
	frameReady   = 'r'
	frameJob     = 'j'
	frameStarted = 's'
	frameResult  = 'd'
)

const (
	frameLead = 9
	// maxHead holds two texts of at most 4 KiB each (copyright and artist) in base64, and the rest of a header.
	maxHead = 64 << 10
)

// errGarbage says that the other side sent something that is no frame of this protocol.
var errGarbage = errors.New("not a frame of this protocol")

// ready is what a worker says of itself when it has started.
type ready struct {
	// Guards names what the kernel keeps the worker from; Missing what could not be had, each with its reason.
	Guards  []string `json:"guards"`
	Missing []string `json:"missing"`
	// NoEncoder says of formats of its class why they cannot be written on this machine.
	NoEncoder map[string]string `json:"no_encoder,omitempty"`
	// CPU is what starting took, MaxRSS the memory held then.
	CPU    time.Duration `json:"cpu"`
	MaxRSS int64         `json:"max_rss"`
}

// job asks for one conversion; its body is the original.
type job struct {
	ID   uint64      `json:"id"`
	Info header.Info `json:"info"`
	// Copyright and Artist travel beside Info, since JSON would change bytes that are no UTF-8.
	Copyright []byte `json:"copyright,omitempty"`
	Artist    []byte `json:"artist,omitempty"`
	Plan      Plan   `json:"plan"`
	// Timeout is the CPU time the conversion may take.
	Timeout time.Duration `json:"timeout"`
	// Look is set where no variant is wanted, but the pixels of Info's picture.
	Look *looking `json:"look,omitempty"`
}

// newJob packs what a worker has to know.
func newJob(id uint64, info header.Info, plan Plan, timeout time.Duration) job {
	j := job{ID: id, Info: info, Plan: plan, Timeout: timeout}
	if plan.KeepCopyright {
		j.Copyright, j.Artist = []byte(info.Copyright), []byte(info.Artist)
	}
	j.Info.Copyright, j.Info.Artist, j.Info.ProfileName = "", "", ""
	return j
}

// started says that job ID was read whole.
type started struct {
	ID uint64 `json:"id"`
}

// result is the outcome of job ID; its body is the variant, empty unless Code is [Converted].
type result struct {
	ID       uint64 `json:"id"`
	Code     Code   `json:"code"`
	Reason   string `json:"reason"`
	Width    int    `json:"width"`
	Height   int    `json:"height"`
	Frames   int    `json:"frames"`
	Lossless bool   `json:"lossless"`
	// Bytes is the size of what was encoded, also when it is not sent for being too big.
	Bytes int64 `json:"bytes"`
	// CPU is what this job took, MaxRSS the most memory that the process ever held.
	CPU    time.Duration `json:"cpu"`
	MaxRSS int64         `json:"max_rss"`
	// Shrunk says of the pixels of [looking] that there are fewer than the picture has.
	Shrunk bool `json:"shrunk,omitempty"`
}

// frame is one message as it was read.
type frame struct {
	kind byte
	head []byte
	body []byte
}

// decode unpacks the head of a frame that must be of the given kind.
func (f frame) decode(kind byte, into any) error {
	if f.kind != kind {
		return fmt.Errorf("%w: kind %q where %q is due", errGarbage, f.kind, kind)
	}
	if err := json.Unmarshal(f.head, into); err != nil {
		return fmt.Errorf("%w: head of %q: %w", errGarbage, kind, err)
	}
	return nil
}

// gatherer writes several pieces with one call, as [net.UnixConn] does of its own.
type gatherer interface {
	writeAll(pieces [][]byte) error
}

// writeFrame sends one message. Body is not copied: the lead, the head and the body go out as one writev where the
// connection can do that, so that the other side is woken once.
func writeFrame(w io.Writer, kind byte, head any, body []byte) error {
	h, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("encode head of %q: %w", kind, err)
	}
	if len(h) > maxHead || int64(len(body)) > int64(^uint32(0)) {
		return fmt.Errorf("frame %q is too long: head %d bytes (at most %d), body %d bytes", kind, len(h), maxHead, len(body))
	}
	lead := make([]byte, frameLead, frameLead+len(h))
	lead[0] = kind
	binary.BigEndian.PutUint32(lead[1:], uint32(len(h)))
	binary.BigEndian.PutUint32(lead[5:], uint32(len(body)))
	bufs := net.Buffers{append(lead, h...)}
	if len(body) > 0 {
		bufs = append(bufs, body)
	}
	if g, ok := w.(gatherer); ok {
		return g.writeAll(bufs)
	}
	_, err = bufs.WriteTo(w)
	return err
}

// readFrame reads one message whose body is at most maxBody bytes. The memory for the body comes from alloc, which
// is asked for exactly as many bytes as were announced. io.EOF means that the other side is gone between messages.
func readFrame(r io.Reader, maxBody int64, alloc func(n int) []byte) (frame, error) {
	var lead [frameLead]byte
	if _, err := io.ReadFull(r, lead[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: lead[0]}
	nHead, nBody := binary.BigEndian.Uint32(lead[1:]), binary.BigEndian.Uint32(lead[5:])
	switch f.kind {
	case frameReady, frameJob, frameStarted, frameResult:
	default:
		return frame{}, fmt.Errorf("%w: kind 0x%02x", errGarbage, f.kind)
	}
	if nHead > maxHead {
		return frame{}, fmt.Errorf("%w: head of %d bytes, at most %d", errGarbage, nHead, maxHead)
	}
	if int64(nBody) > maxBody {
		return frame{}, fmt.Errorf("%w: body of %d bytes, at most %d", errGarbage, nBody, maxBody)
	}
	f.head = make([]byte, nHead)
	if _, err := io.ReadFull(r, f.head); err != nil {
		return frame{}, noEOF(err)
	}
	if nBody > 0 {
		f.body = alloc(int(nBody))
		if _, err := io.ReadFull(r, f.body); err != nil {
			return frame{}, noEOF(err)
		}
	}
	return f, nil
}

// noEOF turns an end in the middle of a message into one that cannot be taken for a clean end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func newBytes(n int) []byte { return make([]byte, n) }
