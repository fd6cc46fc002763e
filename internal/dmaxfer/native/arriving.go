package native

import (
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// arriving is an entry that the receiver has not decided yet. One goroutine after another works on it: the owner of the
// transfer when it is announced, the planner, and then, for what its content becomes, lanes and jobs. Each passes it on
// by a queue, a message of the sender, or a mutex.
type arriving struct {
	number     uint32
	kind       negotiate.EntryKind
	depth      int
	name, path string // path is for messages and events
	size       int64  // bytes; job.Unknown for a stream
	meta       disk.Metadata
	identity   [16]byte
	link       string

	attributes       []byte // extended ones, while they arrive
	hasAttributes    bool
	attributesSum    uint32
	awaited          bool  // the entry is not planned before its attributes are complete
	overLimit        bool  // its attributes exceed the limit and are not held, so that it fails
	attributePermits int64 // of openEntries.fileAttributes or otherAttributes; guarded by openEntries.mu

	action    job.Action       // of a directory that is decided, until it is left
	change    negotiate.Change // why it would be copied
	directory *directory       // that contains it; nil for a root
	links     []*arriving
	own       *tree.Entry // in a comparison of trees: what this side has in its place; nil: nothing

	// The following are set before the sender is told that the entry is needed.
	chunked     bool // it comes in chunks, although it would fit into a slot
	resume      int64
	holes       int64               // bytes of them that were announced; the owner of the transfer uses it
	dropped     negotiate.Discarded // why it is 0 although something was left
	in          *pump.Incoming      // nil: the file comes with others in one slot, or the entry has no content
	counted     bool                // in openEntries.needed
	openPermits int64               // of openEntries.openable; guarded by openEntries.mu

	mu       sync.Mutex
	target   target // nil where in is
	prefix   int64  // bytes from the beginning that are stored
	ended    bool   // the sender has read all of it
	endSize  int64
	endSum   digest.Sum
	complete bool // and this side has stored all of it
}

func newArriving(from *negotiate.Entry) *arriving {
	e := &arriving{
		number: from.Number, kind: from.Kind, depth: from.Depth, name: string(from.Name), link: string(from.Link),
		size: int64(from.Size), identity: from.Identity,
		chunked: from.Flags.Has(negotiate.EntryChunked), hasAttributes: from.Flags.Has(negotiate.EntryHasMetadata),
		attributesSum: from.Xattrs,
		meta: disk.Metadata{
			Size: int64(from.Size), Mode: from.Mode, Modified: disk.Timestamp(from.MTime), UID: from.UID, GID: from.GID,
		},
	}
	if from.Flags.Has(negotiate.EntrySizeUnknown) {
		e.size = job.Unknown
	}
	return e
}

// open sets what the content in chunks is written to.
func (e *arriving) open(t target, in *pump.Incoming) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.target, e.in = t, in
}

// opened returns the target; nil if there is none. It may be called while another goroutine opens it.
func (e *arriving) opened() target {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.target
}

// ends notes what the sender has read, and reports whether this side has stored all of it.
func (e *arriving) ends(size int64, sum digest.Sum) (complete bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended, e.endSize, e.endSum = true, size, sum
	return e.checkComplete()
}

// stores notes how many bytes from the beginning are stored, and reports whether that is all.
func (e *arriving) stores(prefix int64) (complete bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prefix, e.meta.Size = prefix, prefix
	return e.checkComplete()
}

// awaitedEnd returns the size of the file if all of it is stored and its end is not announced.
func (e *arriving) awaitedEnd() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.in == nil || e.ended || e.prefix != e.size {
		return 0
	}
	return e.size
}

// checkComplete reports whether both sides are through with a file, once. The caller has locked e.mu.
func (e *arriving) checkComplete() bool {
	if !e.ended || e.complete || e.prefix != e.endSize {
		return false
	}
	e.complete = true
	return true
}
