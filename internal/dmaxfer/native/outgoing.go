package native

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// outgoing is an entry that the sender has announced and the receiver has not decided yet. The owner of the transfer
// announces, queues and decides it; lanes read its content, between acquire and letGo.
type outgoing struct {
	number     uint32
	kind       negotiate.EntryKind
	path       string // for messages and events
	size       int64  // bytes; job.Unknown for a stream
	packed     bool   // may be sent together with others
	attributes []byte // extended ones, as they are sent; nil when they have been
	heldThere  int64  // bytes of those that the receiver holds until it has decided a directory
	decided    atomic.Bool

	// attributesDropped is called when attributes are not held any more. It may be nil.
	attributesDropped func()

	// open opens the content, and release lets go of what open needs. Both are nil for an entry without content.
	open    func() (*content, error)
	release func()

	// The following are used by the owner of the transfer until the file is queued.
	answered  bool               // the receiver's answer is final
	flushing  bool               // the receiver flushes and commits it
	resume    int64              // bytes that the receiver has, by its answer
	change    negotiate.Change   // of a dry run: why it would be copied
	directory *settlingDirectory // nil: it is none

	content *content
	reader  pump.Reader

	mu     sync.Mutex // not held while a call to the file system may hang
	ledger *digest.Ledger
	users  int  // calls that use the content, or are about to add a chunk to the ledger
	read   bool // the reader has come to its end
	ended  bool // nothing more is read of it: its end is announced, or it cannot be sent
}

// acquire keeps the content open until letGo is called, and reports whether it is still to be read.
func (o *outgoing) acquire() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended || o.decided.Load() {
		return false
	}
	o.users++
	return true
}

// letGo ends the use that began with acquire.
func (o *outgoing) letGo() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.users--
	o.closeUnused()
}

// giveUp is letGo for a file that cannot be sent. The other lanes read no more of it, and its end is not announced: a
// part is missing although the reader comes to its end.
func (o *outgoing) giveUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.users--
	o.closeUnused()
}

// heldAfterwards returns how many bytes of extended attributes follow the announcement of the entry. Those of a file
// are sent when the receiver is prepared for them.
func (o *outgoing) heldAfterwards() int64 {
	if o.kind == negotiate.EntryFile {
		return 0
	}
	return int64(len(o.attributes))
}

// dropAttributes is called when the extended attributes have been sent, or are not wanted.
func (o *outgoing) dropAttributes() {
	o.attributes = nil
	if o.attributesDropped != nil {
		o.attributesDropped()
		o.attributesDropped = nil
	}
}

// decide ends the entry. A lane that uses its content closes it.
func (o *outgoing) decide() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.decided.Store(true)
	o.dropAttributes()
	o.closeUnused()
}

// closeUnused closes the content when no lane uses it and nothing more is wanted of it. The caller has locked mu.
func (o *outgoing) closeUnused() {
	if o.users > 0 {
		return
	}
	if o.content != nil && (o.ended || o.decided.Load()) {
		o.content.close()
		o.content = nil
	}
	if o.release != nil && o.decided.Load() {
		o.release()
		o.release = nil
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

// chunkDone is that of the feed, except for the end of the file. It reports whether this was the last chunk; the
// content is still acquired then.
func (o *outgoing) chunkDone(read bool, add func(*digest.Ledger) error) (last bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if add != nil {
		err = add(o.ledger)
	}
	o.read = o.read || read
	complete := o.read || o.size != job.Unknown && o.ledger.Prefix() == o.size
	if err == nil && complete && o.users == 1 && !o.ended && !o.decided.Load() {
		o.ended = true
		return true, nil
	}
	o.users--
	o.closeUnused()
	return false, err
}
