package native

import (
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// outcome is that of the root of a transfer of one file.
type outcome int

const (
	undecided outcome = iota
	unneeded          // the target has the content already
	renamed           // committed
)

// arriving is an entry that the receiver has not decided yet.
type arriving struct {
	number     uint32
	kind       negotiate.EntryKind
	depth      int
	name, path string // path is for messages and events
	size       int64  // bytes; job.Unknown for a stream
	meta       disk.Metadata
	identity   [16]byte
	link       string
	attributes []byte // extended ones, as they arrive
	awaited    bool   // attributes are not complete yet

	action    job.Action // of a directory that is decided, until it is left
	directory *directory // that contains it; nil for a root
	links     []*arriving

	// The following are set before the sender is told that the entry is needed.
	resume  int64
	chunked bool           // it comes in chunks, although it would fit into a slot
	target  target         // nil: the file comes with others in one slot, or the entry has no content
	in      *pump.Incoming // the same
	counted bool           // in receiver.needed

	mu       sync.Mutex
	prefix   int64 // bytes from the beginning that are stored
	ended    bool  // the sender has read all of it
	endSize  int64
	endSum   digest.Sum
	complete bool // and this side has stored all of it
}

func newArriving(from *negotiate.Entry) *arriving {
	e := &arriving{
		number: from.Number, kind: from.Kind, depth: from.Depth, name: string(from.Name), link: string(from.Link),
		size: int64(from.Size), identity: from.Identity,
		chunked: from.Flags.Has(negotiate.EntryChunked), awaited: from.Flags.Has(negotiate.EntryHasMetadata),
		meta: disk.Metadata{
			Size: int64(from.Size), Mode: from.Mode, Modified: disk.Timestamp(from.MTime), UID: from.UID, GID: from.GID,
		},
	}
	if from.Flags.Has(negotiate.EntrySizeUnknown) {
		e.size = job.Unknown
	}
	return e
}

func (r *receiver) register(e *arriving) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table[e.number%negotiate.MaxOpen] = e
	r.open++
}

// entry returns an undecided entry, or nil.
func (r *receiver) entry(number uint32) *arriving {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.table[number%negotiate.MaxOpen]; e != nil && e.number == number {
		return e
	}
	return nil
}

// place notes where an entry is, and reports whether it is undecided still.
func (r *receiver) place(e *arriving, in *directory) (open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.table[e.number%negotiate.MaxOpen] != e {
		return false
	}
	if e.directory = in; in != nil {
		in.pending++
	}
	return true
}

// expect notes that the sender will send the content of an entry.
func (r *receiver) expect(e *arriving) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.counted = true
	r.needed++
}
