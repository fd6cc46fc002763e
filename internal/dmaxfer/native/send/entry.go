package send

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// state is how far the sender has come with an entry. Only files are needed, read and sent; a file that is compared
// first stays announced until the receiver's last answer.
//
//	found ─► announced ─┬─► needed ─┬─► read ─┬─► sent ─► decided
//	                    │           └─────────┘
//	                    └───────────────────────────────► decided
//
// From each state an entry can become decided, by the receiver or because it cannot be sent. The states before read are
// told apart by the log alone.
type state uint8

const (
	found     state = iota // in the source
	announced              // until the receiver's last answer
	needed                 // the receiver waits for the content
	read                   // a lane has read all of the content, or has given up
	sent                   // END or PACK has been sent; the receiver commits the file
	decided                // the receiver has it or not, and nothing more of it is sent
)

// entry is an entry of the source. The owner of the transfer announces, queues and decides it; lanes read its content,
// between acquire and release. It is the role.Record of the entry.
type entry struct {
	number     uint32
	kind       wire.EntryKind
	path       string // for messages and events
	size       int64  // bytes; job.Unknown for a stream
	packed     bool   // may be sent together with others
	attributes []byte // extended ones, as they are sent; nil when they have been
	heldThere  int64  // bytes of attributes that the receiver holds until it has decided a directory

	// attributesDropped is called when attributes are not held any more. It may be nil.
	attributesDropped func()

	// open opens the content, and unhold releases what open needs. Both are nil for an entry without content.
	open   func(ctx context.Context) (*content, error)
	unhold func()

	// The owner of the transfer uses the following until the file is queued.
	resume  int64         // bytes that the receiver has, by its answer
	refused atomic.Int64  // of these, that it had not after all; the lanes count them
	change  native.Change // of a dry run: why it would be copied

	action job.Action // of a directory that is decided
	late   bool       // a directory that is decided, and whose outcome is not reported yet

	motion role.Motion

	content *content
	reader  pump.Reader

	mu     sync.Mutex // not held while a call to the file system may hang
	state  state
	ledger *digest.Ledger
	users  int  // calls that use the content, or are about to add a chunk to the ledger
	ended  bool // the reader has come to the end of the content
}

// Path implements role.Record.
func (e *entry) Path() string { return e.path }

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

func (e *entry) isDecided() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state == decided
}

// acquire keeps the content open until release is called, and reports whether it is still to be read.
func (e *entry) acquire() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state >= read {
		return false
	}
	e.users++
	return true
}

// release ends the use that began with acquire.
func (e *entry) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.users--
	e.closeUnused()
}

// giveUp is release for a file that cannot be sent. The other lanes read no more of it, and its end is not announced: a
// part is missing although the reader comes to its end.
func (e *entry) giveUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = max(e.state, read)
	e.users--
	e.closeUnused()
}

// chunkRead adds a chunk to the ledger by add, or notes that the reader has come to its end. It reports whether all of
// the content has been read; the content is still acquired then.
func (e *entry) chunkRead(ended bool, add func(*digest.Ledger) error) (last bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if add != nil {
		err = add(e.ledger)
	}
	e.ended = e.ended || ended
	complete := e.ended || e.size != job.Unknown && e.ledger.Prefix() == e.size
	if err == nil && complete && e.users == 1 && e.state < read {
		e.state = read
		return true, nil
	}
	e.users--
	e.closeUnused()
	return false, err
}

// heldAfterwards returns how many bytes of extended attributes follow the announcement of the entry. The attributes of
// a file are sent when the receiver is prepared for them.
func (e *entry) heldAfterwards() int64 {
	if e.kind == wire.EntryFile {
		return 0
	}
	return int64(len(e.attributes))
}

// dropAttributes is called when the extended attributes have been sent, or are not wanted.
func (e *entry) dropAttributes() {
	e.attributes = nil
	if e.attributesDropped != nil {
		e.attributesDropped()
		e.attributesDropped = nil
	}
}

// decide ends the entry. A lane that uses its content closes it.
func (e *entry) decide() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = decided
	e.dropAttributes()
	e.closeUnused()
}

// closeUnused closes the content when no lane uses it and nothing more is wanted of it. The caller has locked mu.
func (e *entry) closeUnused() {
	if e.users > 0 {
		return
	}
	if e.content != nil && e.state >= read {
		e.content.close()
		e.content = nil
	}
	if e.unhold != nil && e.state == decided {
		e.unhold()
		e.unhold = nil
	}
}

// errDecided means that the content of an entry is not wanted any more. It is not reported.
var errDecided = errors.New("internal error: the entry is decided")

// content is what an entry has to send: a file, or else a stream.
type content struct {
	source *disk.Source
	stream *disk.Stream
	close  func()
}
