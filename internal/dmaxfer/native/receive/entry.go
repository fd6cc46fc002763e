package receive

import (
	"sync"

	weighted "golang.org/x/sync/semaphore"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/inode"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/target"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// state is how far the receiver has come with an entry.
//
//	announced ─► planned ─┬────────────┬─► needed ─► stored ─► committing ─► decided
//	                      └─► compared ┘
//
// From each state an entry can become decided: it is there already, has its name, or has failed. Only files go through
// the states from compared to committing. The states before stored are told apart by the log alone.
type state uint8

const (
	announced  state = iota
	planned          // the planner has found its place
	compared         // the sender was asked for its digest
	needed           // the sender was asked for its content
	stored           // all of the content is written, or staged
	committing       // it gets its final name
	decided          // its outcome is fixed; whoever has fixed it tells the sender
)

// entry is an entry of the transfer. One goroutine after another works on it: the owner of the transfer when it is
// announced, the planner, and then, for what its content becomes, lanes and jobs. It is the role.Record of the entry.
type entry struct {
	number   uint32
	kind     wire.EntryKind
	depth    int
	name     string
	path     string // for messages and events; set by the planner
	size     int64  // bytes; job.Unknown for a stream
	meta     disk.Metadata
	identity [16]byte
	link     string

	attributes    []byte // extended ones, while they arrive
	hasAttributes bool
	attributesSum uint32
	awaited       bool // the entry is not planned before its attributes are complete
	overLimit     bool // its attributes exceed the limit and are not held, so that it fails

	action    job.Action    // of a directory that is decided, until it is left
	change    native.Change // why it would be copied, or which attributes differ or were set
	directory *directory    // that contains it; nil for a root
	waiting   []*entry      // hard links that are made when it is decided; guarded by links.mu

	// The following are set before the sender is told that the entry is needed.
	chunked bool // it comes in chunks, although it would fit into a slot
	resume  int64
	refused int64          // bytes below resume that were sent nevertheless; the lanes count them, one at a time
	holes   int64          // bytes of them that were announced; the owner of the transfer uses it
	dropped wire.Discarded // why resume is 0 although something was left
	in      *pump.Incoming // nil: the file comes with others in one slot, or the entry has no content

	motion role.Motion

	mu         sync.Mutex
	state      state
	own        *tree.Entry   // in a comparison of trees: what this side has in its place; nil: nothing
	target     target.Target // nil where in is
	prefix     int64         // bytes from the beginning that are stored
	end        *end          // nil until the sender has read all of it
	permits    int64         // of limits.files
	attributed int64         // permits of limits.fileAttributes or otherAttributes
}

// end is what the sender has read of a file.
type end struct {
	size int64
	sum  digest.Sum
}

func newEntry(p *role.Params, from *wire.Entry) *entry {
	e := &entry{
		number: from.Number, kind: from.Kind, depth: from.Depth, name: string(from.Name), link: string(from.Link),
		size: int64(from.Size), identity: from.Identity,
		chunked: from.Flags.Has(wire.EntryChunked), hasAttributes: from.Flags.Has(wire.EntryHasMetadata),
		attributesSum: from.Xattrs,
		meta:          inode.Metadata(from),
	}
	if p.Plan.Privileged && from.Kind != wire.EntrySymlink { // a default ACL of the target's directory is not inherited
		e.meta.Xattrs = func(func(disk.Xattr) bool) {}
	}
	if from.Flags.Has(wire.EntrySizeUnknown) {
		e.size = job.Unknown
	}
	if !p.Plan.Tree {
		e.path = p.Config.File.Path
	}
	return e
}

// Path implements role.Record.
func (e *entry) Path() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == announced && e.path == "" {
		return e.name
	}
	return e.path
}

// Motion implements role.Record.
func (e *entry) Motion() *role.Motion { return &e.motion }

// become changes the state of an entry, unless it is decided.
func (e *entry) become(s state) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != decided {
		e.state = s
	}
}

// decide makes the caller the one that ends an entry.
func (e *entry) decide() (first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	first = e.state != decided
	e.state = decided
	return first
}

func (e *entry) isDecided() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state == decided
}

// plan notes the place of an entry.
func (e *entry) plan(path string, in *directory) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state, e.path, e.directory = max(e.state, planned), path, in
}

// compareWith notes what an entry is compared with until it is decided. It reports false if it is already.
func (e *entry) compareWith(own *tree.Entry) (undecided bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == decided {
		return false
	}
	e.own = own
	return true
}

// hold holds what an undecided entry is compared with, which the caller releases; nil: nothing.
func (e *entry) hold() (own *tree.Entry, undecided bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == decided {
		return nil, false
	}
	if e.own != nil {
		held := *e.own
		held.Dir.Hold()
		own = &held
	}
	return own, true
}

// addAttributes adds a fragment of the extended attributes, unless they exceed the limit or the entry is decided, and
// reports whether it was the last one.
func (e *entry) addAttributes(m native.Metadata) (complete bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	complete = m.Offset+uint32(len(m.Part)) == m.Total
	if e.overLimit || e.state == decided {
		return complete, nil
	}
	if m.Offset == 0 {
		e.attributes = make([]byte, 0, m.Total)
	}
	e.attributes = append(e.attributes, m.Part...)
	if complete {
		e.meta.Xattrs, err = inode.DecodeXattrs(e.attributes)
		e.attributes = nil
	}
	return complete, err
}

// keepPermits notes in of, a field of the entry, that it has permits until it is decided. If it has been decided
// already, the permits are released, and it reports false.
func (e *entry) keepPermits(from *weighted.Weighted, permits int64, of *int64) (undecided bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == decided {
		from.Release(permits)
		return false
	}
	*of = permits
	return true
}

// open sets what the content in chunks is written to.
func (e *entry) open(t target.Target, in *pump.Incoming) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.target, e.in = t, in
}

// opened returns the target; nil if there is none. It may be called while another goroutine opens it.
func (e *entry) opened() target.Target {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.target
}

// ends notes what the sender has read, and reports whether this side has stored all of it.
func (e *entry) ends(size int64, sum digest.Sum) (complete bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end = &end{size, sum}
	return e.checkStored()
}

// stores notes how many bytes from the beginning are stored, and reports whether that is all.
func (e *entry) stores(prefix int64) (complete bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prefix, e.meta.Size = prefix, prefix
	return e.checkStored()
}

// checkStored reports whether both sides are through with a file, once. The caller has locked e.mu.
func (e *entry) checkStored() bool {
	if e.end == nil || e.state >= stored || e.prefix != e.end.size {
		return false
	}
	e.state = stored
	return true
}

// awaitedEnd returns the size of the file if all of it is stored and its end is not announced: the sender may be
// reading it again, because its change time has moved.
func (e *entry) awaitedEnd() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.in == nil || e.end != nil || e.prefix != e.size {
		return 0
	}
	return e.size
}
